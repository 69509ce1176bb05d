package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"millrace/tools/internal/cli"
	"millrace/tools/internal/testbroker"
)

// must runs a command that has to succeed and gives its standard output.
func must(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	status, out, errs := command(strings.NewReader(stdin), args...)
	if status != cli.ExitOK {
		t.Fatalf("%v: exit status %d: %s", args, status, errs)
	}
	return out
}

// Claim: a file goes in with every codec and comes out byte-identical.
// Method: a few MB of lines by --file, to one partition, and back.
func TestFileComesBackByteIdentical(t *testing.T) {
	address := testbroker.Start(t)
	text := testbroker.Lines(3 << 20)
	file := filepath.Join(t.TempDir(), "lines")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		t.Run(codec, func(t *testing.T) {
			topic := testbroker.Topic(t, address, 1, nil)
			out := must(t, "", "produce", topic, "-b", address, "--file", file, "--compression", codec, "--json")
			got := must(t, "", "consume", topic, "-b", address, "--from-beginning", "--to-end")
			if got != string(text) {
				t.Errorf("%d bytes came out, %d went in, and they differ; %s", len(got), len(text), out)
			}
		})
	}
}

// Claim: with --exact any bytes come back as they were, whatever they end with.
// Method: inputs that lines alone cannot carry.
func TestExactBytesComeBack(t *testing.T) {
	address := testbroker.Start(t)
	for name, in := range map[string]string{
		"no newline at the end": "a\n\n\nb",
		"only newlines":         "\n\n\n",
		"zero bytes":            "a\x00\n\x00",
		"one long line":         strings.Repeat("x", 1_000_000),
	} {
		topic := testbroker.Topic(t, address, 1, nil)
		must(t, in, "produce", topic, "-b", address, "--exact")
		if got := must(t, "", "consume", topic, "-b", address, "--from-beginning", "--to-end", "--no-newline"); got != in {
			t.Errorf("%s: %.60q came back", name, got)
		}
	}
}

// Claim: a line at the topic's limit goes in; one byte more is refused with the
// limit's name, and what came before it is stored.
// Method: a topic with a small limit.
func TestLimitIsNamed(t *testing.T) {
	address := testbroker.Start(t)
	limit := "20000"
	topic := testbroker.Topic(t, address, 1, map[string]*string{"max.message.bytes": &limit})
	most := strings.Repeat("x", 20000-batchOverhead)
	must(t, most+"\n", "produce", topic, "-b", address)
	status, _, errs := command(strings.NewReader("first\n"+most+"x\nlast\n"), "produce", topic, "-b", address)
	if status != cli.ExitFailure || !strings.Contains(errs, "max.message.bytes") || !strings.Contains(errs, "record 2") {
		t.Errorf("%d: %s", status, errs)
	}
	if got := must(t, "", "consume", topic, "-b", address, "--from-beginning", "--to-end"); got != most+"\nfirst\n" {
		t.Errorf("%d bytes are stored", len(got))
	}
}

// Claim: keys, headers and partitions arrive, and consume begins and ends where told.
// Method: a topic of two partitions.
func TestKeysHeadersAndOffsets(t *testing.T) {
	address := testbroker.Start(t)
	topic := testbroker.Topic(t, address, 2, nil)
	must(t, "a:1\nb:2:3\nc:\n", "produce", topic, "-b", address, "-k", ":", "-H", "x=y", "-p", "1")
	for _, c := range []struct{ args, want string }{
		{"--from-beginning --to-end -F %p:%o:%k=%v[%h]\\n", "1:0:a=1[x=y ]\n1:1:b=2:3[x=y ]\n1:2:c=[x=y ]\n"},
		{"-p 1 --offset 1 --max-messages 1", "2:3\n"},
		{"-p 1 --offset -1 --to-end --json", ""},
		{"-p 0 --from-beginning --to-end", ""},
		{"--to-end", ""},
		{"-p 1 --offset 0 -n 1", "1\n"},
		{"--offset @1 --to-end", "1\n2:3\n\n"},
	} {
		got := must(t, "", append([]string{"consume", topic, "-b", address}, strings.Fields(c.args)...)...)
		if strings.Contains(c.args, "--json") {
			var r jsonRecord
			if err := json.Unmarshal([]byte(got), &r); err != nil || r.Offset != 2 || *r.Key != "c" || r.Value == nil || *r.Value != "" || r.Headers[0].Key != "x" {
				t.Errorf("%v: %s", err, got)
			}
			continue
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.args, got, c.want)
		}
	}
}

