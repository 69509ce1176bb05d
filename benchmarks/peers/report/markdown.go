package report

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func label(metric string) string {
	for _, m := range metricOrder {
		if m.name == metric {
			return m.label
		}
	}
	return metric
}

func format(metric string, v float64) string {
	for _, m := range metricOrder {
		if m.name == metric {
			return fmt.Sprintf(m.format, v)
		}
	}
	return fmt.Sprint(v)
}

// OneLine is a row's main figures, for progress.
func OneLine(r *Row) string {
	metric, _ := r.main()
	parts := []string{r.Name + " (" + label(metric) + "):"}
	for _, f := range r.Figures {
		if v, _, _, ok := r.Median(f.Target, metric); ok {
			parts = append(parts, f.Target+" "+format(metric, v))
		} else {
			parts = append(parts, f.Target+" "+f.Not)
		}
	}
	return strings.Join(parts, "  ")
}

// Render writes the tables and plots of a file of figures into a folder, and the page docs (unless empty) from all of it.
func Render(f *File, order []string, out, name, docs, causes string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Millrace and its peers\n\nMade by `make bench-peers`; the figures of every round are in `%s.json`. Medians (lowest–highest of the rounds). Systems alternate within a row. Absolute figures on this kind of machine vary by a factor of two from run to run: read the ratios within a row.\n", name)
	for _, section := range order {
		s, ok := f.Sections[section]
		if !ok {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n%s; %s; %d rounds of %s; took %s.%s\n\n%s\n", section, s.Method, s.When, s.Machine, s.Rounds, s.Duration, s.Took, forced(s), versionLine(s))
		if svg := Plot(section, s); svg != "" {
			file := name + "-" + section + ".svg"
			if err := os.WriteFile(filepath.Join(out, file), []byte(svg), 0o644); err != nil {
				return err
			}
			fmt.Fprintf(&b, "\n![%s](%s)\n", section, file)
		}
		b.WriteString("\n" + table(s))
		for _, n := range s.Notes {
			fmt.Fprintf(&b, "\n- %s", cell(n))
		}
		if len(s.Notes) > 0 {
			b.WriteString("\n")
		}
	}
	if err := os.WriteFile(filepath.Join(out, name+".md"), []byte(b.String()), 0o644); err != nil {
		return err
	}
	if docs == "" {
		return nil
	}
	rel, err := filepath.Rel(filepath.Dir(docs), filepath.Join(out, name))
	if err != nil {
		return err
	}
	return os.WriteFile(docs, []byte(page(f, order, filepath.ToSlash(rel), parseCauses(causes))), 0o644)
}

func forced(s *Section) string {
	if s.Forced {
		return " **Measured with `-force`: the machine may have been busy with something else; these figures prove nothing.**"
	}
	return ""
}

func versionLine(s *Section) string {
	var parts []string
	for name, v := range s.Versions {
		parts = append(parts, fmt.Sprintf("%s: %s", name, v))
	}
	slices.Sort(parts)
	return strings.Join(parts, "; ") + "."
}

// table has a line for each system of each row, with the metrics that the section has.
func table(s *Section) string {
	var used []metric
	for _, m := range metricOrder {
		if slices.ContainsFunc(s.Rows, func(r *Row) bool {
			return slices.ContainsFunc(r.Figures, func(f *Figure) bool { return len(f.Values[m.name]) > 0 })
		}) {
			used = append(used, m)
		}
	}
	var b strings.Builder
	b.WriteString("| row | system |")
	for _, m := range used {
		fmt.Fprintf(&b, " %s |", m.label)
	}
	b.WriteString(" |\n|---|---|" + strings.Repeat("---:|", len(used)) + "---|\n")
	for _, r := range s.Rows {
		for _, f := range r.Figures {
			fmt.Fprintf(&b, "| %s | %s |", cell(r.Name), f.Target)
			for _, m := range used {
				mid, low, high, ok := r.Median(f.Target, m.name)
				switch {
				case !ok:
					b.WriteString(" |")
				case len(f.Values[m.name]) > 1 && (m.name == PerSecond || m.name == MBps || m.name == Seconds || m.name == P99):
					fmt.Fprintf(&b, " "+m.format+" ("+m.format+"–"+m.format+") |", mid, low, high)
				default:
					fmt.Fprintf(&b, " "+m.format+" |", mid)
				}
			}
			fmt.Fprintf(&b, " %s |\n", cell(f.Not))
		}
	}
	return b.String()
}

// cell makes a text fit for a table.
func cell(s string) string { return strings.NewReplacer("|", "\\|", "\n", " ").Replace(s) }
