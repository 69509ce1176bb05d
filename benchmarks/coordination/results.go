package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"millrace/benchmarks/peers/report"
)

// column is a metric in the tables.
type column struct {
	name, label, format string
	more                bool // is better
}

var columns = []column{
	{report.PerSecond, "per second", "%.0f", true}, {report.Seconds, "seconds", "%.2f", false}, {report.RSS, "memory MB", "%.0f", false},
	{report.P50, "p50 µs", "%.0f", false}, {report.P99, "p99 µs", "%.0f", false}, {report.P999, "p99.9 µs", "%.0f", false},
	{report.CPURequest, "server CPU µs each", "%.1f", false},
}

// line is a row in one line, for progress.
func line(r *report.Row) string {
	parts := []string{r.Name + ":"}
	for _, m := range columns {
		if cell := cellOf(r, m.name, m.format, m.more); cell != "" {
			parts = append(parts, m.label+" "+cell)
		}
	}
	return strings.Join(parts, "  ")
}

// cellOf is "ours / theirs (how many times better ours is)".
func cellOf(r *report.Row, metric, format string, more bool) string {
	ours, _, _, have := r.Median(report.Synced, metric)
	theirs, _, _, theyHave := r.Median(report.ZooKeeper, metric)
	switch {
	case have && theyHave && ours > 0 && theirs > 0:
		times := ours / theirs
		if !more {
			times = 1 / times
		}
		return fmt.Sprintf(format+" / "+format+" (%.2f×)", ours, theirs, times)
	case have && theyHave:
		return fmt.Sprintf(format+" / "+format, ours, theirs)
	case have:
		return fmt.Sprintf(format+" / –", ours)
	case theyHave:
		return fmt.Sprintf("– / "+format, theirs)
	}
	return ""
}

// table is a section in Markdown, with the columns that it has figures for.
func table(s *report.Section) string {
	var b strings.Builder
	used := slices.DeleteFunc(slices.Clone(columns), func(m column) bool {
		return !slices.ContainsFunc(s.Rows, func(r *report.Row) bool { return cellOf(r, m.name, m.format, m.more) != "" })
	})
	b.WriteString("| row |")
	for _, m := range used {
		b.WriteString(" " + m.label + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(used)) + "\n")
	for _, r := range s.Rows {
		b.WriteString("| " + r.Name + " |")
		for _, m := range used {
			b.WriteString(" " + cellOf(r, m.name, m.format, m.more) + " |")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// keep writes tables, raw figures and a plot of each section. Sections that were not measured stay.
func keep(out string, all map[string]*report.Section) error {
	if out == "" {
		return nil
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	name := "coordination-" + time.Now().UTC().Format("2006-01-02")
	base := filepath.Join(out, name)
	file, err := report.Read(base + ".json")
	if err != nil {
		return err
	}
	for part, s := range all {
		file.Sections[part] = s
	}
	var b strings.Builder
	b.WriteString("# Coordination beside Apache ZooKeeper\n\nMade by `make bench-coordination`. Every cell is Millrace / ZooKeeper, medians of the rounds, and how many times better Millrace is. " +
		"Both sync before they answer; both are one node. The load's own processor time is taken from the same machine.\n")
	for _, part := range sections {
		s := file.Sections[part.name]
		if s == nil {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n%s; %s; %d rounds of %s; took %s; ZooKeeper %s.", part.name, s.Method, s.When, s.Machine, s.Rounds, s.Duration, s.Took, s.Versions[report.ZooKeeper])
		if s.Forced {
			b.WriteString(" **Measured with `-force`: the machine may have been busy with something else; these figures prove nothing.**")
		}
		b.WriteString("\n\n")
		if svg := report.Plot("coordination", s); svg != "" {
			file := name + "-" + part.name + ".svg"
			if err := os.WriteFile(filepath.Join(out, file), []byte(svg), 0o644); err != nil {
				return err
			}
			fmt.Fprintf(&b, "![%s](%s)\n\n", part.name, file)
		}
		b.WriteString(table(s))
	}
	if err := os.WriteFile(base+".md", []byte(b.String()), 0o644); err != nil {
		return err
	}
	return file.Write(base + ".json")
}
