// Command coordination measures Millrace's coordination service beside Apache ZooKeeper 3.9.5, both synced, one node each, on the disk
// that it is pointed at: requests a second of every kind at 1, 10 and 100 clients, sessions, watches, and a million znodes: memory,
// snapshots, restarts. What is written is read back.
//
//	go run ./benchmarks/coordination -out benchmarks/results     # make bench-coordination
//	go run ./benchmarks/coordination -sections requests -rows 'create|set' -clients 1,100 -targets millrace
//
// The two alternate in every row; medians of the rounds are shown. The servers are processes of their own, with their defaults but for
// maxClientCnxns, which is off for both: ours is "bin/millrace coordinator", ZooKeeper has 1000 MB of heap and forceSync.
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"millrace/benchmarks/peers/report"
	"millrace/benchmarks/process"
)

type options struct {
	sections string
	targets  []string
	rows     *regexp.Regexp
	clients  []int
	rounds   int
	duration time.Duration
	warmUp   time.Duration
	znodes   int
	millrace string
	dir      string
	cache    string
	out      string
	warm     int
	force    bool
	pprof    string
}

// section is a part of the benchmark.
type section struct {
	name, method string
	measure      func(o options, s *report.Section) error
}

var sections = []section{
	{"requests", "Each client is one session on one connection. It has one request in flight, or as many as the row says. 100 B of data", measureRequests},
	{"sessions", "Sessions opened and closed, each on a connection of its own", measureSessions},
	{"million", "A tree of 1,000,000 znodes of 100 B (-znodes) in folders of 1,000; restarts after SIGKILL, until a new session has read a znode", measureMillion},
}

func main() {
	o, err := parse()
	if err == nil {
		err = run(o)
	}
	process.KillAll()
	if err != nil {
		fmt.Fprintln(os.Stderr, "coordination:", err)
		os.Exit(1)
	}
}

func parse() (o options, err error) {
	flag.StringVar(&o.sections, "sections", "requests,sessions,million", "which sections, comma separated")
	targets := flag.String("targets", report.Synced+","+report.ZooKeeper, "which systems, comma separated")
	rows := flag.String("rows", ".", "regular expression: which rows of the section requests")
	clients := flag.String("clients", "1,10,100", "numbers of clients, comma separated")
	flag.IntVar(&o.rounds, "rounds", 3, "rounds; every round measures each system once, medians are shown")
	flag.DurationVar(&o.duration, "duration", time.Second, "length of one measurement")
	flag.DurationVar(&o.warmUp, "warm-up", 8*time.Second, "load before anything is measured, for the JVM's compilers")
	flag.IntVar(&o.znodes, "znodes", 1_000_000, "znodes of the section million, a multiple of 1,000")
	flag.StringVar(&o.millrace, "millrace", "bin/millrace", "our binary")
	flag.StringVar(&o.dir, "dir", "", "folder on the disk to be measured (default: a new one in this folder, removed afterwards)")
	flag.StringVar(&o.cache, "cache", ".cache", "folder that keeps ZooKeeper's libraries")
	flag.StringVar(&o.out, "out", "", "folder that keeps tables, plots and raw figures (default: none kept)")
	flag.IntVar(&o.warm, "warm", 3, "GiB of memory to touch first: the host takes free memory back")
	flag.BoolVar(&o.force, "force", false, "measure on a busy machine too; the report says so")
	flag.StringVar(&o.pprof, "pprof", "", "address at which our server shows its profiles")
	flag.Parse()
	o.targets = strings.Split(*targets, ",")
	for _, s := range strings.Split(*clients, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return o, fmt.Errorf("-clients %q: must be numbers from 1 on", *clients)
		}
		o.clients = append(o.clients, n)
	}
	if o.znodes < 1000 || o.znodes%1000 != 0 {
		return o, fmt.Errorf("-znodes %d: must be a multiple of 1,000", o.znodes)
	}
	o.rows, err = regexp.Compile(*rows)
	return o, err
}

// busyLimit is how much of the processors others may use.
const busyLimit = 0.1

func run(o options) error {
	dir, remove, err := process.WorkDir(o.dir)
	if err != nil {
		return err
	}
	defer remove()
	o.dir = dir
	if b := process.Others(time.Second); b.Share > busyLimit && !o.force {
		return fmt.Errorf("%s; nothing was measured (-force measures all the same, and marks the report)", b)
	}
	process.WarmMemory(o.warm)
	wanted := strings.Split(o.sections, ",")
	for _, name := range wanted {
		if !slices.ContainsFunc(sections, func(s section) bool { return s.name == name }) {
			return fmt.Errorf("-sections: there is no %q", name)
		}
	}
	all := map[string]*report.Section{}
	for _, part := range sections {
		if !slices.Contains(wanted, part.name) {
			continue
		}
		begun := time.Now()
		s := &report.Section{When: begun.UTC().Format("2006-01-02 15:04 UTC"), Machine: process.Machine(o.dir), Method: part.method,
			Rounds: o.rounds, Duration: o.duration.String(), Forced: o.force, Versions: map[string]string{report.ZooKeeper: "3.9.5, " + javaVersion()}}
		o := o
		var err error
		if o.dir, err = os.MkdirTemp(o.dir, part.name+"-"); err != nil {
			return err
		}
		if err := part.measure(o, s); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		process.KillAll()
		if err := os.RemoveAll(o.dir); err != nil {
			return err
		}
		s.Took = time.Since(begun).Round(time.Second).String()
		all[part.name] = s
	}
	return keep(o.out, all)
}
