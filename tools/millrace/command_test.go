package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"millrace/broker"
	"millrace/tools/internal/cli"
	"millrace/tools/internal/client"
)

// command runs millrace with these arguments and gives exit status and outputs.
func command(stdin io.Reader, args ...string) (status int, out, errs string) {
	root := newRoot()
	var o, e bytes.Buffer
	root.SetIn(stdin)
	root.SetOut(&o)
	root.SetErr(&e)
	root.SetArgs(args)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return cli.Execute(ctx, root), o.String(), e.String()
}

// Claim: the binary is millrace under any name but those of Kafka's commands; one of
// Kafka's that it is not is refused.
// Method: names that a link may have, asked for their help.
func TestNameOfTheBinary(t *testing.T) {
	for name, want := range map[string]string{
		"millrace": "'millrace serve' runs the broker", "millrace-1.2": "'millrace serve' runs the broker",
		"kafka-acls.sh": "is not built into this version", "kafka-storage": "is not built into this version", "zookeeper-shell.sh": "is not built into this version",
	} {
		var out, errs bytes.Buffer
		status := runNamed(t.Context(), name, []string{"--help"}, nil, &out, &errs)
		refused := strings.Contains(want, "not built")
		if !strings.Contains(out.String()+errs.String(), want) || (status == cli.ExitUsage) != refused {
			t.Errorf("%s: %d, %s%s", name, status, out.String(), errs.String())
		}
	}
}

// Claim: every command's help has an example and says what the command is; wrong
// command lines are exit status 2 without a broker being asked.
// Method: walk the tree; try wrong ones.
func TestHelpAndUsage(t *testing.T) {
	for _, path := range []string{"serve", "topic", "topic create", "topic list", "topic describe", "topic alter", "topic offsets", "topic trim", "topic delete", "produce", "consume",
		"group", "group list", "group describe", "group lag", "group reset", "group delete", "group delete-offsets",
		"config", "config describe", "config set", "config unset", "quota", "quota list", "quota set", "quota unset", "cluster", "cluster describe", "cluster apis", "logdirs", "logdirs move"} {
		status, out, _ := command(nil, append(strings.Fields(path), "--help")...)
		if status != cli.ExitOK || !strings.Contains(out, "Examples:") || !strings.Contains(out, "millrace "+path) {
			t.Errorf("help of %s: %d\n%s", path, status, out)
		}
	}
	for _, args := range []string{
		"nope", "topic nope", "topic create", "topic create a --config x", "topic create a --partitions 0", "topic list extra",
		"produce", "produce a b", "produce a --topic b", "produce a --headers x", "produce a --key k --key-separator :", `produce a --delimiter \q`, "produce a --acks 7",
		"produce a --partition=-2", "consume", "consume a --offset x", "consume a --offset 1 --from-beginning", "consume a --json --exact",
		"consume a --format %q", "consume a --max-messages 0", "consume a --timeout x", "serve --override x", "serve --log-level loud", "version x",
		"consume a --group g -p 1", "consume a --match (", "consume a --match-key (",
		"topic alter a", "topic alter a --partitions 0", "topic offsets a --at yesterday", "topic trim a", "topic trim a --before 1 --all", "topic trim a b --all",
		"group describe", "group list --state odd", "group list --type odd", "group lag", "group lag g --watch=0", "group lag g --watch=x",
		"group reset g", "group reset g --to earliest", "group reset g --to earliest --topic a --all-topics", "group reset g --to sometime --topic a", "group reset g --to 1 --from-file x",
		"group delete", "group delete-offsets g", "config describe", "config describe moon x", "config describe topic", "config describe broker x", "config describe topic --default",
		"config describe topic a b", "config set topic a", "config set topic a b", "config unset topic a b=c", "quota set a=b", "quota set --client c", "quota set --client c nope=1",
		"quota unset --client c producer_byte_rate=1", "quota list --ip a --user b", "quota set --user a --user-default producer_byte_rate=1", "cluster nope", "logdirs x", "logdirs move", "logdirs move t", "logdirs move t relative", "logdirs move t /d x", "logdirs move t /d -p x",
	} {
		status, _, errs := command(nil, strings.Fields(args)...)
		if status != cli.ExitUsage || !strings.Contains(errs, "--help") {
			t.Errorf("%s: %d, %s", args, status, errs)
		}
	}
}

// Claim: version tells what the broker speaks, for people and for programs.
// Method: both ways.
func TestVersionTellsTheProtocol(t *testing.T) {
	_, out, _ := command(nil, "version")
	if !strings.HasPrefix(out, "millrace ") || !strings.Contains(out, "Produce 0-") {
		t.Errorf("got %s", out)
	}
	_, out, _ = command(nil, "version", "--json")
	var info versionInfo
	if err := json.Unmarshal([]byte(out), &info); err != nil || info.Version != client.Version() || len(info.APIs) == 0 {
		t.Errorf("%v: %s", err, out)
	}
}

