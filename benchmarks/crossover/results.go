package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"millrace/benchmarks/peers/report"
	"millrace/benchmarks/process"
)

// results are the figures of one section, kept in the form of the other systems' comparison.
type results struct {
	section
	data *report.Section
	ways []string
	xs   map[string]float64 // by row name; none: the rows are not numbers
}

func newResults(s section, o options) *results {
	return &results{section: s, xs: map[string]float64{}, data: &report.Section{
		When: time.Now().Format("2006-01-02 15:04"), Machine: process.Machine(o.dir), Method: s.method, Rounds: o.rounds, Duration: fmt.Sprintf("%d operations", o.n)}}
}

// row measures every way once in each round, in an order that turns.
func (r *results) row(o options, name string, x float64, ways []way) error {
	if x > 0 {
		r.xs[name] = x
	}
	row := r.data.Row(name)
	for round := range o.rounds {
		for i := range ways {
			w := ways[(i+round)%len(ways)]
			if !slices.Contains(r.ways, w.name) {
				r.ways = append(r.ways, w.name)
			}
			v, err := w.run()
			if err != nil {
				return fmt.Errorf("%s, %s: %w", name, w.name, err)
			}
			row.Add(w.name, v)
		}
	}
	slices.SortFunc(r.ways, func(a, b string) int { return cmp.Compare(order(ways, a), order(ways, b)) })
	return nil
}

// way is one of those compared: run does the work of one round and returns report.P50 and P99.
type way struct {
	name string
	run  func() (report.Values, error)
}

func order(ways []way, name string) int {
	return slices.IndexFunc(ways, func(w way) bool { return w.name == name })
}

func quantiles(took []time.Duration) report.Values {
	slices.Sort(took)
	at := func(q int) float64 { return float64(took[len(took)*q/1000].Nanoseconds()) / 1e3 }
	return report.Values{report.P50: at(500), report.P99: at(990)}
}

// table is the section in Markdown: p50 / p99 in µs, the best p50 of each row in bold.
func (r *results) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n%s. %s; %s; %d rounds, medians; p50 / p99 in µs.\n\n| %s | %s |\n|---|", r.title, r.method, r.data.When, r.data.Machine, r.data.Rounds, r.x, strings.Join(r.ways, " | "))
	b.WriteString(strings.Repeat("---|", len(r.ways)) + "\n")
	for _, row := range r.data.Rows {
		best := ""
		for _, w := range r.ways {
			mid, _, _, ok := row.Median(w, report.P50)
			if least, _, _, _ := row.Median(best, report.P50); ok && (best == "" || mid < least) {
				best = w
			}
		}
		fmt.Fprintf(&b, "| %s |", row.Name)
		for _, w := range r.ways {
			mid, _, _, ok := row.Median(w, report.P50)
			tail, _, _, _ := row.Median(w, report.P99)
			format := " %.0f / %.0f"
			if w == best {
				format = " **%.0f** / %.0f"
			}
			if ok {
				fmt.Fprintf(&b, format, mid, tail)
			}
			if read, _, _, ok := row.Median(w, report.MBps); ok {
				fmt.Fprintf(&b, ", %.0f MB/s read", read)
			}
			b.WriteString(" |")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// keep writes the tables, the raw figures and a plot of each section whose rows are numbers. Sections that were not measured stay.
func keep(out string, all []*results) error {
	if out == "" {
		return nil
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	base := filepath.Join(out, "crossover-"+time.Now().Format("2006-01-02"))
	file, err := report.Read(base + ".json")
	if err != nil {
		return err
	}
	for _, r := range all {
		file.Sections[r.name] = r.data
	}
	var text strings.Builder
	fmt.Fprintf(&text, "# Where one way begins to pay more than another\n\nMade by `make bench-crossover`; `millrace.io=auto`, the journal's threshold and the number of files from which one syncfs is used follow it.\n\n")
	for _, s := range sections {
		data := file.Sections[s.name]
		if data == nil {
			continue
		}
		r := again(s, data)
		text.WriteString(r.table())
		if svg := plot(r); svg != "" {
			if err := os.WriteFile(base+"-"+s.name+".svg", []byte(svg), 0o644); err != nil {
				return err
			}
			fmt.Fprintf(&text, "\n![%s](%s-%s.svg)\n", s.title, filepath.Base(base), s.name)
		}
		text.WriteString("\n")
	}
	if err := os.WriteFile(base+".md", []byte(text.String()), 0o644); err != nil {
		return err
	}
	return file.Write(base + ".json")
}

// again makes results of kept figures.
func again(s section, data *report.Section) *results {
	r := &results{section: s, data: data, xs: map[string]float64{}}
	for _, row := range data.Rows {
		var x float64
		if _, err := fmt.Sscan(row.Name, &x); err == nil {
			r.xs[row.Name] = x
		}
		for _, f := range row.Figures {
			if !slices.Contains(r.ways, f.Target) {
				r.ways = append(r.ways, f.Target)
			}
		}
	}
	return r
}
