package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"millrace/benchmarks/peers/report"
)

// write writes the figures, the tables and the plot.
func write(out string, f *report.File) error {
	if err := f.Write(out + ".json"); err != nil {
		return err
	}
	sec := f.Sections["engine"]
	if err := os.WriteFile(out+".svg", []byte(plot(sec)), 0o644); err != nil {
		return err
	}
	return os.WriteFile(out+".md", []byte(page(filepath.Base(out), sec)), 0o644)
}

// mainMetric is what a row is compared by, and whether more of it is better.
func mainMetric(r *report.Row) (metric string, more bool) {
	for _, f := range r.Figures {
		if len(f.Values[report.Seconds]) > 0 {
			return report.Seconds, false
		}
	}
	return report.PerSecond, true
}

// standing compares Millrace with the best of those whose acknowledgement means as much: above 1 it is ahead. ok is false where one of the
// two is missing.
func standing(r *report.Row) (times float64, best string, ok bool) {
	metric, more := mainMetric(r)
	mine, _, _, have := r.Median(millracePeer.name, metric)
	for _, f := range r.Figures {
		v, _, _, there := r.Median(f.Target, metric)
		if !there || f.Target == millracePeer.name || f.Not != "" {
			continue
		}
		t := mine / v
		if !more {
			t = v / mine
		}
		if !ok || t < times {
			times, best, ok = t, f.Target, true
		}
	}
	return times, best, ok && have
}

// line is a row in one line, for who watches the run.
func line(r *report.Row) string {
	var b strings.Builder
	metric, _ := mainMetric(r)
	fmt.Fprintf(&b, "%-58s", r.Name)
	for _, f := range r.Figures {
		if v, _, _, ok := r.Median(f.Target, metric); ok {
			fmt.Fprintf(&b, "  %s %s", f.Target, number(v))
		}
	}
	if t, best, ok := standing(r); ok {
		fmt.Fprintf(&b, "  → %.2f × %s", t, best)
	}
	return b.String()
}

func number(v float64) string {
	if v < 10 {
		return fmt.Sprintf("%.3g", v)
	}
	return fmt.Sprintf("%.0f", v)
}

func page(name string, s *report.Section) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# The engine beside other logs for Go programs\n\nMade by `make bench-engine` (benchmarks/engine). %s, %s. %d rounds of %s, %s in all. %s\n\n", s.When, s.Machine, s.Rounds, s.Duration, s.Took, s.Method)
	var versions []string
	for _, p := range peers {
		if v := s.Versions[p.name]; v != "" {
			versions = append(versions, p.name+" "+v)
		}
	}
	fmt.Fprintf(&b, "Versions: %s.\n\n", strings.Join(versions, ", "))
	for _, n := range s.Notes {
		fmt.Fprintf(&b, "%s\n\n", n)
	}
	b.WriteString(guide)
	fmt.Fprintf(&b, "\n![times the best of the others](%s.svg)\n", name)
	tables := []struct{ title, metric, of string }{
		{"Appends and reads a second", report.PerSecond, ""}, {"Seconds until it is open", report.Seconds, ""},
		{"p50 of an append, µs", report.P50, ""}, {"p99 of an append, µs", report.P99, ""},
		{"Processor time, µs an append or read (of the whole process; for a reopening in all)", cpuOp, ""},
		{"Bytes on the disk for each byte of records", disk, ""},
	}
	for _, t := range tables {
		table(&b, s, t.title, t.metric)
	}
	return b.String()
}

