package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"millrace/benchmarks/peers/report"
)

// Claim: tables name the best way of each row, plots have a line for each way, and what is kept is drawn again when other sections are measured.
func TestTablesAndPlots(t *testing.T) {
	o := options{rounds: 3, n: 10}
	r := newResults(sections[2], o)
	fixed := func(d time.Duration) func() (report.Values, error) {
		return func() (report.Values, error) { return quantiles([]time.Duration{d, d, 2 * d}), nil }
	}
	for _, row := range []struct {
		name       string
		x          float64
		ring, fsys time.Duration
	}{{"1", 1, time.Millisecond, 2 * time.Millisecond}, {"64", 64, 9 * time.Millisecond, time.Millisecond}} {
		if err := r.row(o, row.name, row.x, []way{{"ring", fixed(row.ring)}, {"syncfs", fixed(row.fsys)}}); err != nil {
			t.Fatal(err)
		}
	}
	out := t.TempDir()
	if err := keep(out, []*results{r}); err != nil {
		t.Fatal(err)
	}
	if err := keep(out, nil); err != nil {
		t.Fatal(err)
	}
	text := read(t, out, "*.md")
	for _, want := range []string{"| dirty files | ring | syncfs |", "| 1 | **1000** / 2000 | 2000 / 4000 |", "| 64 | 9000 / 18000 | **1000** / 2000 |", "-sync.svg)"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if svg := read(t, out, "*-sync.svg"); strings.Count(svg, "<polyline") != 2 || strings.Contains(svg, "NaN") {
		t.Errorf("the plot:\n%s", svg)
	}
	if r := newResults(sections[4], o); plot(r) != "" {
		t.Error("a plot of nothing")
	}
}

func read(t *testing.T, dir, pattern string) string {
	t.Helper()
	names, _ := filepath.Glob(filepath.Join(dir, pattern))
	if len(names) != 1 {
		t.Fatalf("%s: %q", pattern, names)
	}
	b, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
