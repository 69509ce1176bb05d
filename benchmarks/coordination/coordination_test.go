package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"millrace/benchmarks/peers/report"
	"millrace/benchmarks/process"
)

func TestMain(m *testing.M) {
	code := m.Run()
	process.KillAll()
	os.Exit(code)
}

// TestRows runs every row for a moment against our server; each reads back what it has written.
func TestRows(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "millrace")
	if out, err := exec.Command("go", "build", "-o", bin, "millrace/tools/millrace").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	o := options{millrace: bin, targets: []string{report.Synced}, rows: regexp.MustCompile("."), clients: []int{1, 3}, rounds: 1, duration: 20 * time.Millisecond, warmUp: 60 * time.Millisecond}
	all := map[string]*report.Section{}
	for _, part := range sections[:2] {
		o.dir = t.TempDir()
		s := &report.Section{}
		if err := part.measure(o, s); err != nil {
			t.Fatalf("%s: %v", part.name, err)
		}
		process.KillAll()
		all[part.name] = s
	}
	if got, want := len(all["requests"].Rows), len(rows)*len(o.clients)+3; got != want {
		t.Errorf("%d rows of requests, want %d", got, want)
	}
	out := t.TempDir()
	if err := keep(out, all); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(out, "coordination-*.md"))
	if err != nil || len(names) != 1 {
		t.Fatalf("%q, %v", names, err)
	}
	text, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| create, 1 client |", "| 1000 sessions opened at once, each has read |"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no row %q in\n%s", want, text)
		}
	}
}

func TestCellsSayHowManyTimesBetter(t *testing.T) {
	r := &report.Row{Name: "x"}
	r.Add(report.Synced, report.Values{report.PerSecond: 200, report.P50: 10})
	r.Add(report.ZooKeeper, report.Values{report.PerSecond: 100, report.P50: 5})
	if got, want := line(r), "x:  per second 200 / 100 (2.00×)  p50 µs 10 / 5 (0.50×)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
