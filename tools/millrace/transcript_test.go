package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"millrace/tools/internal/testbroker"
)

// captureVariable names a folder with Kafka's own scripts. With it the transcripts
// are not compared but taken down anew, from those scripts against the broker that
// testbroker.Variable names.
const captureVariable = "MILLRACE_CAPTURE_FROM"

// kafkaTranscripts is what Kafka 4.3.1's own tools answered, one file a tool:
//
//	# needs DeleteRecords           APIs without which the file is skipped
//	$ kafka-topics.sh --list        a command line; BROKER is the broker's address
//	< a line of standard input      \t and \x00 are understood
//	| a line of standard output
//	! a line of standard error      must be among ours, in this order
//	> 1                             the exit status, if it is not 0
//	$~ …                            the same, but the order of output lines is free
const kafkaTranscripts = "testdata/kafka-4.3.1"

// exchange is one command and its answer.
type exchange struct {
	args      []string
	unordered bool
	stdin     string
	out, errs []string
	status    int
}

func parseTranscript(t *testing.T, file string) (needs []string, list []exchange) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		mark, rest, _ := strings.Cut(line, " ")
		last := func() *exchange { return &list[len(list)-1] }
		switch mark {
		case "$", "$~":
			list = append(list, exchange{args: splitWords(rest), unordered: mark == "$~"})
		case "<":
			last().stdin += strings.NewReplacer(`\t`, "\t", `\x00`, "\x00").Replace(rest) + "\n"
		case "|":
			last().out = append(last().out, rest)
		case "!":
			last().errs = append(last().errs, rest)
		case ">":
			fmt.Sscan(rest, &last().status)
		case "#":
			if names, ok := strings.CutPrefix(rest, "needs "); ok {
				needs = strings.Fields(names)
			}
		case "":
		default:
			t.Fatalf("%s: %q begins with no mark", file, line)
		}
	}
	return needs, list
}

// splitWords is as much of a shell as the transcripts need: words, 'quoted' words.
func splitWords(line string) (words []string) {
	for _, m := range regexp.MustCompile(`'([^']*)'|(\S+)`).FindAllStringSubmatch(line, -1) {
		words = append(words, m[1]+m[2])
	}
	return words
}

// Claim: under the names of Kafka's scripts the output and the exit status are those
// of Kafka 4.3.1's own tools on the same state.
// Method: replay what those tools answered. What cannot be the same from run to run
// (ids, sizes, addresses) is made the same on both sides.
func TestTranscripts(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(kafkaTranscripts, "*.txt"))
	if len(files) == 0 {
		t.Fatal("no transcripts")
	}
	address := testbroker.Start(t)
	state := liveState(t, address)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			needs, list := parseTranscript(t, file)
			state.require(t, needs)
			if from := os.Getenv(captureVariable); from != "" {
				capture(t, file, list, from, address)
				return
			}
			for _, e := range list {
				t.Run(strings.ReplaceAll(strings.Join(e.args, " "), "/", "|"), func(t *testing.T) { e.compare(t, address) })
			}
		})
	}
}

// settle bounds how long a cluster may take to show a change everywhere. Kafka's tools
// take seconds to start, ours do not.
const settle = 3 * time.Second

func (e *exchange) compare(t *testing.T, address string) {
	want := e.lines(strings.Join(append(e.out, ""), "\n"))
	status, out, errs := act(t, address, e.stdin, e.args...)
	for began := time.Now(); slices.Contains(e.args, "--describe") && !slices.Equal(e.lines(out), want) && time.Since(began) < settle; {
		time.Sleep(awaitPoll)
		status, out, errs = act(t, address, e.stdin, e.args...)
	}
	got := e.lines(out)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("output (- Kafka's, + ours):\n%s\nstandard error:\n%s", diff, errs)
	}
	if status != e.status {
		t.Errorf("exit status %d, Kafka's is %d; %s", status, e.status, errs)
	}
	ours := sameLines(errs)
	for _, line := range sameLines(strings.Join(append(e.errs, ""), "\n")) {
		if line == "" {
			continue
		}
		i := slices.IndexFunc(ours, func(our string) bool { return sameWords(our, line) })
		if i < 0 {
			t.Errorf("standard error lacks %q; it is:\n%s", line, errs)
			return
		}
		ours = ours[i+1:]
	}
}

func (e *exchange) lines(text string) []string {
	lines := sameLines(text)
	if e.unordered {
		slices.Sort(lines)
	}
	return lines
}

// sameWords compares lines apart from the order of their words: Kafka's scripts list
// options and the like in an order that changes from run to run.
func sameWords(a, b string) bool {
	words := func(line string) []string {
		return slices.Sorted(slices.Values(strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" ,[]", r) })))
	}
	return slices.Equal(words(a), words(b))
}

