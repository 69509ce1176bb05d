// Command peers holds Millrace against the systems that a user would pick instead, on one machine and in one run: Apache Kafka
// above all, then NATS JetStream, Redis streams, RabbitMQ streams and Jafka. It starts and ends all of them itself.
//
//	go run ./benchmarks/peers                                   # every section
//	go run ./benchmarks/peers -sections limits,durable -rounds 5
//	go run ./benchmarks/peers -sections recovery -gb 10
//	go run ./benchmarks/peers -render                           # documents again, from the figures that are kept
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"millrace/benchmarks/peers/report"
	"millrace/benchmarks/process"
)

type options struct {
	sections   []string
	rounds     int
	duration   time.Duration
	gb         float64
	consumeGB  float64
	partitions []int
	force      bool
	out        string
	docs       string
	name       string
	cache      string
	binaries   string
	warmGB     int
	limit      time.Duration
}

func (o options) bin(name string) string { return filepath.Join(o.binaries, name) }

// sections in the order of a whole run, each with the time it may take at the default sizes; larger sizes get more.
var sections = []struct {
	name    string
	limit   time.Duration
	measure func(*env) error
}{
	{"limits", 15 * time.Minute, measureLimits},
	{"durable", 8 * time.Minute, measureDurable},
	{"tools", 12 * time.Minute, measureTools},
	{"consume", 8 * time.Minute, measureConsume},
	{"latency", 10 * time.Minute, measureLatency},
	{"codecs", 6 * time.Minute, measureCodecs},
	{"start", 8 * time.Minute, measureStart},
	{"recovery", 12 * time.Minute, measureRecovery},
	{"partitions", 20 * time.Minute, measurePartitions},
	{"others", 12 * time.Minute, measureOthers},
}

