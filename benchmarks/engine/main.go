// Command engine measures the engine of Millrace, used as a library, beside the append-only logs that Go programs import today, in one run and
// in one process: appends, reads, and opening after a crash. peer.go says what each row asks of a library, and the file of each
// library how it is used and what its acknowledgement means. It is a module of its own, so that its dependencies are nobody else's.
//
//	go run . -dir FOLDER                     # every row; FOLDER is on the disk to be measured
//	go run . -dir FOLDER -rows 'append synced' -peers millrace,tidwall/wal -rounds 5
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"time"

	"millrace/benchmarks/peers/report"
	"millrace/benchmarks/process"
)

type settings struct {
	rows    *regexp.Regexp
	peers   []peer
	rounds  int
	limits  limits
	dir     string
	profile string
}

func main() {
	var s settings
	rowsArg := flag.String("rows", ".", "regular expression: which rows")
	peersArg := flag.String("peers", "", "which libraries, comma separated (default: all)")
	out := flag.String("out", "", "files to write, without their endings .md, .json and .svg (default: none)")
	render := flag.Bool("render", false, "write tables and plot again from the figures of -out")
	warm := flag.Int("warm", 3, "GiB of memory to touch first: the host takes free memory back")
	flag.IntVar(&s.rounds, "rounds", 3, "rounds; the libraries alternate in each, medians are shown")
	flag.DurationVar(&s.limits.time, "time", 250*time.Millisecond, "length of one measurement")
	flag.Int64Var(&s.limits.bytes, "bytes", 96<<20, "most bytes of records of one measurement of appends")
	flag.Int64Var(&s.limits.read, "read", 32<<20, "bytes of records in a log that is read from")
	flag.Int64Var(&s.limits.fill, "fill", 96<<20, "bytes of records in a log that is opened after a crash")
	flag.StringVar(&s.dir, "dir", ".", "folder on the disk to be measured")
	flag.StringVar(&s.profile, "cpuprofile", "", "write a profile of the run there")
	flag.Parse()
	if err := start(s, *rowsArg, *peersArg, *out, *warm, *render); err != nil {
		fmt.Fprintln(os.Stderr, "engine:", err)
		os.Exit(1)
	}
}

func start(s settings, rowsArg, peersArg, out string, warm int, render bool) (err error) {
	if render {
		f, err := report.Read(out + ".json")
		if err != nil {
			return err
		}
		return write(out, f)
	}
	if s.rows, err = regexp.Compile(rowsArg); err != nil {
		return err
	}
	s.peers = peers
	if peersArg != "" {
		s.peers = nil
		for name := range strings.SplitSeq(peersArg, ",") {
			p, err := peerOf(name)
			if err != nil {
				return err
			}
			s.peers = append(s.peers, p)
		}
	}
	if s.dir, err = os.MkdirTemp(s.dir, ".bench-engine-"); err != nil {
		return err
	}
	defer os.RemoveAll(s.dir)
	process.WarmMemory(warm)
	if s.profile != "" {
		f, err := os.Create(s.profile)
		if err != nil {
			return err
		}
		defer f.Close()
		pprof.StartCPUProfile(f)
		defer pprof.StopCPUProfile()
	}
	sec := newSection(s)
	begun := time.Now()
	for _, r := range rows() {
		if s.rows.MatchString(r.name()) {
			from := time.Now()
			if err := runRow(s, r, sec); err != nil {
				return err
			}
			fmt.Printf("%5.1f s  %s\n", time.Since(from).Seconds(), line(sec.Row(r.name())))
		}
	}
	sec.Took = time.Since(begun).Round(time.Second).String()
	if out == "" {
		return nil
	}
	return write(out, &report.File{Sections: map[string]*report.Section{"engine": sec}})
}

func newSection(s settings) *report.Section {
	sec := &report.Section{When: time.Now().UTC().Format("2006-01-02 15:04 MST"), Machine: process.Machine(s.dir), Versions: map[string]string{},
		Rounds: s.rounds, Duration: s.limits.time.String(), Method: method}
	if busy := process.BusyShare(time.Second); busy > 0.25 {
		sec.Notes = append(sec.Notes, fmt.Sprintf("%.0f %% of the processors were busy with something else at the start: read no absolute figure.", busy*100))
	}
	info, _ := debug.ReadBuildInfo()
	for _, p := range s.peers {
		sec.Versions[p.name] = "this tree"
		for _, d := range info.Deps {
			if d.Path == p.module && d.Replace == nil {
				sec.Versions[p.name] = d.Version
			}
		}
	}
	return sec
}

const method = "One process; in every round each library is measured once, in turn; medians of the rounds. Memory was touched beforehand. What was appended is read back and compared."

// runRow measures a row on all libraries that can do it.
func runRow(s settings, r row, sec *report.Section) (err error) {
	var benches []*bench
	defer func() {
		for _, b := range benches {
			err = errors.Join(err, b.end())
		}
	}()
	kept := sec.Row(r.name())
	for i, p := range s.peers {
		if why := r.not(p); why != "" {
			kept.Not(p.name, why)
			continue
		}
		benches = append(benches, newBench(r, p, filepath.Join(s.dir, fmt.Sprint(i)), s.limits))
	}
	for round := range s.rounds {
		for i := range benches {
			b := benches[(i+round)%len(benches)]
			runtime.GC() // the one before leaves its garbage to nobody else
			v, err := b.measure(round == s.rounds-1)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", b.peer.name, r.name(), err)
			}
			kept.Add(b.peer.name, v)
			if r.weaker(b.peer) {
				kept.Not(b.peer.name, b.peer.weaker)
			}
		}
	}
	return nil
}
