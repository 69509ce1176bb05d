package report

import (
	"fmt"
	"regexp"
	"strings"
)

// cause is a hand-written reason for what a comparison shows.
type cause struct {
	key  *regexp.Regexp
	text string
}

// parseCauses reads lines "- `regular expression`: text"; the expression is looked for in
// "section | row | ours against theirs | metric". Everything else in the text is for people.
func parseCauses(text string) []cause {
	var out []cause
	line := regexp.MustCompile("(?m)^- `([^`]+)`: (.+)$")
	for _, m := range line.FindAllStringSubmatch(text, -1) {
		if re, err := regexp.Compile(m[1]); err == nil {
			out = append(out, cause{re, m[2]})
		}
	}
	return out
}

// CheckCauses says which lines of the causes cannot be read.
func CheckCauses(text string) error {
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "- ") {
			continue
		}
		m := regexp.MustCompile("^- `([^`]+)`: .+").FindStringSubmatch(line)
		if m == nil {
			return fmt.Errorf("cause %q: want - `expression`: text", strings.TrimSpace(line))
		}
		if _, err := regexp.Compile(m[1]); err != nil {
			return fmt.Errorf("cause %q: %w", strings.TrimSpace(line), err)
		}
	}
	return nil
}

func causeOf(v Verdict, causes []cause) string {
	for _, c := range causes {
		if c.key.MatchString(v.key()) {
			return c.text
		}
	}
	return ""
}

// page is docs/performance.md.
func page(f *File, order []string, results string, causes []cause) string {
	var b strings.Builder
	b.WriteString("# Performance\n<!-- Made by `go run ./benchmarks/peers -render`; do not edit. Causes are written in benchmarks/peers/causes.md. -->\n\n")
	fmt.Fprintf(&b, "Millrace beside the systems that one would pick instead, on one small machine, alternating in one run: `make bench-peers` makes this page. "+
		"[All rows, with spread, method and versions](%s.md). `millrace` is the default, where an ack means on disk; `millrace page-cache` is `millrace.durability=page-cache`, "+
		"Kafka's meaning of an ack. Ratios are ours over theirs. Losses are listed as plainly as wins.\n", results)
	var all []Verdict
	bySection := map[string][]Verdict{}
	for _, name := range order {
		if s, ok := f.Sections[name]; ok {
			bySection[name] = Verdicts(name, s)
			all = append(all, bySection[name]...)
		}
	}
	b.WriteString(floor(f))
	b.WriteString(summary(all, causes))
	b.WriteString("\n## Every comparison\n\nA goal in brackets is no set goal: where none was set, a tie is asked for.\n")
	for _, name := range order {
		s, ok := f.Sections[name]
		if !ok {
			continue
		}
		fmt.Fprintf(&b, "\n### %s\n\n%s\n\n%s; %s.%s\n\n", name, s.Method, s.When, s.Machine, forced(s))
		if Plot(name, s) != "" {
			fmt.Fprintf(&b, "![%s](%s-%s.svg)\n\n", name, results, name)
		}
		b.WriteString(comparisons(bySection[name], causes))
	}
	return b.String()
}

// floor is what Kafka became known with.
func floor(f *File) string {
	best := func(section string, rows string, metric string, times float64, target string) string {
		s, ok := f.Sections[section]
		if !ok {
			return "not measured"
		}
		for _, r := range s.Rows {
			if r.Name == rows {
				if v, _, _, ok := r.Median(target, metric); ok {
					return fmt.Sprintf("%.0f", v*times)
				}
			}
		}
		return "not measured"
	}
	var b strings.Builder
	b.WriteString("\n## The figures that made Kafka known, as the floor\n\n| figure | then | millrace | millrace page-cache | kafka | row |\n|---|---:|---:|---:|---:|---|\n")
	for _, g := range []struct {
		name, then, section, row, metric string
		times                            float64
	}{
		{"k messages/s in, prepared frames", "250", "limits", "100 × 100 B, 4 × 5", PerSecond, 0.1},
		{"k messages/s in, Kafka's own producer", "250", "tools", "Kafka's producer, default settings, 100 B", PerSecond, 0.001},
		{"k messages/s out, Kafka's own consumer", "550", "tools", "Kafka's consumer, 100 B", PerSecond, 0.001},
		{"MB/s of sequential reading, from disk", "600", "consume", "read all, cold", MBps, 1},
		{"MB/s of writing", "600", "limits", "1000 × 100 B, 4 × 5", MBps, 1},
	} {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s: %s |\n", g.name, g.then, best(g.section, g.row, g.metric, g.times, Synced), best(g.section, g.row, g.metric, g.times, PageCache),
			best(g.section, g.row, g.metric, g.times, Kafka), g.section, g.row)
	}
	return b.String()
}

// summary counts, and lists what is lost or missed.
func summary(all []Verdict, causes []cause) string {
	var set, met, free, won, none int
	var b, lost strings.Builder
	for _, v := range all {
		switch {
		case v.Not != "":
			none++
		case v.Unset:
			free++
			if v.Met {
				won++
			}
		default:
			set++
			if v.Met {
				met++
			}
		}
		if v.Not == "" && !v.Met {
			why := causeOf(v, causes)
			if why == "" {
				why = "cause not found yet"
			}
			fmt.Fprintf(&lost, "- %s, %s: %s against %s, %s %s to %s: %s, %s. %s.\n", v.Section, v.Row, v.Ours, v.Theirs, label(v.Metric), format(v.Metric, v.Mine), format(v.Metric, v.Peer),
				ratioText(v.Ratio), asked(v), strings.TrimSuffix(why, "."))
		}
	}
	fmt.Fprintf(&b, "\n## Won and lost\n\n%d of %d set goals are met; of %d further comparisons %d are ties or wins; %d could not be made (a peer failed or was not there).\n", met, set, free, won, none)
	if lost.Len() > 0 {
		b.WriteString("\nMissed goals and losses, each with its cause:\n\n" + lost.String())
	}
	return b.String()
}

func asked(v Verdict) string {
	if v.Unset {
		return "a tie would be " + v.Goal
	}
	return "the goal is " + v.Goal
}

func comparisons(vs []Verdict, causes []cause) string {
	var b strings.Builder
	b.WriteString("| row | ours | theirs | figure | ours | theirs | ratio | goal | | cause |\n|---|---|---|---|---:|---:|---:|---|---|---|\n")
	for _, v := range vs {
		goal := v.Goal
		if v.Unset {
			goal = "(" + goal + ")"
		}
		if v.Not != "" {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | | | %s | – | %s |\n", cell(v.Row), v.Ours, v.Theirs, label(v.Metric), figureOr(v), goal, cell(v.Not))
			continue
		}
		result := "met"
		if !v.Met {
			result = "**missed**"
			if v.Unset {
				result = "**lost**"
			}
		} else if v.Unset {
			result = "won"
		}
		ratio, peer := ratioText(v.Ratio), format(v.Metric, v.Peer)
		if v.Peer == 0 {
			ratio, peer = "", ""
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", cell(v.Row), v.Ours, v.Theirs, label(v.Metric), format(v.Metric, v.Mine), peer, ratio, goal, result, cell(causeOf(v, causes)))
	}
	return b.String()
}

func ratioText(x float64) string {
	if x < 0.1 {
		return fmt.Sprintf("%.2g ×", x)
	}
	return fmt.Sprintf("%.2f ×", x)
}

func figureOr(v Verdict) string {
	if v.Mine == 0 {
		return ""
	}
	return format(v.Metric, v.Mine)
}
