package java

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"millrace/tools/compat/harness"
)

// stage is what the acts of a check run on: one JVM with a release's tools, Millrace, and where their outputs are compared a
// node of Apache Kafka.
type stage struct {
	e       *harness.Env
	tools   *jvm
	version string // of the Kafka that outputs are held against
	old     bool   // the tools are 3.9's
	brokers []stageBroker
	errs    []error
	end     []func()
	acts    int // done on Millrace
	same    int // of these, held against Kafka's output

	transcript *os.File // of every act, in the check's folder
}

type stageBroker struct {
	name, addr, dir string // dir is the parent of data and data2
	zookeeper       string // where its coordination is, as in --zookeeper; "" if nowhere
}

// millraceOnly starts a stage without Apache Kafka.
func millraceOnly(e *harness.Env, l harness.Libs, overrides ...string) (*stage, error) {
	m, err := harness.StartMillrace(e, append([]string{"group.initial.rebalance.delay.ms=0"}, overrides...)...)
	if err != nil {
		return nil, err
	}
	s := &stage{e: e, old: l.Name == harness.Kafka39.Name, version: "4.3.1", brokers: []stageBroker{{"Millrace", m.Addr, e.Dir, m.Coordinator}}, end: []func(){m.Kill}}
	if s.transcript, err = os.Create(filepath.Join(e.Dir, "acts.txt")); err != nil {
		s.close()
		return nil, err
	}
	s.end = append(s.end, func() { s.transcript.Close() })
	if s.tools, err = startJVM(e, l); err != nil {
		s.close()
		return nil, err
	}
	s.end = append(s.end, s.tools.stop)
	return s, nil
}

// besideKafka starts a stage with Apache Kafka. Both brokers have two log directories.
func besideKafka(e *harness.Env, l harness.Libs, overrides ...string) (*stage, error) {
	two := func(dir string) string {
		return "log.dirs=" + filepath.Join(dir, "data") + "," + filepath.Join(dir, "data2")
	}
	s, err := millraceOnly(e, l, append([]string{two(e.Dir)}, overrides...)...)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(e.Dir, "kafka-data")
	k, err := harness.StartKafka(e, append([]string{two(dir)}, overrides...)...)
	if err != nil {
		s.close()
		return nil, err
	}
	s.end = append(s.end, k.Kill)
	s.brokers = append(s.brokers, stageBroker{"Apache Kafka", k.Addr, dir, ""})
	return s, nil
}

// besideZooKeeper starts a stage with Apache Kafka 3.9 on a ZooKeeper, below a chroot.
func besideZooKeeper(e *harness.Env, l harness.Libs) (*stage, error) {
	s, err := millraceOnly(e, l)
	if err != nil {
		return nil, err
	}
	k, err := harness.StartKafkaBelow(e, "/kafka/one")
	if err != nil {
		s.close()
		return nil, err
	}
	s.end = append(s.end, k.Kill)
	s.version = "3.9.2"
	s.brokers = append(s.brokers, stageBroker{"Apache Kafka", k.Addr, k.Dir, k.Connect})
	return s, nil
}

// close ends the processes.
func (s *stage) close() {
	for _, f := range slices.Backward(s.end) {
		f()
	}
}

// finish says what was done and gives the first error.
func (s *stage) finish() error {
	switch len(s.errs) {
	case 0:
		s.e.Note("%d acts, %d of them with the same output against Apache Kafka %s", s.acts, s.same, s.version)
		return nil
	case 1:
		return s.errs[0]
	}
	first, _, _ := strings.Cut(s.errs[0].Error(), "\n")
	return fmt.Errorf("%s (and %d more, all are in acts.txt)", first, len(s.errs)-1)
}

// how an act's output is held against Apache Kafka's.
type how int

const (
	same     how = iota // line by line
	anyOrder            // the same lines in any order
	alone               // not at all
)

// act is one call of a tool. In its arguments and its expectations {b} is the broker's address, {z} that of its coordination, {dir}
// the parent of its log directories. A tool whose arguments have neither {b} nor {z} gets --bootstrap-server.
type act struct {
	tool   string // the script's short name, or a class of src/tools, or our own bin/NAME
	args   string // split at blanks; within single quotes blanks stay
	in     string // standard input
	file   string // text of the file that {file} in the arguments names
	status int
	want   []string // lines that the output must have, in this order (but with anyOrder), blanks folded; "~" before one: a regular expression
	err    string   // what standard output or error must have besides: an exception's name
	not    []string // pieces that it must not have
	how    how
	mask   []string // regular expressions, taken out before the comparison
}

// do runs an act against each broker and gives what Millrace's output was.
func (s *stage) do(a act) string {
	var outs []string
	ok := true
	for _, b := range s.brokers {
		out, err := s.once(a, b)
		if err != nil {
			s.fail(fmt.Errorf("%s %s against %s: %w", a.tool, b.fill(a.args), b.name, err))
			ok = false
		}
		outs = append(outs, out)
	}
	s.acts++
	if ok && len(outs) > 1 && a.how != alone {
		if err := s.compare(a, outs); err != nil {
			s.fail(fmt.Errorf("%s %s: %w", a.tool, a.args, err))
		}
		s.same++
	}
	return outs[0]
}

// on runs an act against one broker only.
func (s *stage) on(b stageBroker, a act) string {
	out, err := s.once(a, b)
	if err != nil {
		s.fail(fmt.Errorf("%s %s against %s: %w", a.tool, b.fill(a.args), b.name, err))
	}
	s.acts++
	return out
}