func table(b *strings.Builder, s *report.Section, title, metric string) {
	fmt.Fprintf(b, "\n## %s\n\n| row |", title)
	main := metric == report.PerSecond || metric == report.Seconds
	for _, p := range peers {
		fmt.Fprintf(b, " %s |", p.name)
	}
	if main {
		b.WriteString(" Millrace against the best other |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(peers)))
	if main {
		b.WriteString("---|")
	}
	b.WriteString("\n")
	for _, r := range s.Rows {
		if !slices.ContainsFunc(r.Figures, func(f *report.Figure) bool { return len(f.Values[metric]) > 0 }) {
			continue
		}
		fmt.Fprintf(b, "| %s |", r.Name)
		for _, p := range peers {
			b.WriteString(" " + cell(r, p.name, metric) + " |")
		}
		if t, best, ok := standing(r); main && ok {
			mark := ""
			if t < 1 {
				mark = " **behind**"
			}
			fmt.Fprintf(b, " %.2f × %s%s |", t, best, mark)
		}
		b.WriteString("\n")
	}
}

func cell(r *report.Row, target, metric string) string {
	why := ""
	for _, f := range r.Figures {
		if f.Target == target {
			why = f.Not
		}
	}
	v, low, high, ok := r.Median(target, metric)
	switch {
	case !ok && why == "":
		return ""
	case !ok:
		return "n/a: " + why
	case why != "":
		return "(" + number(v) + ": " + why + ")"
	case low == high:
		return number(v)
	}
	return fmt.Sprintf("%s (%s–%s)", number(v), number(low), number(high))
}

// guide says how to read the tables.
const guide = `What an acknowledgement means: **synced**, the records survive a loss of power; **unsynced**, the operating system has them and a crash of the process loses nothing. Figures in
brackets are of a weaker acknowledgement, pebble's, which leaves records in the process's memory for a moment; they do not count for the best. Millrace, raft-wal, etcd, wlog, pebble and NATS have a checksum with every record or batch; tidwall/wal has none. Millrace's
many logs share one commit journal in one Store; of the others one instance is opened for each log. raft-wal, tidwall/wal, etcd, wlog and NATS have no group commit: with more than one
writer the runner gathers what waits into one call for them, so that they are measured as a good program around them would use them. Scans and random reads are of
files in the page cache; tidwall/wal and NATS answer from copies in the process's memory where they keep them. The tail read times the reading alone, of the batch that was just
appended. Reopening is of a copy of the files of a store in use (synced rows: synced), until the next append would be accepted. In a table of the disk, what a library reserves ahead
counts: with few bytes written it is most of it.

Where Millrace is behind, and what was tried: [engine-causes.md](engine-causes.md).
`

const (
	plotLeft, plotWidth, barStep, plotTop = 430, 460, 16, 40
)

// plot draws how Millrace stands to the best other in each row, on a logarithmic scale: right of 1 is ahead.
func plot(s *report.Section) string {
	type bar struct {
		row, best string
		times     float64
	}
	var bars []bar
	low, high := 0.5, 2.0
	for _, r := range s.Rows {
		if t, best, ok := standing(r); ok && t > 0 {
			bars = append(bars, bar{r.Name, best, t})
			low, high = min(low, t), max(high, t)
		}
	}
	x := func(t float64) float64 {
		return plotLeft + plotWidth*(math.Log(t)-math.Log(low))/(math.Log(high)-math.Log(low))
	}
	var b strings.Builder
	height := plotTop + len(bars)*barStep + 10
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">`+"\n", plotLeft+plotWidth+160, height)
	b.WriteString(`<rect width="100%" height="100%" fill="white"/><text x="10" y="18" font-size="14">Millrace's engine: times the best of the others (logarithmic; right of the line is ahead)</text>` + "\n")
	for i, bar := range bars {
		y := plotTop + i*barStep
		left, right, colour := x(1), x(bar.times), "#1b6ca8"
		if bar.times < 1 {
			left, right, colour = right, left, "#c0392b"
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text><rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/><text x="%.1f" y="%d">%.2f × %s</text>`+"\n",
			plotLeft-8, y+11, bar.row, left, y, max(1, right-left), barStep-4, colour, right+5, y+11, bar.times, bar.best)
	}
	fmt.Fprintf(&b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="black"/>`+"\n</svg>\n", x(1), plotTop-6, x(1), height-6)
	return b.String()
}
