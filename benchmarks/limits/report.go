package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"millrace/benchmarks/load"
	"millrace/benchmarks/process"
)

// report gathers rounds and prints medians.
type report struct {
	head   string
	lines  []string
	raw    map[string]map[string][]load.Result // "mode | row" -> target -> rounds
	missed []string
}

func newReport(o options) *report {
	head := fmt.Sprintf("%s; %s; %d rounds of %s, targets alternating, medians (requests/s with lowest–highest)\n", time.Now().Format("2006-01-02 15:04"), process.Machine(o.dir), o.rounds, o.duration)
	fmt.Println(head)
	r := &report{head: head, raw: map[string]map[string][]load.Result{}}
	r.line("| mode | row | target | req/s | MB/s | p50 / p99 / p99.9 µs | CPU µs/req | CPU s/GB | to toy | must / aim |")
	r.line("|---|---|---|---|---|---|---|---|---|---|")
	return r
}

func (r *report) line(s string) {
	fmt.Println(s)
	r.lines = append(r.lines, s)
}

func key(mode string, w row) string { return mode + " | " + w.name }

func (r *report) add(mode string, w row, target string, res load.Result) {
	k := key(mode, w)
	if r.raw[k] == nil {
		r.raw[k] = map[string][]load.Result{}
	}
	r.raw[k][target] = append(r.raw[k][target], res)
}

func median[T int64 | float64](v []T) T {
	slices.Sort(v)
	return v[len(v)/2]
}

func medians(rs []load.Result) (m load.Result, low, high float64) {
	pick := func(f func(load.Result) float64) []float64 {
		out := make([]float64, len(rs))
		for i, r := range rs {
			out[i] = f(r)
		}
		return out
	}
	per := pick(func(r load.Result) float64 { return r.PerSecond })
	m.PerSecond = median(per)
	low, high = per[0], per[len(per)-1]
	m.P50 = int64(median(pick(func(r load.Result) float64 { return float64(r.P50) })))
	m.P99 = int64(median(pick(func(r load.Result) float64 { return float64(r.P99) })))
	m.P999 = int64(median(pick(func(r load.Result) float64 { return float64(r.P999) })))
	for _, r := range rs {
		m.Requests += r.Requests
		m.Bytes += r.Bytes
		m.CPU += r.CPU
		m.Elapsed += r.Elapsed
	}
	return m, low, high
}

// print writes the row's lines, one for each target.
func (r *report) print(mode string, w row) {
	targets := r.raw[key(mode, w)]
	toy, _, _ := medians(targets["toy"])
	for _, name := range []string{"toy", "millrace", "kafka"} {
		rs, ok := targets[name]
		if !ok {
			continue
		}
		m, low, high := medians(rs)
		ratio, goal := "", ""
		if name != "toy" && toy.PerSecond > 0 {
			x := m.PerSecond / toy.PerSecond
			ratio = fmt.Sprintf("%.2f", x)
			if t, ok := w.targets[mode]; ok && name == "millrace" {
				goal = fmt.Sprintf("%.2f / %.2f", t.must, t.aim)
				if x < t.must {
					goal += " MISSED"
					r.missed = append(r.missed, fmt.Sprintf("%s: %.2f, must %.2f", key(mode, w), x, t.must))
				}
			}
		}
		mb := float64(m.Bytes) / m.Elapsed.Seconds() / 1e6
		cpuReq := float64(m.CPU.Microseconds()) / float64(max(1, m.Requests))
		cpuGB := m.CPU.Seconds() / (float64(max(1, m.Bytes)) / 1e9)
		r.line(fmt.Sprintf("| %s | %s | %s | %.0f (%.0f–%.0f) | %.1f | %d / %d / %d | %.1f | %.2f | %s | %s |",
			mode, w.name, name, m.PerSecond, low, high, mb, m.P50, m.P99, m.P999, cpuReq, cpuGB, ratio, goal))
	}
}

func (r *report) finish(out string) error {
	end := "Every target was reached."
	if len(r.missed) > 0 {
		end = "Missed: " + strings.Join(r.missed, "; ") + "."
	}
	fmt.Println("\n" + end)
	if out == "" {
		return nil
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	base := filepath.Join(out, "limits-"+time.Now().Format("2006-01-02"))
	if err := os.WriteFile(base+".md", []byte(r.head+"\n"+strings.Join(r.lines, "\n")+"\n\n"+end+"\n"), 0o644); err != nil {
		return err
	}
	b, err := json.MarshalIndent(r.raw, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(base+".json", b, 0o644)
}
