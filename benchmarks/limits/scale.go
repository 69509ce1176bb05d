package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/sys/unix"

	"millrace/benchmarks/load"
	"millrace/benchmarks/process"
)

// topicPartitions is how many partitions a topic has when there are many: one request for all of them stays a usual one.
const topicPartitions = 500

// scaleReport is what -scale keeps.
type scaleReport struct {
	Head  string     `json:"head"`
	Life  []lifeRow  `json:"life"`
	Speed []speedRow `json:"speed"`
	Start []startRow `json:"start"`
	lines []string
}

// lifeRow is one step in the life of a broker with many partitions.
type lifeRow struct {
	Partitions  int     `json:"partitions"`
	Step        string  `json:"step"`
	Seconds     float64 `json:"seconds"`
	CPU         float64 `json:"cpu_s"` // of the broker; 0 of a step that ends it
	RSS         float64 `json:"rss_mb"`
	Descriptors int     `json:"descriptors"`
	Maps        int     `json:"maps"`
	Threads     int     `json:"threads"`
	Note        string  `json:"note,omitempty"`
}

// speedRow is one kind of load over few and many partitions, or little and much data.
type speedRow struct {
	Mode   string                   `json:"mode"`
	Load   string                   `json:"load"`
	Over   []string                 `json:"over"`
	Rounds map[string][]load.Result `json:"rounds"`
}

// startRow is a start over much data.
type startRow struct {
	GB      int     `json:"gb"`
	After   string  `json:"after"`
	Seconds float64 `json:"seconds"`
}

// measureScale shows what many partitions and much data cost (field cases F012, F125, F127).
func measureScale(o options) error {
	dir, err := filepath.Abs(o.dir)
	if err != nil {
		return err
	}
	if busy := process.BusyShare(time.Second); busy > 0.25 {
		fmt.Fprintf(os.Stderr, "limits: %.0f %% of the processors are busy with something else; figures will be off\n", busy*100)
	}
	toy, err := buildToy(dir)
	if err != nil {
		return err
	}
	process.WarmMemory(o.warm)
	var limit syscall.Rlimit
	syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)
	rep := &scaleReport{Head: fmt.Sprintf("%s; %s; %d descriptors allowed; %d rounds of %s, alternating, medians (lowest–highest)",
		time.Now().Format("2006-01-02 15:04"), process.Machine(dir), limit.Max, o.rounds, o.duration)}
	rep.say("%s\n", rep.Head)
	rep.say("The toy makes the same writes to as many files with as many descriptors and nothing else: what it loses from one file to many is the operating system's share," +
		" and the last column is what Millrace keeps beyond that (goal: 0.85). Rounds over many partitions take three times as long in sync mode.\n")
	var parts []part
	for _, n := range o.life {
		if n > 0 {
			parts = append(parts, part{"life-" + strconv.Itoa(n), true, func(dir string) error { return lifeOfMany(o, dir, n, rep) }})
		}
	}
	for _, mode := range []string{pageCache, synced} {
		if o.partitions[0] > 0 && slices.Contains(o.modes, mode) {
			parts = append(parts, part{"speed-" + mode, false, func(dir string) error { return speedOverMany(o, dir, mode, toy, rep) }})
		}
	}
	if len(o.data) == 2 && o.data[1] > 0 {
		parts = append(parts, part{"data", false, func(dir string) error { return speedOverData(o, dir, rep) }})
	}
	// What a part has measured is kept, also when a later one fails.
	var failed error
	for _, p := range parts {
		begun := time.Now()
		folder := filepath.Join(dir, p.name)
		err := os.MkdirAll(folder, 0o755)
		if err == nil {
			err = p.measure(folder)
		}
		unix.Sync() // what is left to be written is not charged to the next part
		if p.manyFiles {
			// Nor is this: ext4 gives inodes that were just deleted to nobody for minutes, and passes over all of them for each file that is
			// made meanwhile.
			defer os.RemoveAll(folder)
		} else {
			os.RemoveAll(folder)
		}
		if err != nil {
			rep.say("\nFAILED: %s: %v\n", p.name, err)
			failed = errors.Join(failed, fmt.Errorf("%s: %w", p.name, err))
		}
		rep.say("\n(%s: %.0f s)\n", p.name, time.Since(begun).Seconds())
	}
	return errors.Join(failed, rep.finish(o.out))
}

// part is what -scale measures in a folder of its own.
type part struct {
	name      string
	manyFiles bool
	measure   func(dir string) error
}

func (r *scaleReport) say(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	fmt.Println(line)
	r.lines = append(r.lines, line)
}