// act runs this binary under the name that is the first argument.
func act(t *testing.T, address, stdin string, args ...string) (status int, out, errs string) {
	t.Helper()
	words := slices.Clone(args)
	for i := range words {
		words[i] = strings.ReplaceAll(words[i], "BROKER", address)
	}
	var o, e bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	status = runNamed(ctx, words[0], words[1:], strings.NewReader(stdin), &o, &e)
	return status, o.String(), e.String()
}

// changing are the parts of an answer that differ from run to run.
var changing = []struct {
	find    *regexp.Regexp
	replace string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "00000000-0000-0000-0000-000000000000"},
	{regexp.MustCompile(`TopicId: [\w-]{22}`), "TopicId: AAAAAAAAAAAAAAAAAAAAAA"},
	{regexp.MustCompile(`^Exception in thread "main" [\w.]+: `), ""},
	{regexp.MustCompile(`org\.apache\.kafka\.tools\.\w+Exception: `), ""},
	// What follows is for the broker to word; Kafka's and ours differ.
	{regexp.MustCompile(`(Error while executing topic command : )(Topic name is invalid|topic name|topic "|Unable to replicate|Unknown topic config|Invalid value |Topic already has|The topic ).*`), "$1…"},
	{regexp.MustCompile(`(Cluster ID: ).*`), "${1}ID"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "BROKER"},
	{regexp.MustCompile(`(127\.0\.0\.1) \d+ +`), "$1 PORT "},
	{regexp.MustCompile(`"size":\d+`), `"size":0`},
	{regexp.MustCompile(`"logDir":"[^"]*"`), `"logDir":"DIR"`},
	{regexp.MustCompile(`((?:^|\t)CreateTime:)1[6789]\d{11}`), "${1}1000000000000"},
	{regexp.MustCompile(`BROKER  \(1\) +`), "BROKER  (1) "},
	{regexp.MustCompile(`(Configs: )min\.insync\.replicas=1,?`), "$1"},           // see clusterWide
	{regexp.MustCompile(`Elr: N/A\tLastKnownElr: N/A`), "Elr: \tLastKnownElr: "}, // a broker without KIP-966
}

func sameLines(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		for _, c := range changing {
			line = c.find.ReplaceAllString(line, c.replace)
		}
		if head, configs, ok := strings.Cut(line, "\tConfigs: "); ok { // in the broker's order
			parts := strings.Split(configs, ",")
			slices.Sort(parts)
			line = head + "\tConfigs: " + strings.Join(parts, ",")
		}
		if !clusterWide.MatchString(line) {
			out = append(out, line)
		}
	}
	return out
}

// clusterWide is a setting that KIP-966 makes for a whole cluster.
var clusterWide = regexp.MustCompile(`^  min\.insync\.replicas=1 .*synonyms=\{DYNAMIC_DEFAULT_BROKER_CONFIG`)

// capture runs the commands with Kafka's own scripts and writes the file anew.
func capture(t *testing.T, file string, list []exchange, from, address string) {
	old, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	next := 0
	for line := range strings.Lines(string(old)) {
		mark, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch mark {
		case "#", "":
			b.WriteString(line)
		case "$", "$~":
			e := list[next]
			next++
			b.WriteString(line)
			for input := range strings.Lines(e.stdin) {
				b.WriteString("< " + strings.NewReplacer("\t", `\t`, "\x00", `\x00`).Replace(input))
			}
			b.WriteString(ask(t, e, from, address))
		}
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

func ask(t *testing.T, e exchange, from, address string) string {
	t.Helper()
	args := slices.Clone(e.args)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "BROKER", address)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(from, args[0]), args[1:]...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(e.stdin), &out, &errs
	_ = cmd.Run() // the exit status is part of the answer
	var b strings.Builder
	for _, line := range sameLines(out.String()) {
		if logged.MatchString(line) {
			fmt.Fprintf(&b, "# log: %s\n", line)
			continue
		}
		if !trace.MatchString(line) && !advice.MatchString(line) {
			fmt.Fprintf(&b, "| %s\n", line)
		}
	}
	for _, line := range sameLines(errs.String()) {
		if strings.HasPrefix(line, "Option ") && strings.HasSuffix(strings.TrimSpace(line), "Description") {
			break // the rest is the help
		}
		if strings.HasPrefix(line, "usage: ") {
			break // likewise; the one script with another parser
		}
		if line != "" && !trace.MatchString(line) && !logged.MatchString(line) && !advice.MatchString(line) {
			fmt.Fprintf(&b, "! %s\n", line)
		}
	}
	if code := cmd.ProcessState.ExitCode(); code != 0 {
		fmt.Fprintf(&b, "> %d\n", code)
	}
	return b.String()
}

var (
	trace  = regexp.MustCompile(`^(\tat | at | \(org|\t\.\.\. |Caused by: |(java|org|com)\.[\w.]*(Exception|Error))`)
	advice = regexp.MustCompile(`^((Option|Warning:) --\S+ is deprecated|The consumer rebalance protocol \(KIP-848\))`)
	logged = regexp.MustCompile(`^\[?\d{4}-\d\d-\d\d[ T]`)
)
