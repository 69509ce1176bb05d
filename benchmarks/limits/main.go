// Command limits measures Millrace against the machine: the same prepared frames go to a toy server that does only what
// cannot be left out (benchmarks/limits/toy) and to the broker, alternating in one run, and the table shows the
// ratios beside the targets of the design. Any other Kafka broker can be named as a third target.
//
//	go run ./benchmarks/limits                         # every row, three rounds of 2 s
//	go run ./benchmarks/limits -rows 'fetch' -modes page-cache
//	go run ./benchmarks/limits -kafka 127.0.0.1:9092 -kafka-pid 4242
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"millrace/benchmarks/load"
	"millrace/benchmarks/process"
)

type options struct {
	rows     *regexp.Regexp
	modes    []string
	rounds   int
	duration time.Duration
	dir      string
	millrace string
	kafka    string
	kafkaPID int
	out      string
	warm     int
	restart  bool
	override []string

	scale      bool
	life       []int // partitions
	partitions []int
	data       []int // GB
}

func main() {
	var o options
	var rowsArg, modesArg string
	flag.StringVar(&rowsArg, "rows", ".", "regular expression: which rows")
	flag.StringVar(&modesArg, "modes", strings.Join([]string{pageCache, synced, syncFiles, echo}, ","), "which modes, comma separated")
	flag.IntVar(&o.rounds, "rounds", 3, "rounds; every round measures each target once, medians are shown (with -scale 0 leaves the throughput tables out)")
	flag.DurationVar(&o.duration, "duration", 2*time.Second, "length of one measurement")
	flag.StringVar(&o.dir, "dir", "", "folder for the servers' data, on the disk to be measured (default: a new one in this folder, removed afterwards)")
	flag.StringVar(&o.millrace, "millrace", "bin/millrace", "the broker's binary")
	flag.StringVar(&o.kafka, "kafka", "", "address of a further broker, measured in every mode as it stands")
	flag.IntVar(&o.kafkaPID, "kafka-pid", 0, "its process id, for processor time")
	flag.StringVar(&o.out, "out", "", "folder that keeps the table and the raw figures (default: none kept)")
	flag.IntVar(&o.warm, "warm", 3, "GiB of memory to touch first: the host takes free memory back")
	flag.BoolVar(&o.restart, "restart", false, "measure start time, idle memory and restarts with 1,000 partitions instead of the rows")
	flag.BoolVar(&o.scale, "scale", false, "measure many partitions and much data instead of the rows")
	o.life, o.partitions, o.data = []int{5000, 10000, 20000}, []int{1, 1000, 20000}, []int{1, 30}
	flag.Func("life", "with -scale: how many partitions a broker is given that is started, stopped and killed; 0 leaves it out (default 5000,10000,20000)", numbers(&o.life))
	flag.Func("partitions", "with -scale: over how many partitions messages/s are measured; 0 leaves it out (default 1,1000,20000)", numbers(&o.partitions))
	flag.Func("data", "with -scale: GB of data, two numbers; 0,0 leaves it out (default 1,30)", numbers(&o.data))
	flag.Func("override", "a setting of the broker, key=value; may be repeated", func(v string) error {
		o.override = append(o.override, v)
		return nil
	})
	flag.Parse()
	o.modes = strings.Split(modesArg, ",")
	var err error
	if o.rows, err = regexp.Compile(rowsArg); err == nil {
		err = run(o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "limits:", err)
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
	if o.restart {
		return measureRestarts(o)
	}
	if o.scale {
		return measureScale(o)
	}
	toy, err := buildToy(o.dir)
	if err != nil {
		return err
	}
	if busy := process.BusyShare(time.Second); busy > 0.25 {
		fmt.Fprintf(os.Stderr, "limits: %.0f %% of the processors are busy with something else; figures will be off\n", busy*100)
	}
	process.WarmMemory(o.warm)
	rep := newReport(o)
	for _, mode := range o.modes {
		var chosen []row
		for _, r := range rows() {
			if slices.Contains(r.modes, mode) && o.rows.MatchString(r.name) {
				chosen = append(chosen, r)
			}
		}
		if len(chosen) == 0 {
			continue
		}
		if err := runMode(o, toy, mode, chosen, rep); err != nil {
			return err
		}
	}
	return rep.finish(o.out)
}

func buildToy(dir string) (string, error) {
	toy := filepath.Join(dir, "toy-bin")
	if out, err := exec.Command("go", "build", "-o", toy, "millrace/benchmarks/limits/toy").CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the toy: %w\n%s", err, out)
	}
	return toy, nil
}

// runMode starts the targets in one mode and measures its rows, alternating between the targets.
func runMode(o options, toyBin, mode string, chosen []row, rep *report) error {
	dir, err := os.MkdirTemp(o.dir, mode+"-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	toy, err := startToy(dir, toyBin, mode)
	if err != nil {
		return err
	}
	defer toy.stop()
	mill, err := startMillrace(dir, o.millrace, mode, o.override...)
	if err != nil {
		return err
	}
	defer mill.stop()
	targets := []*server{toy, mill}
	if o.kafka != "" {
		targets = append(targets, &server{name: "kafka", addr: o.kafka, pid: o.kafkaPID})
	}
	for _, r := range chosen {
		frames := map[string][][]byte{}
		for _, s := range targets {
			f, err := prepare(s, r, mode)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", s.name, r.name, err)
			}
			frames[s.name] = f
		}
		for _, s := range targets {
			if err := warmUp(s, r, frames[s.name], o.duration/8); err != nil {
				return fmt.Errorf("%s, %s, %s: %w", s.name, mode, r.name, err)
			}
		}
		for round := range o.rounds {
			for i := range targets {
				s := targets[(i+round)%len(targets)]
				before := s.cpu()
				res, err := load.Run(s.addr, r.Row, frames[s.name], o.duration)
				if err != nil {
					return fmt.Errorf("%s, %s, %s: %w", s.name, mode, r.name, err)
				}
				res.CPU = s.cpu() - before
				rep.add(mode, r, s.name, res)
			}
		}
		rep.print(mode, r)
	}
	return nil
}

// warmUp runs the row unmeasured: the first touch of files, maps and memory. A broker may need a moment to
// lead what it has just made.
func warmUp(s *server, r row, frames [][]byte, d time.Duration) error {
	patience := time.Now().Add(10 * time.Second)
	for {
		_, err := load.Run(s.addr, r.Row, frames, d)
		if err == nil || s.toy || time.Now().After(patience) {
			return err
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// prepare makes the topic, fills it for a fetch row, and returns the frames to send.
func prepare(s *server, r row, mode string) ([][]byte, error) {
	topic := r.topic(mode)
	if err := s.createTopic(topic, r.Partitions); err != nil {
		return nil, err
	}
	if r.Produce() {
		return [][]byte{load.ProduceFrame(r.Row, topic)}, nil
	}
	return load.PrepareFetch(s.addr, r.Row, topic)
}