// Claim: without a file the broker is for this machine only, in ./data, and what is
// overridden wins; a new directory gets id 1, one that has an id keeps it.
// Method: resolve configurations without starting anything.
func TestServeWithoutAFile(t *testing.T) {
	load := func(overrides ...string) broker.Config {
		t.Helper()
		c, err := loadConfig("", overrides, io.Discard, "info")
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	t.Chdir(t.TempDir())
	c := load()
	if c.Listeners[0].String() != "PLAINTEXT://127.0.0.1:9092" || c.Admin != "127.0.0.1:9644" || c.NodeID != 1 ||
		len(c.LogDirs) != 1 || filepath.Clean(c.LogDirs[0]) != "data" {
		t.Errorf("got %+v", c)
	}
	if c := load("listeners=PLAINTEXT://127.0.0.1:0", "log.dirs=a,b", "node.id=7"); c.Listeners[0].Port != 0 || len(c.LogDirs) != 2 || c.NodeID != 7 {
		t.Errorf("got %+v", c)
	}
	if err := os.MkdirAll("data", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("data/meta.properties", []byte("version=1\nnode.id=4\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if c := load(); c.NodeID != -1 {
		t.Errorf("the id %d was put over the directory's own", c.NodeID)
	}
}

// Claim: the ready line is the one that scripts wait for.
// Method: format one.
func TestReadyLine(t *testing.T) {
	got := readyLine(broker.Ready{NodeID: 1, Coordinator: "127.0.0.1:2181", Listeners: []broker.Listener{{Name: "PLAINTEXT", Host: "127.0.0.1", Port: 9092}}}, 42*time.Millisecond)
	if want := "ready id=1 listeners=PLAINTEXT://127.0.0.1:9092 coordinator=127.0.0.1:2181 in=42ms"; got != want {
		t.Errorf("got %s", got)
	}
}

// Claim: a broker's refusal is one sentence with the code's name, and its status.
// Method: the kinds of refusal.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		err     error
		message string
		want    string
		status  int
	}{
		{kerr.UnknownTopicOrPartition, "whatever", `topic "t" does not exist`, cli.ExitNotFound},
		{kerr.TopicAlreadyExists, "", `topic "t" exists already`, cli.ExitNotFound},
		{kerr.InvalidConfig, "Unknown name: x.", `topic "t": Unknown name: x (INVALID_CONFIG)`, cli.ExitFailure},
	} {
		if err := refusal("t", c.err, c.message); err.Error() != c.want || cli.Status(err) != c.status {
			t.Errorf("got %v (%d)", err, cli.Status(err))
		}
	}
}

// Claim: a described topic is a line a partition in a pipe, with "-" for what is not
// known, and the settings on request.
// Method: a made-up topic.
func TestDescribedInAPipe(t *testing.T) {
	start, end := int64(3), int64(9)
	value := "1000"
	list := []describedTopic{{
		Topic:      "t",
		Partitions: []describedPartition{{Partition: 0, Leader: 1, Epoch: 2, Replicas: []int32{1, 2}, ISR: []int32{1}, Start: &start, End: &end}},
		Configs:    []describedConfig{{Key: "retention.ms", Value: &value, Source: "dynamic_topic_config"}, {Key: "x", Source: "default_config", Default: true}},
	}}
	var b bytes.Buffer
	a := &admin{}
	if err := a.described(&b, list, false); err != nil || b.String() != "t\t0\t1\t2\t1,2\t1\t3\t9\t-\n" {
		t.Errorf("%v: %q", err, b.String())
	}
	b.Reset()
	if err := a.described(&b, list, true); err != nil || b.String() != "t\tretention.ms\t1000\tdynamic_topic_config\nt\tx\t-\tdefault_config\n" {
		t.Errorf("%v: %q", err, b.String())
	}
}

// Claim: where to begin is read in all its spellings, and resolved against what a
// partition has.
// Method: a partition with offsets 10 to 50.
func TestWhereToBegin(t *testing.T) {
	for text, want := range map[string]int64{"": 50, "latest": 50, "earliest": 10, "20": 20, "-5": 45, "-500": 10} {
		a, err := (&consumeOptions{offset: text}).start()
		if got := a.from(10, 50); err != nil || got != want {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	for text, ms := range map[string]int64{"@1700000000000": 1700000000000, "@2023-11-14T22:13:20Z": 1700000000000} {
		if a, err := (&consumeOptions{offset: text}).start(); err != nil || a != (startAt{'t', ms}) {
			t.Errorf("%q: %+v, %v", text, a, err)
		}
	}
}

// Claim: the topic's own max.message.bytes is the limit, and a record gets what the
// batch leaves.
// Method: settings with and without it.
func TestLimitIsTheTopics(t *testing.T) {
	value, odd := "5000", "x"
	configs := func(v *string) kadm.ResourceConfigs {
		return kadm.ResourceConfigs{{Name: "t", Configs: []kadm.Config{{Key: "max.message.bytes", Value: v}}}}
	}
	for _, c := range []struct {
		rc   kadm.ResourceConfigs
		want int
	}{{configs(&value), 5000}, {configs(&odd), kafkaMaxMessageBytes}, {configs(nil), kafkaMaxMessageBytes}, {nil, kafkaMaxMessageBytes}} {
		if got := maxMessageBytes(c.rc, "t"); got != c.want {
			t.Errorf("got %d, want %d", got, c.want)
		}
	}
	l := recordLimit{"t", 5000}
	if got := l.record(kgo.Record{Key: []byte("abc")}); got != 5000-batchOverhead-3 {
		t.Errorf("got %d", got)
	}
}