// Claim: each failure has its exit status.
// Method: what is missing, what is there already, who does not answer.
func TestExitStatuses(t *testing.T) {
	address := testbroker.Start(t)
	topic := testbroker.Topic(t, address, 1, nil)
	for _, c := range []struct {
		args string
		want int
	}{
		{"topic create " + topic, cli.ExitNotFound},
		{"topic create --if-not-exists " + topic, cli.ExitOK},
		{"topic create bad/name", cli.ExitFailure},
		{"topic create new-" + topic + " --config no.such=1", cli.ExitFailure},
		{"topic describe no-such", cli.ExitNotFound},
		{"topic delete no-such", cli.ExitNotFound},
		{"topic delete --if-exists no-such", cli.ExitOK},
		{"produce no-such", cli.ExitNotFound},
		{"produce -p 5 " + topic, cli.ExitNotFound},
		{"produce -f /no/such/file " + topic, cli.ExitFailure},
		{"consume no-such", cli.ExitNotFound},
		{"consume -p 5 " + topic, cli.ExitNotFound},
		{"consume --offset 99 " + topic, cli.ExitNotFound},
		{"consume --timeout 200 " + topic, cli.ExitUnreachable},
	} {
		if status, _, errs := command(strings.NewReader(""), append(strings.Fields(c.args), "-b", address)...); status != c.want {
			t.Errorf("%s: got %d, want %d: %s", c.args, status, c.want, errs)
		}
	}
	if status, _, _ := command(nil, "topic", "list", "-b", "127.0.0.1:1"); status != cli.ExitUnreachable {
		t.Errorf("no broker: %d", status)
	}
}

// Claim: a topic's life shows in create, list, describe and delete.
// Method: live it, reading the plain and the JSON answers.
func TestLifeOfATopic(t *testing.T) {
	address := testbroker.Start(t)
	name := testbroker.Topic(t, address, 1, nil) + "-life"
	if got := must(t, "", "topic", "create", name, "-b", address, "-p", "2", "-c", "retention.ms=3600000"); got != "created: "+name+"\n" {
		t.Errorf("create: %q", got)
	}
	if got := must(t, "", "topic", "list", "-b", address); !strings.Contains(got, name+"\t2\t1\n") {
		t.Errorf("list: %q", got)
	}
	must(t, "x\ny\n", "produce", name, "-b", address, "-p", "1")
	var list []describedTopic
	if err := json.Unmarshal([]byte(must(t, "", "topic", "describe", name, "-b", address, "--json")), &list); err != nil {
		t.Fatal(err)
	}
	if len(list) != 1 || len(list[0].Partitions) != 2 || *list[0].Partitions[0].End != 0 || *list[0].Partitions[1].End != 2 || *list[0].Partitions[1].Start != 0 {
		t.Errorf("describe: %+v", list)
	}
	if got := must(t, "", "topic", "describe", name, "-b", address, "--configs"); !strings.Contains(got, name+"\tretention.ms\t3600000\tdynamic_topic_config\n") {
		t.Errorf("settings: %q", got)
	}
	must(t, "", "topic", "delete", name, "-b", address)
	if got := must(t, "", "topic", "list", "-b", address); strings.Contains(got, name+"\t") {
		t.Errorf("after delete: %q", got)
	}
}

// Claim: serve prints the ready line when clients are accepted, and a signal ends it
// cleanly with exit status 0; what was stored is there after the next start.
// Method: two lives of one data directory; the context stands for the signal.
func TestServeReadyStopAndAgain(t *testing.T) {
	dir := t.TempDir()
	for life, want := range []string{"", "kept\n"} {
		ctx, stop := context.WithCancel(t.Context())
		root := newRoot()
		out, in := io.Pipe()
		root.SetOut(in)
		root.SetErr(io.Discard)
		root.SetArgs([]string{"serve", "--override", "listeners=PLAINTEXT://127.0.0.1:0", "--override", "admin.listener=127.0.0.1:0", "--override", "log.dirs=" + dir})
		ended := make(chan int, 1)
		go func() { ended <- cli.Execute(ctx, root) }() // ends with stop, and is waited for below
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(`^ready id=1 listeners=PLAINTEXT://(127\.0\.0\.1:\d+) coordinator=127\.0\.0\.1:\d+ in=\d+ms\n$`).FindStringSubmatch(line)
		if found == nil {
			t.Fatalf("ready line is %q", line)
		}
		must(t, "", "topic", "create", "t", "--if-not-exists", "-p", "1", "-b", found[1])
		if got := must(t, "", "consume", "t", "--from-beginning", "--to-end", "-b", found[1]); got != want {
			t.Errorf("life %d: %q", life, got)
		}
		must(t, "kept\n", "produce", "--topic", "t", "-b", found[1])
		stop()
		if status := <-ended; status != cli.ExitOK {
			t.Errorf("life %d ended with exit status %d", life, status)
		}
	}
}

// Claim: output is written as it comes, and lost output is an error.
// Method: a writer that fails.
func TestLostOutputIsAnError(t *testing.T) {
	address := testbroker.Start(t)
	topic := testbroker.Topic(t, address, 1, nil)
	must(t, "x\n", "produce", topic, "-b", address)
	root := newRoot()
	var errs bytes.Buffer
	root.SetOut(full{})
	root.SetErr(&errs)
	root.SetArgs([]string{"consume", topic, "-b", address, "--from-beginning", "--to-end"})
	if status := cli.Execute(t.Context(), root); status != cli.ExitFailure || !strings.Contains(errs.String(), "no space") {
		t.Errorf("%d: %s", status, errs.String())
	}
}

var errNoSpace = errors.New("no space left")

// full is a disk with no space left.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errNoSpace }