// lifeOfMany makes partitions, writes to and reads from each, and restarts over them.
func lifeOfMany(o options, dir string, n int, rep *scaleReport) error {
	rep.say("| partitions | step | s | broker CPU s | resident MB | descriptors | maps | threads | |\n|---|---|---|---|---|---|---|---|---|")
	l := life{o: o, dir: dir, n: n, rep: rep}
	for made := 0; made < n; made += topicPartitions {
		l.topics = append(l.topics, fmt.Sprintf("many-%d", made/topicPartitions))
	}
	defer func() { l.s.stop() }()
	steps := []struct {
		name string
		do   func() (string, error)
	}{
		{"start, empty", l.start}, {"create", l.create}, {"metadata of all", l.metadata},
		{"produce to each", l.produce}, {"consume from each", l.consume}, {"produce to each again", l.produce},
		{"clean stop", l.stop}, {"start after clean stop", l.start}, {"first record after it", l.first},
		{"produce to each", l.produce}, {"kill -9", l.kill}, {"start after kill -9", l.start}, {"first record after it", l.first},
		{"consume from each", l.consume}, {"clean stop", l.stop}, {"start after clean stop", l.start}, {"delete", l.remove},
	}
	for _, step := range steps {
		begun, pid, cpu := time.Now(), l.s.pid, l.s.cpu()
		note, err := step.do()
		took := time.Since(begun)
		if err != nil {
			return fmt.Errorf("%d partitions, %s: %w", n, step.name, err)
		}
		row := lifeRow{Partitions: n, Step: step.name, Seconds: took.Seconds(), Note: note}
		if l.s.proc != nil {
			row.RSS = float64(process.RSS(l.s.pid)) / 1e6
			row.Descriptors, row.Maps, row.Threads = process.Held(l.s.pid)
			row.CPU = l.s.cpu().Seconds()
			if l.s.pid == pid {
				row.CPU -= cpu.Seconds()
			}
		}
		rep.Life = append(rep.Life, row)
		rep.say("| %d | %s | %.2f | %.2f | %.0f | %d | %d | %d | %s |", n, step.name, row.Seconds, row.CPU, row.RSS, row.Descriptors, row.Maps, row.Threads, note)
	}
	rep.say("")
	return nil
}

// life is a broker with many partitions.
type life struct {
	o      options
	dir    string
	n      int
	rep    *scaleReport
	topics []string
	s      server
}

func (l *life) start() (string, error) {
	s, err := startMillrace(l.dir, l.o.millrace, synced, l.o.override...)
	if err == nil {
		l.s = *s
	}
	return "", err
}

func (l *life) stop() (string, error) {
	err := l.s.proc.Stop(120 * time.Second)
	l.s.proc = nil
	return "", err
}

func (l *life) kill() (string, error) {
	l.s.proc.Kill()
	l.s.proc = nil
	return "", nil
}

// partitions of topic i.
func (l *life) partitions(i int) int { return min(topicPartitions, l.n-i*topicPartitions) }

