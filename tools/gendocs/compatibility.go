package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"millrace/tools/compat/harness"
)

// compatibility renders what a run of tools/compat recorded: sums for each client, then each client's checks.
func compatibility(record string) (string, error) {
	var b strings.Builder
	b.WriteString(`
## Clients, tools and frameworks

From a run of ` + "`make compat-docs`" + `: every check moves real bytes through a foreign program and a real broker process and compares values.
*Not built* means that the program needs what Millrace does not offer yet, with the error it got. The first steps with a client of your
language are in [clients](clients/README.md).

`)
	results, err := harness.ReadResults(record)
	if errors.Is(err, os.ErrNotExist) {
		b.WriteString("No run is recorded.\n")
		return b.String(), nil
	}
	if err != nil {
		return "", err
	}
	var clients []string
	count := map[string]int{}
	sums := map[string]int{}
	for _, r := range results {
		if !slices.Contains(clients, r.Client) {
			clients = append(clients, r.Client)
		}
		count[r.Client+"\n"+r.Result]++
		sums[r.Result]++
	}
	fmt.Fprintf(&b, "%d passed, %d failed, %d skipped, %d need what is not built.\n\n", sums[harness.Pass], sums[harness.Fail], sums[harness.SkippedFor], sums[harness.Absent])
	b.WriteString("| client | passed | failed | not built | skipped |\n|---|---|---|---|---|\n")
	for _, c := range clients {
		fmt.Fprintf(&b, "| [%s](#%s) |", cell(c), anchor(c))
		for _, what := range []string{harness.Pass, harness.Fail, harness.Absent, harness.SkippedFor} {
			if n := count[c+"\n"+what]; n > 0 {
				fmt.Fprintf(&b, " %d", n)
			}
			b.WriteString(" |")
		}
		b.WriteString("\n")
	}
	for _, c := range clients {
		fmt.Fprintf(&b, "\n### %s\n\n| what was shown | result | |\n|---|---|---|\n", c)
		for _, r := range results {
			if r.Client == c {
				fmt.Fprintf(&b, "| %s | %s | %s |\n", cell(r.Name), shown(r.Result), cell(remarks(r)))
			}
		}
	}
	return b.String(), nil
}

// shown makes what is not well stand out.
func shown(result string) string {
	if result == harness.Fail || result == harness.Absent {
		return "**" + result + "**"
	}
	return result
}

// folder is where a failed check left its files, which nobody else has.
var folder = regexp.MustCompile(` \(see /[^)]*\)`)

func remarks(r harness.Result) string {
	all := r.Notes
	if r.Detail != "" {
		all = append([]string{folder.ReplaceAllString(r.Detail, "")}, all...)
	}
	return strings.Join(all, "; ")
}

// anchor is the name that a heading's text gets as a link's target.
func anchor(heading string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(heading) {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_':
			b.WriteRune(r)
		case r == ' ':
			b.WriteByte('-')
		}
	}
	return b.String()
}
