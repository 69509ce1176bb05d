// Command compat runs foreign clients, and our own tools, against a real Millrace process: each check moves real bytes and
// compares values. What a check needs and the machine lacks is installed from the package registries where that is possible
// (kcat by apt, Python packages into a virtual environment below .cache); otherwise the check is skipped with its reason,
// or, with CI set in the environment, fails.
//
//	go run ./tools/compat              # everything
//	go run ./tools/compat -short       # the end-to-end run of `make test`
//	go run ./tools/compat -only kcat   # the checks whose name contains kcat
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// env is what a check works with.
type env struct {
	dir   string // its own folder, removed after a pass
	bin   string // the folder of our binaries, absolute
	cache string // kept between runs, absolute
	short bool
	mb    int // size of the real file that is moved
}

// check is one claim about foreign clients.
type check struct {
	name  string
	short bool          // part of the short run
	limit time.Duration // it is a failure to take longer
	run   func(e *env) error
}

// skip is returned by a check that cannot run here, with the reason.
type skip struct{ reason string }

func (s skip) Error() string { return s.reason }

func checks() []check {
	var all []check
	all = append(all, roundTripChecks()...)
	all = append(all, storedBytesChecks()...)
	all = append(all, valueChecks()...)
	all = append(all, killChecks()...)
	all = append(all, franzChecks()...)
	return all
}

func main() {
	short := flag.Bool("short", false, "only the short end-to-end run")
	only := flag.String("only", "", "only the checks whose name contains this")
	tally := flag.String("tally", "", "append the counts to this file")
	mb := flag.Int("mb", 0, "size of the real file in MB (default 24, short 2)")
	flag.Parse()
	if *mb == 0 {
		*mb = 24
		if *short {
			*mb = 2
		}
	}
	if err := runAll(*short, *only, *tally, *mb); err != nil {
		fmt.Fprintln(os.Stderr, "compat:", err)
		os.Exit(1)
	}
}

func runAll(short bool, only, tally string, mb int) error {
	bin, err := filepath.Abs("bin")
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(bin, "millrace")); err != nil {
		return fmt.Errorf("bin/millrace is not there; run make build first: %w", err)
	}
	cache, err := filepath.Abs(".cache")
	if err != nil {
		return err
	}
	var passed, failed, skipped int
	for _, c := range checks() {
		if (short && !c.short) || !strings.Contains(c.name, only) {
			continue
		}
		start := time.Now()
		err := runOne(c, &env{bin: bin, cache: cache, short: short, mb: mb})
		took := time.Since(start).Round(100 * time.Millisecond)
		var s skip
		switch {
		case err == nil:
			passed++
			fmt.Printf("pass %-48s %s\n", c.name, took)
		case errors.As(err, &s) && os.Getenv("CI") == "":
			skipped++
			fmt.Printf("skip %-48s %s\n", c.name, s.reason)
		default:
			failed++
			fmt.Printf("FAIL %-48s %s: %v\n", c.name, took, err)
		}
	}
	line := fmt.Sprintf("%d passed, %d failed, %d skipped", passed, failed, skipped)
	fmt.Println(line)
	if tally != "" {
		f, err := os.OpenFile(tally, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(f, line); err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d checks failed", failed)
	}
	if passed == 0 {
		return errors.New("no check ran")
	}
	return nil
}

// runOne gives the check a folder; after a failure the folder stays and is named.
func runOne(c check, e *env) error {
	if err := os.MkdirAll(e.cache, 0o755); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(e.cache, "compat-")
	if err != nil {
		return err
	}
	e.dir = dir
	done := make(chan error, 1)
	go func() { done <- c.run(e) }() // ends with the check; after a time-out the program ends soon
	select {
	case err = <-done:
	case <-time.After(c.limit):
		err = fmt.Errorf("took longer than %s", c.limit)
	}
	var s skip
	if err != nil && !errors.As(err, &s) {
		return fmt.Errorf("%w (see %s)", err, dir)
	}
	if rerr := os.RemoveAll(dir); err == nil {
		err = rerr
	}
	return err
}
