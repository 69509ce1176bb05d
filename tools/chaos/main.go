package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"
)

// verbose has every deed printed as it is done; for -once.
var verbose bool

func main() {
	r := run{out: os.Stdout}
	parts := flag.String("part", strings.Join(partNames(), ","), "parts to run, separated by commas")
	seed := flag.Uint64("seed", 0, "the run's seed; 0: a random one, which is printed")
	once := flag.Bool("once", false, "run the one episode of -part that has this seed")
	asChild := flag.Bool("child", false, "run episodes of -part until the time is over or standard input ends (the parent's call)")
	flag.DurationVar(&r.length, "for", 30*time.Minute, "how long")
	flag.IntVar(&r.workers, "workers", 2, "episodes at a time")
	flag.StringVar(&r.raceBinary, "race", "", "a race build of this program, for the part together; default: this program itself")
	flag.StringVar(&serverBinary, "millrace", "bin/millrace", "the server's program, for the part kill")
	flag.StringVar(&r.keep, "keep", ".cache/chaos", "folder for what findings said")
	flag.BoolVar(&verbose, "v", false, "print every deed")
	flag.Parse()
	for *seed == 0 {
		*seed = rand.Uint64() >> 1
	}
	r.seed, r.parts = *seed, strings.Split(*parts, ",")
	for _, p := range r.parts {
		if partOf(p) == nil {
			fmt.Fprintf(os.Stderr, "chaos: no part %q; there are %s\n", p, strings.Join(partNames(), ", "))
			os.Exit(2)
		}
	}
	switch {
	case *once:
		os.Exit(runOnce(r.parts[0], r.seed))
	case *asChild:
		os.Exit(runChild(r.parts[0], r.seed, r.length, os.Stdin, os.Stdout))
	}
	os.Exit(r.run())
}
