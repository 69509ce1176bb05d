// Command crossover measures, on the disk that it is pointed at, where one way of doing input and output begins to pay more than another: the commit
// journal by pwrite or through io_uring, the size from which a batch should skip the journal, syncs of several dirty files, and cold reads; and
// what a producer waits beside a cold full read. The defaults of engine/vfs (`millrace.io=auto`), engine/journal and the broker cite it.
//
//	go run ./benchmarks/crossover -out benchmarks/results     # make bench-crossover
//	go run ./benchmarks/crossover -sections sync,cold -rounds 5
//
// Every row is measured in rounds in which the ways alternate; medians of the rounds are shown.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"millrace/benchmarks/process"
)

type options struct {
	sections string
	rounds   int
	n        int
	dir      string
	millrace string
	out      string
	warm     int
	ways     []string
	duration time.Duration
	gb       float64
}

// section is one question: rows (a figure on the x axis each), and ways that are compared in every row.
type section struct {
	name, title, x string
	method         string
	measure        func(o options, r *results) error
}

var sections = []section{
	{"journal", "One journal write: O_DIRECT|O_DSYNC into written space", "KiB", "pwrite on the goroutine; the same through io_uring, waiting in the kernel (ring) or in Go's poller (parked)", measureJournal},
	{"threshold", "A batch acknowledged: through the journal or by syncing its file", "KiB", "engine/journal, one log, one writer; background syncing and reuse of the journal's files included", measureThreshold},
	{"sync", "Making dirty files durable", "dirty files", "1 KiB appended to each, then only the sync is timed", measureSync},
	{"cold", "Reading cold parts of 64 KiB", "parts", "at random places of a file that was dropped from the page cache; all parts of an answer", measureCold},
	{"beside", "Produce beside a cold full read", "mode", "1000 requests/s of 10 × 100 B over 8 connections; 4 partitions read from the start, dropped from the page cache again and again, at so many MB/s (the page-cache rows: an ack waits for no disk)", measureBeside},
}

func main() {
	var o options
	var names []string
	for _, s := range sections {
		names = append(names, s.name)
	}
	flag.StringVar(&o.sections, "sections", strings.Join(names, ","), "which sections, comma separated")
	flag.IntVar(&o.rounds, "rounds", 5, "rounds; every round measures each way once, medians are shown")
	flag.IntVar(&o.n, "n", 200, "operations of one way in one round")
	flag.StringVar(&o.dir, "dir", "", "folder on the disk to be measured (default: a new one in this folder, removed afterwards)")
	flag.StringVar(&o.millrace, "millrace", "bin/millrace", "the broker's binary, for the section beside")
	flag.StringVar(&o.out, "out", "", "folder that keeps tables, plots and raw figures (default: none kept)")
	flag.IntVar(&o.warm, "warm", 3, "GiB of memory to touch first: the host takes free memory back")
	flag.DurationVar(&o.duration, "duration", 5*time.Second, "length of one measurement of a running broker")
	flag.Float64Var(&o.gb, "gb", 2, "GB that the cold full read reads")
	waysArg := flag.String("ways", "pool,auto,ring", "values of millrace.io that running brokers are compared with, comma separated")
	flag.Parse()
	o.ways = strings.Split(*waysArg, ",")
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "crossover:", err)
		process.KillAll()
		os.Exit(1)
	}
}

func run(o options) error {
	dir, remove, err := process.WorkDir(o.dir)
	if err != nil {
		return err
	}
	defer remove()
	o.dir = dir
	if busy := process.BusyShare(time.Second); busy > 0.25 {
		fmt.Fprintf(os.Stderr, "crossover: %.0f %% of the processors are busy with something else; figures will be off\n", busy*100)
	}
	process.WarmMemory(o.warm)
	wanted := strings.Split(o.sections, ",")
	var all []*results
	for _, s := range sections {
		if !slices.Contains(wanted, s.name) {
			continue
		}
		r := newResults(s, o)
		dir, err := os.MkdirTemp(o.dir, s.name+"-")
		if err != nil {
			return err
		}
		o := o
		o.dir = dir
		if err := s.measure(o, r); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		os.RemoveAll(dir)
		fmt.Println(r.table())
		all = append(all, r)
	}
	return keep(o.out, all)
}
