package main

import (
	"testing"
	"time"

	"millrace/benchmarks/peers/report"
)

// Claim: every library does every row that it does not refuse, and gives back what went in (the rows check that themselves).
func TestEveryPeerDoesEveryRow(t *testing.T) {
	for _, p := range peers {
		t.Run(p.name, func(t *testing.T) {
			for _, r := range short() {
				if r.not(p) != "" {
					continue
				}
				b := newBench(r, p, t.TempDir()+"/bench", limits{time: 5 * time.Millisecond, bytes: 1 << 20, read: 1 << 20, fill: 1 << 20})
				for round := range 2 {
					v, err := b.measure(round == 1)
					if err != nil {
						t.Fatalf("%s: %v", r.name(), err)
					}
					if v[report.PerSecond] <= 0 && v[report.Seconds] <= 0 {
						t.Errorf("%s: no figure: %v", r.name(), v)
					}
				}
				if err := b.end(); err != nil {
					t.Errorf("%s: close: %v", r.name(), err)
				}
			}
		})
	}
}

// Claim: a record that is changed, missing, twice there or cut is noticed.
func TestCheckerNotices(t *testing.T) {
	good := func() [][]byte {
		var out [][]byte
		m := newRecordMaker(3, 2, 100)
		for range 2 {
			for _, r := range m.make(0) {
				out = append(out, append([]byte(nil), r...))
			}
		}
		return out
	}
	count := func(records [][]byte) error {
		c := newChecker(100)
		for _, r := range records {
			if err := c.add(r); err != nil {
				return err
			}
		}
		return nil
	}
	if err := count(good()); err != nil {
		t.Errorf("good records: %v", err)
	}
	changed := good()
	changed[1][50] ^= 1
	cut := good()
	cut[2] = cut[2][:99]
	twice, missing := good(), good()
	for name, records := range map[string][][]byte{"changed": changed, "cut": cut, "twice": append(twice[:1], twice...), "missing": append(missing[:1], missing[2:]...)} {
		if count(records) == nil {
			t.Errorf("%s: not noticed", name)
		}
	}
}

// Claim: the report names the best other library and says when Millrace is behind it; less is better where seconds are counted.
func TestStanding(t *testing.T) {
	r := &report.Row{Name: "r"}
	r.Add("millrace", report.Values{report.PerSecond: 100})
	r.Add("a", report.Values{report.PerSecond: 50})
	r.Add("b", report.Values{report.PerSecond: 200})
	r.Not("c", "cannot")
	r.Add("d", report.Values{report.PerSecond: 900})
	r.Not("d", "promises less")
	if times, best, ok := standing(r); !ok || times != 0.5 || best != "b" {
		t.Errorf("got %v × %s, %v", times, best, ok)
	}
	s := &report.Row{Name: "s"}
	s.Add("a", report.Values{report.Seconds: 2})
	s.Add("millrace", report.Values{report.Seconds: 1})
	if times, best, ok := standing(s); !ok || times != 2 || best != "a" {
		t.Errorf("seconds: got %v × %s, %v", times, best, ok)
	}
}