func (l *life) create() (string, error) {
	for i, t := range l.topics {
		if err := load.CreateTopic(context.Background(), l.s.addr, t, l.partitions(i), nil); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%d topics", len(l.topics)), nil
}

func (l *life) remove() (string, error) {
	for _, t := range l.topics {
		if err := load.DeleteTopic(context.Background(), l.s.addr, t); err != nil {
			return "", err
		}
	}
	return "until answered; files go in the background", nil
}

func (l *life) metadata() (string, error) {
	req := kmsg.NewPtrMetadataRequest()
	req.SetVersion(7)
	b, err := load.RoundTrip(context.Background(), l.s.addr, load.Frame(req))
	return fmt.Sprintf("%d KB", len(b)>>10), err
}

func (l *life) row(i int) load.Row {
	return load.Row{Records: 1, Size: 100, Partitions: l.partitions(i), Connections: 1, InFlight: 1, Acks: 1}
}

func (l *life) produce() (string, error) {
	for i, t := range l.topics {
		if err := load.Fill(l.s.addr, l.row(i), load.ProduceFrame(l.row(i), t), 1); err != nil {
			return "", err
		}
	}
	return "acknowledged, synced", nil
}

func (l *life) first() (string, error) {
	r := load.Row{Records: 1, Size: 100, Partitions: 1, Connections: 1, InFlight: 1, Acks: 1}
	return "", load.Fill(l.s.addr, r, load.ProduceFrame(r, l.topics[len(l.topics)-1]), 1)
}

// consume reads each partition from its beginning and counts those that gave records.
func (l *life) consume() (string, error) {
	got := 0
	for i, topic := range l.topics {
		req := kmsg.NewPtrFetchRequest()
		req.SetVersion(11)
		req.ReplicaID, req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.SessionEpoch = -1, 100, 1, 64<<20, -1
		t := kmsg.NewFetchRequestTopic()
		t.Topic = topic
		for p := range l.partitions(i) {
			q := kmsg.NewFetchRequestTopicPartition()
			q.Partition, q.PartitionMaxBytes = int32(p), 16<<10
			t.Partitions = append(t.Partitions, q)
		}
		req.Topics = append(req.Topics, t)
		resp := kmsg.NewPtrFetchResponse()
		resp.SetVersion(11)
		if err := load.Ask(context.Background(), l.s.addr, req, resp); err != nil {
			return "", err
		}
		for _, t := range resp.Topics {
			for _, p := range t.Partitions {
				if p.ErrorCode != 0 {
					return "", fmt.Errorf("%s-%d: error code %d", topic, p.Partition, p.ErrorCode)
				}
				if len(p.RecordBatches) > 0 {
					got++
				}
			}
		}
	}
	if got != l.n {
		return "", fmt.Errorf("%d of %d partitions gave records", got, l.n)
	}
	return "", nil
}

// scaleLoads are the loads of the throughput tables: one batch a request.
var scaleLoads = []struct {
	name string
	load.Row
}{
	{"10 × 100 B, 4 × 5", load.Row{Records: 10, Size: 100, Partitions: 1, Connections: 4, InFlight: 5, Acks: 1, Spread: true}},
	{"100 × 100 B, 4 × 5", load.Row{Records: 100, Size: 100, Partitions: 1, Connections: 4, InFlight: 5, Acks: 1, Spread: true}},
	{"16 × 1 KiB, 4 × 5", load.Row{Records: 16, Size: 1024, Partitions: 1, Connections: 4, InFlight: 5, Acks: 1, Spread: true}},
}

// place is one partition that a load goes to.
type place struct {
	topic     string
	partition int32
}

// speedOverMany sends the same load to few and many partitions of one broker. Each request carries one batch for one partition; partitions take turns
// in random order. The toy shows beside it what the same writes to as many files cost the operating system.
func speedOverMany(o options, dir, mode, toyBin string, rep *scaleReport) error {
	s, err := startMillrace(dir, o.millrace, mode, o.override...)
	if err != nil {
		return err
	}
	defer func() { s.proc.Stop(120 * time.Second) }()
	toy, err := startToy(dir, toyBin, mode)
	if err != nil {
		return err
	}
	defer toy.stop()
	var names []string
	places := map[string][]place{}
	all := 0
	for _, c := range o.partitions {
		name := strconv.Itoa(c)
		if places[name], err = makePlaces(s, c); err != nil {
			return err
		}
		names = append(names, name)
		all += c
	}
	if mode == synced {
		// What is synced must also reach the segments' own blocks: a second shows what journal and memory take before that, not what goes on for long.
		// (In page-cache mode three would fill the disk.)
		o.duration *= 3
	}
	for _, l := range scaleLoads {
		if !o.rows.MatchString(l.name) {
			continue
		}
		r := l.Row
		r.Body = load.Batch(l.Records, l.Size)
		heads := map[string][][]byte{}
		for name, list := range places {
			for _, p := range list {
				f := load.ProduceFrameTo(l.Row, p.topic, p.partition, r.Body)
				heads[name] = append(heads[name], slices.Clone(f[:len(f)-len(r.Body)]))
			}
		}
		row := speedRow{Mode: mode, Load: l.name}
		for _, name := range names {
			row.Over = append(row.Over, name, "toy: "+name)
		}
		if err := rep.speed(o, dir, row, r, func(name string) (string, int, [][]byte) {
			if count, ok := strings.CutPrefix(name, "toy: "); ok {
				return toy.addr, toy.pid, heads[count]
			}
			return s.addr, s.pid, heads[name]
		}); err != nil {
			return fmt.Errorf("%w; the broker's last words: %s", err, s.proc.LastWords())
		}
	}
	row := lifeRow{Partitions: all, Step: "after the loads, " + mode, RSS: float64(process.RSS(s.pid)) / 1e6}
	row.Descriptors, row.Maps, row.Threads = process.Held(s.pid)
	rep.Life = append(rep.Life, row)
	rep.say("\nAfter the loads, %s: %.0f MB resident, %d descriptors, %d maps, %d threads.\n", mode, row.RSS, row.Descriptors, row.Maps, row.Threads)
	return nil
}

// makePlaces makes so many partitions and writes one record to each, so that it has its files and indexes. They come in random order.
func makePlaces(s *server, count int) ([]place, error) {
	var list []place
	for made := 0; made < count; made += topicPartitions {
		topic, k := fmt.Sprintf("of-%d-%d", count, made/topicPartitions), min(topicPartitions, count-made)
		if err := load.CreateTopic(context.Background(), s.addr, topic, k, nil); err != nil {
			return nil, err
		}
		for p := range k {
			list = append(list, place{topic, int32(p)})
		}
		touch := load.Row{Records: 1, Size: 100, Partitions: k, Connections: 1, InFlight: 1, Acks: 1}
		if err := load.Fill(s.addr, touch, load.ProduceFrame(touch, topic), 1); err != nil {
			return nil, err
		}
	}
	rand.Shuffle(count, func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list, nil
}

// speed measures one load over each of several targets, alternating. Each begins without dirty pages of the one before.
func (rep *scaleReport) speed(o options, dir string, row speedRow, r load.Row, target func(name string) (addr string, pid int, frames [][]byte)) error {
	if len(rep.Speed) == 0 || rep.Speed[len(rep.Speed)-1].Mode != row.Mode {
		rep.say("\n| mode | load | over | messages/s | p50 / p99 / p99.9 µs | CPU µs/req (in the kernel) | to its first | to the toy, same files | kept of what the toy keeps |\n|---|---|---|---|---|---|---|---|---|")
	}
	row.Rounds = map[string][]load.Result{}
	for round := -1; round < o.rounds; round++ { // the first is not kept
		for i := range row.Over {
			name := row.Over[(i+max(0, round))%len(row.Over)]
			addr, pid, frames := target(name)
			syncDisk(dir)
			d := o.duration
			if round < 0 {
				d /= 2
			}
			user, system := process.Times(pid)
			res, err := load.Run(addr, r, frames, d)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", row.Load, name, err)
			}
			u, k := process.Times(pid)
			res.CPU, res.Kernel = u-user+k-system, k-system
			if round >= 0 {
				row.Rounds[name] = append(row.Rounds[name], res)
			}
		}
	}
	if o.rounds > 0 {
		rep.saySpeed(row, r)
		rep.Speed = append(rep.Speed, row)
	}
	return nil
}

func (rep *scaleReport) saySpeed(row speedRow, r load.Row) {
	per := float64(r.Records)
	if !r.Produce() {
		per *= float64(r.Fetch / len(load.Batch(r.Records, r.Size)))
	}
	first := map[bool]float64{} // by whether it is the toy's
	loses := func(name string, m load.Result) float64 {
		_, toy := strings.CutPrefix(name, "toy: ")
		if first[toy] == 0 {
			first[toy] = m.PerSecond
		}
		return m.PerSecond / first[toy]
	}
	for _, name := range row.Over {
		m, low, high := medians(row.Rounds[name])
		keeps, beside := loses(name, m), " | "
		if rs := row.Rounds["toy: "+name]; len(rs) > 0 {
			t, _, _ := medians(rs)
			beside = fmt.Sprintf("%.2f | %.2f", m.PerSecond/t.PerSecond, keeps/loses("toy: "+name, t))
		}
		var kernel time.Duration
		for _, res := range row.Rounds[name] {
			kernel += res.Kernel
		}
		n := float64(max(1, m.Requests))
		rep.say("| %s | %s | %s | %.0f (%.0f–%.0f) | %d / %d / %d | %.1f (%.1f) | %.2f | %s |", row.Mode, row.Load, name, m.PerSecond*per, low*per, high*per,
			m.P50, m.P99, m.P999, float64(m.CPU.Microseconds())/n, float64(kernel.Microseconds())/n, keeps, beside)
	}
}

// syncDisk writes out what is dirty in the file system of dir.
func syncDisk(dir string) {
	if f, err := os.Open(dir); err == nil {
		_ = unix.Syncfs(int(f.Fd())) // what fails here shows in the servers
		f.Close()
	}
}

func (r *scaleReport) finish(out string) error {
	if out == "" {
		return nil
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	base := filepath.Join(out, "scale-"+time.Now().Format("2006-01-02"))
	if err := os.WriteFile(base+".md", []byte(strings.Join(r.lines, "\n")+"\n"), 0o644); err != nil {
		return err
	}
	b, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(base+".json", b, 0o644)
}

// numbers parses a flag of comma-separated numbers.
func numbers(into *[]int) func(string) error {
	return func(v string) error {
		*into = nil
		for f := range strings.SplitSeq(v, ",") {
			n, err := strconv.Atoi(strings.TrimSpace(f))
			if err != nil {
				return err
			}
			*into = append(*into, n)
		}
		return nil
	}
}
