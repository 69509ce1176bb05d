package report

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sample is a section with a win, a loss, an absolute goal and a peer that is not there.
func sample() *Section {
	s := &Section{When: "now", Machine: "m", Method: "how <it> & was", Rounds: 3, Duration: "1s"}
	r := s.Row("1 × 100 B, 8 × 1")
	for _, x := range []float64{700, 600, 800} {
		r.Add(PageCache, Values{PerSecond: x, CPURequest: 10})
	}
	r.Add(Kafka, Values{PerSecond: 100, CPURequest: 20})
	r.Add(Synced, Values{PerSecond: 150})
	r.Not(KafkaTuned, "not had: <java> is not installed | really")
	s.Row("something new, 5 messages/s").Add(PageCache, Values{P99: 30, PerSecond: 5})
	s.Row("something new, 5 messages/s").Add(Kafka, Values{P99: 20, PerSecond: 5})
	return s
}

func find(t *testing.T, vs []Verdict, row, ours, theirs, metric string) Verdict {
	t.Helper()
	for _, v := range vs {
		if v.Row == row && v.Ours == ours && v.Theirs == theirs && v.Metric == metric {
			return v
		}
	}
	t.Fatalf("no verdict on %s, %s against %s, %s", row, ours, theirs, metric)
	return Verdict{}
}

// Claim: a comparison is met exactly when the medians' ratio reaches its goal, in the goal's direction.
func TestVerdicts(t *testing.T) {
	vs := Verdicts("limits", sample())
	row := "1 × 100 B, 8 × 1"
	for _, c := range []struct {
		ours, theirs, metric string
		ratio                float64
		met, unset           bool
	}{
		{PageCache, Kafka, PerSecond, 7, true, false},     // at least 6
		{PageCache, Kafka, CPURequest, 0.5, false, false}, // at most 1/8
		{Synced, Kafka, PerSecond, 1.5, false, false},     // at least 1.6
	} {
		v := find(t, vs, row, c.ours, c.theirs, c.metric)
		if v.Ratio != c.ratio || v.Met != c.met || v.Unset != c.unset || v.Not != "" {
			t.Errorf("%s against %s, %s: %+v, want ratio %v, met %v", c.ours, c.theirs, c.metric, v, c.ratio, c.met)
		}
	}
	if v := find(t, vs, row, PageCache, KafkaTuned, PerSecond); v.Met || !strings.Contains(v.Not, "java") {
		t.Errorf("a peer that is not there: %+v", v)
	}
	if v := find(t, vs, "something new, 5 messages/s", PageCache, Kafka, P99); v.Met || !v.Unset || v.Ratio != 1.5 {
		t.Errorf("a fixed rate is judged by its p99, and a higher one is a loss: %+v", v)
	}
}

// Claim: an absolute goal looks at our figure alone, even if the peer has none.
func TestAbsoluteGoalNeedsNoPeer(t *testing.T) {
	for _, c := range []struct {
		seconds float64
		met     bool
	}{{0.9, true}, {1.1, false}} {
		s := &Section{}
		s.Row("10.0 GB, kill -9, start to first ack").Add(Synced, Values{Seconds: c.seconds})
		s.Row("10.0 GB, kill -9, start to first ack").Not(Kafka, "failed: no space")
		if v := find(t, Verdicts("recovery", s), "10.0 GB, kill -9, start to first ack", Synced, Kafka, Seconds); v.Met != c.met || v.Not != "" {
			t.Errorf("%v s: %+v", c.seconds, v)
		}
	}
}

// Claim: medians are the middle of the rounds in any order, and of an even number the mean of the two.
func TestMedian(t *testing.T) {
	r := &Row{}
	for _, x := range []float64{9, 1, 5} {
		r.Add(Kafka, Values{PerSecond: x})
	}
	if m, low, high, ok := r.Median(Kafka, PerSecond); m != 5 || low != 1 || high != 9 || !ok {
		t.Errorf("median %v (%v–%v), %v", m, low, high, ok)
	}
	r.Add(Kafka, Values{PerSecond: 7})
	if m, _, _, _ := r.Median(Kafka, PerSecond); m != 6 {
		t.Errorf("median of four is %v, want 6", m)
	}
	if _, _, _, ok := r.Median(NATS, PerSecond); ok {
		t.Error("a target without figures has a median")
	}
}

// Claim: the plot is well-formed XML whatever rows are called, and shows each figure beside the base; with nothing to compare it is empty.
func TestPlotIsWellFormed(t *testing.T) {
	s := sample()
	s.Row(`a "row" <b> & c`).Add(Kafka, Values{PerSecond: 5})
	s.Row(`a "row" <b> & c`).Add(Synced, Values{PerSecond: 0.001})
	svg := Plot("limits", s)
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
	}
	for _, want := range []string{">7×<", ">1.5×<", "&lt;b&gt;"} {
		if !strings.Contains(svg, want) {
			t.Errorf("the plot has no %q", want)
		}
	}
	if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
		t.Error("the plot has positions that are no numbers")
	}
	if p := Plot("limits", &Section{}); p != "" {
		t.Errorf("a plot of nothing: %s", p)
	}
}

// Claim: a run of one section replaces that section's figures and keeps the others', and the documents show both, with causes, losses
// and peers that are missing.
func TestSectionsAreMergedAndRendered(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "p.json")
	for _, name := range []string{"durable", "limits"} {
		f, err := Read(path)
		if err != nil {
			t.Fatal(err)
		}
		f.Sections[name] = sample()
		if err := f.Write(path); err != nil {
			t.Fatal(err)
		}
	}
	f, err := Read(path)
	if err != nil || len(f.Sections) != 2 {
		t.Fatalf("%d sections, %v", len(f.Sections), err)
	}
	docs := filepath.Join(dir, "docs.md")
	if err := Render(f, []string{"limits", "durable"}, dir, "p", docs, "# x\n- `limits \\| 1 × 100 B, 8 × 1 \\| millrace against kafka \\|`: one disk flush bounds it\n"); err != nil {
		t.Fatal(err)
	}
	page := read(t, docs)
	for _, want := range []string{"one disk flush bounds it", "cause not found yet", "**missed**", "**lost**", "| met |", "java", "p-limits.svg", "250"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	tables := read(t, filepath.Join(dir, "p.md"))
	for _, want := range []string{"700 (600–800)", "not had: <java> is not installed \\| really", "## limits", "## durable"} {
		if !strings.Contains(tables, want) {
			t.Errorf("the tables have no %q", want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "p-limits.svg")); err != nil {
		t.Error(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Claim: a line of causes that would silently fit nothing is refused.
func TestCausesAreChecked(t *testing.T) {
	for _, c := range []struct {
		text string
		ok   bool
	}{{"# head\n- `a \\| b`: text\n", true}, {"- a: text\n", false}, {"- `(`: text\n", false}, {"- `a`:\n", false}} {
		if err := CheckCauses(c.text); (err == nil) != c.ok {
			t.Errorf("%q: %v", c.text, err)
		}
	}
}