func main() {
	o, render, err := parse()
	if err == nil && render {
		err = renderAll(o)
	} else if err == nil {
		err = run(o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func parse() (o options, render bool, err error) {
	var names []string
	for _, s := range sections {
		names = append(names, s.name)
	}
	var chosen, parts string
	flag.StringVar(&chosen, "sections", strings.Join(names, ","), "which sections, comma separated")
	flag.IntVar(&o.rounds, "rounds", 3, "rounds; every round measures each system once, medians are shown")
	flag.DurationVar(&o.duration, "duration", 750*time.Millisecond, "length of one measurement")
	flag.Float64Var(&o.gb, "gb", 10, "GB written before the kill of section recovery")
	flag.Float64Var(&o.consumeGB, "consume-gb", 2, "GB read in section consume (never more than -gb)")
	flag.StringVar(&parts, "partitions", "1000,5000,20000", "how many partitions section partitions makes, comma separated")
	flag.BoolVar(&o.force, "force", false, "measure on a busy machine too; the report says so")
	flag.StringVar(&o.out, "out", "benchmarks/results", "folder for figures, tables and plots")
	flag.StringVar(&o.docs, "docs", "docs/performance.md", "the page that holds the figures against the goals; empty for none")
	flag.StringVar(&o.name, "name", "peers-"+time.Now().UTC().Format("2006-01-02"), "name of the result files; sections that they hold already and that do not run now are kept")
	flag.StringVar(&o.cache, "cache", ".cache", "folder for fetched libraries and, in peers/, for data on the disk to be measured")
	flag.StringVar(&o.binaries, "bin", "bin", "folder with millrace, perf-producer and perf-consumer")
	flag.IntVar(&o.warmGB, "warm", 3, "GiB of memory to touch before each section: the host takes free memory back")
	flag.DurationVar(&o.limit, "limit", 90*time.Minute, "most time for the whole run; what is not begun by then is left out")
	flag.BoolVar(&render, "render", false, "measure nothing; write the documents again from the figures that are kept")
	flag.Parse()
	o.sections = strings.Split(chosen, ",")
	for _, name := range o.sections {
		if !slices.Contains(names, name) {
			return o, false, fmt.Errorf("no section %q; there are %s", name, strings.Join(names, ", "))
		}
	}
	for _, word := range strings.Split(parts, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return o, false, fmt.Errorf("-partitions %q: want counts of at least 1, comma separated", parts)
		}
		o.partitions = append(o.partitions, n)
	}
	if o.rounds < 1 || o.duration <= 0 || o.gb <= 0 {
		return o, false, errors.New("-rounds, -duration and -gb must be above 0")
	}
	if o.cache, err = filepath.Abs(o.cache); err == nil {
		o.binaries, err = filepath.Abs(o.binaries)
	}
	o.consumeGB = min(o.consumeGB, o.gb)
	return o, render, err
}

func run(o options) error {
	for _, b := range []string{"millrace", "perf-producer", "perf-consumer"} {
		if _, err := os.Stat(o.bin(b)); err != nil {
			return fmt.Errorf("%w (make build makes it)", err)
		}
	}
	if b := process.Others(time.Second); b.Share > busyLimit && !o.force {
		return fmt.Errorf("%s; nothing was measured (-force measures all the same, and marks the report)", b)
	}
	if err := os.MkdirAll(filepath.Join(o.cache, "peers"), 0o755); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Join(o.cache, "peers"), "run-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	defer process.Shutdown()
	ctx, cancel := context.WithTimeout(context.Background(), o.limit)
	defer cancel()
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	interrupted := make(chan struct{})
	go func() { // ends the process when it is interrupted; else with it
		s := <-stop
		fmt.Fprintf(os.Stderr, "peers: %v: ending what was started\n", s)
		close(interrupted)
		cancel()
		process.Shutdown()
		for range 20 { // the section under way may still write
			os.RemoveAll(dir)
			time.Sleep(50 * time.Millisecond)
		}
		os.Exit(130)
	}()
	shared := &built{}
	for _, s := range sections {
		if !slices.Contains(o.sections, s.name) {
			continue
		}
		if ctx.Err() != nil {
			return fmt.Errorf("section %s and what follows it are left out: the run is over its %s", s.name, o.limit)
		}
		sec := runSection(ctx, o, shared, dir, s.name, s.limit, s.measure)
		select {
		case <-interrupted:
			select {} // a part of a section is not kept; the process is about to end
		default:
		}
		if err := keep(o, s.name, sec); err != nil {
			return err
		}
	}
	return nil
}

// runSection measures one section within its time. When that is over, all servers are killed, so that whatever waits for one fails.
func runSection(ctx context.Context, o options, shared *built, dir, name string, limit time.Duration, measure func(*env) error) *report.Section {
	begun := time.Now()
	if scale := float64(o.rounds) * o.duration.Seconds() / 3; scale > 1 {
		limit = time.Duration(float64(limit) * scale)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			fmt.Fprintf(os.Stderr, "peers: section %s is out of its %s\n", name, limit)
			process.KillAll()
		}
	})()
	e := &env{options: o, ctx: ctx, dir: filepath.Join(dir, name), built: shared, sec: &report.Section{
		When: begun.UTC().Format("2006-01-02 15:04 UTC"), Machine: process.Machine(dir), Versions: versions(o), Rounds: o.rounds, Duration: o.duration.String(), Forced: o.force}}
	fmt.Printf("%s %s\n", begun.UTC().Format("15:04:05"), name)
	process.WarmMemory(o.warmGB)
	err := os.MkdirAll(e.dir, 0o755)
	if err == nil {
		err = measure(e)
	}
	if err != nil {
		e.note("the section ended early: %v", err)
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		e.note("the section was out of its %s", limit)
	}
	process.KillAll()
	os.RemoveAll(e.dir)
	e.sec.Took = time.Since(begun).Round(time.Second).String()
	fmt.Printf("%s %s took %s\n", time.Now().UTC().Format("15:04:05"), name, e.sec.Took)
	return e.sec
}

// keep puts a section into the file of figures and writes the documents.
func keep(o options, name string, sec *report.Section) error {
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	path := filepath.Join(o.out, o.name+".json")
	f, err := report.Read(path)
	if err != nil {
		return err
	}
	f.Sections[name] = sec
	if err := f.Write(path); err != nil {
		return err
	}
	return renderAll(o)
}

func renderAll(o options) error {
	f, err := report.Read(filepath.Join(o.out, o.name+".json"))
	if err != nil {
		return err
	}
	if len(f.Sections) == 0 {
		return fmt.Errorf("there are no figures in %s.json", filepath.Join(o.out, o.name))
	}
	var order []string
	for _, s := range sections {
		order = append(order, s.name)
	}
	return report.Render(f, order, o.out, o.name, o.docs, causes)
}