// once runs an act against one broker and holds it against its expectations.
func (s *stage) once(a act, b stageBroker) (string, error) {
	class, args := a.tool, b.fillAll(split(a.args))
	if a.file != "" {
		path := filepath.Join(s.e.Dir, "act.file")
		if err := os.WriteFile(path, []byte(b.fill(a.file)), 0o644); err != nil {
			return "", err
		}
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "{file}", path)
		}
	}
	ours := strings.HasPrefix(a.tool, "bin/")
	if strings.ToLower(class) == class && !ours {
		var err error
		if class, err = harness.ToolClass(s.tools.libs, a.tool); err != nil {
			return "", err
		}
		if !strings.Contains(a.args, "{b}") && !strings.Contains(a.args, "{z}") {
			args = append(args, "--bootstrap-server", b.addr)
		}
	}
	start := time.Now()
	run := s.tools.run
	if ours {
		run = s.runOurs
	}
	r, err := run(class, a.in, args)
	fmt.Fprintf(s.transcript, "=== %s: %s %s: %d after %s\n%s--- standard error\n%s", b.name, a.tool, strings.Join(args, " "), r.status, time.Since(start).Round(time.Millisecond), r.out, r.err)
	if err != nil {
		return "", err
	}
	if r.status != a.status {
		return "", fmt.Errorf("exit status %d, want %d: %s%s", r.status, a.status, r.out, r.err)
	}
	if err := holds(r.out, b.fillAll(a.want), a.how != anyOrder); err != nil {
		return "", err
	}
	for _, piece := range a.not {
		if strings.Contains(r.out, piece) {
			return "", fmt.Errorf("the output has %q: %s", piece, r.out)
		}
	}
	if !strings.Contains(r.out+r.err, b.fill(a.err)) {
		return "", fmt.Errorf("neither output nor standard error has %q: %s%s", b.fill(a.err), r.out, r.err)
	}
	return r.out, nil
}

// runOurs runs one of our binaries, bin/NAME, under a name of Kafka's scripts.
func (s *stage) runOurs(name, stdin string, args []string) (r result, err error) {
	cmd := s.e.Command(filepath.Join(s.e.Root, name), args...)
	var out, errs strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	if err = cmd.Run(); cmd.ProcessState == nil {
		return r, err
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}, nil
}

func (b stageBroker) fill(s string) string {
	return strings.NewReplacer("{b}", b.addr, "{z}", b.zookeeper, "{dir}", b.dir).Replace(s)
}

func (b stageBroker) fillAll(all []string) []string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = b.fill(s)
	}
	return out
}

// split cuts a command line at blanks outside single quotes.
func split(line string) []string {
	var out []string
	var word strings.Builder
	open, quoted := false, false
	for _, c := range line {
		switch {
		case c == '\'':
			quoted, open = !quoted, true
		case c == ' ' && !quoted:
			if open {
				out = append(out, word.String())
			}
			word.Reset()
			open = false
		default:
			word.WriteRune(c)
			open = true
		}
	}
	if open {
		out = append(out, word.String())
	}
	return out
}

// fold makes one blank of each run of blanks.
func fold(line string) string { return strings.Join(strings.Fields(line), " ") }

// holds demands the wanted lines, in their order or in any.
func holds(out string, want []string, ordered bool) error {
	lines := strings.Split(out, "\n")
	at := 0
	for _, w := range want {
		pattern, isPattern := strings.CutPrefix(w, "~")
		if !isPattern {
			pattern = regexp.QuoteMeta(fold(w))
		}
		re, err := regexp.Compile("^(" + pattern + ")$")
		if err != nil {
			return err
		}
		for at < len(lines) && !re.MatchString(fold(lines[at])) {
			at++
		}
		if at == len(lines) {
			return fmt.Errorf("no line %q (in order: %v) in the output: %s", w, ordered, out)
		}
		if at++; !ordered {
			at = 0
		}
	}
	return nil
}

// masks are what differs between two brokers and runs: names for values.
var masks = []struct {
	re *regexp.Regexp
	by string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UUID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.,:]\d+`), "DATE"},
	{regexp.MustCompile(`TopicId: [\w-]{22}`), "TopicId: ID"},
	{regexp.MustCompile(`\b1[5-9]\d{11}\b`), "TIME"},
	{regexp.MustCompile(`/?127\.0\.0\.1:\d+`), "ADDRESS"},
}

// normal is an output's lines with what may differ masked, the empty ones left out.
func (b stageBroker) normal(out string, more []string) []string {
	out = strings.ReplaceAll(strings.ReplaceAll(out, b.addr, "ADDRESS"), b.dir, "DIR")
	for _, m := range more {
		out = regexp.MustCompile(m).ReplaceAllString(out, "")
	}
	for _, m := range masks {
		out = m.re.ReplaceAllString(out, m.by)
	}
	var lines []string
	for line := range strings.Lines(out) {
		if line = fold(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// compare names the first line in which Millrace's output differs from Apache Kafka's.
func (s *stage) compare(a act, outs []string) error {
	ours, theirs := s.brokers[0].normal(outs[0], a.mask), s.brokers[1].normal(outs[1], a.mask)
	if a.how == anyOrder {
		slices.Sort(ours)
		slices.Sort(theirs)
	}
	for i := range max(len(ours), len(theirs)) {
		at := func(lines []string) string {
			if i < len(lines) {
				return lines[i]
			}
			return "(end)"
		}
		if at(ours) != at(theirs) {
			return fmt.Errorf("line %d is %q, against Apache Kafka %q", i+1, at(ours), at(theirs))
		}
	}
	return nil
}

// fail keeps an error.
func (s *stage) fail(err error) {
	s.errs = append(s.errs, err)
	fmt.Fprintf(s.transcript, "!!! %v\n", err)
}
