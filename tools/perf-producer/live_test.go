package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"millrace/tools/internal/cli"
	"millrace/tools/internal/testbroker"
)

// produce runs the command and returns its standard output.
func produce(t *testing.T, want int, args ...string) string {
	t.Helper()
	return testbroker.Run(t, newCommand(), want, args...)
}

// consumed reads n records of partition 0 and joins them with newlines.
func consumed(t *testing.T, address, topic string, n int) []byte {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(address),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var out []byte
	for n > 0 {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("%d records missing: %v", n, err)
		}
		for _, r := range fetches.Records() {
			if r.Value == nil {
				t.Fatalf("record %d is null", r.Offset)
			}
			out = append(append(out, r.Value...), '\n')
			n--
		}
	}
	return out
}

// Claim: a file goes in by --payload-file with every codec, and comes out byte-identical.
// Method: a few MB of lines to one partition, read back by franz-go.
func TestFileComesOutByteIdentical(t *testing.T) {
	address := testbroker.Start(t)
	text := testbroker.Lines(3 << 20)
	file := filepath.Join(t.TempDir(), "lines")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		t.Run(codec, func(t *testing.T) {
			topic := testbroker.Topic(t, address, 1, nil)
			out := produce(t, cli.ExitOK, "-b", address, "--topic", topic, "--payload-file", file, "--payload-order", "sequence", "--compression", codec)
			lines := bytes.Count(text, []byte("\n"))
			if got := consumed(t, address, topic, lines); !bytes.Equal(got, text) {
				t.Errorf("%d bytes came out, %d went in, and they differ; %s", len(got), len(text), out)
			}
		})
	}
}

// Claim: several producers over several topics send exactly what was asked, warm-up
// is told apart, and the document of --json agrees with the lines.
// Method: a short run at a fixed rate.
func TestRunIsReported(t *testing.T) {
	address := testbroker.Start(t)
	one, two := testbroker.Topic(t, address, 1, nil), testbroker.Topic(t, address, 1, nil)
	file := filepath.Join(t.TempDir(), "result.json")
	out := produce(t, cli.ExitOK, "-b", address, "--topic", one+","+two, "--num-records", "2000", "--record-size", "50", "--throughput", "4000",
		"--warmup-records", "400", "--producers", "3", "--reporting-interval", "100ms", "--json", file, "--print-metrics")
	for _, line := range []string{`(?m)^Warmup first 400 records\.`, `(?m)^In steady state\.$`, `(?m)^\d+ records sent, [\d.]+ records/sec .* ms max latency\.$`,
		`(?m)^2000 records sent, .* 99\.9th\.$`, `(?m)^1600 steady state records sent, .* 99\.9th\.$`, `producer-metrics:record-send-total +: 2000\.000`} {
		if !regexp.MustCompile(line).MatchString(out) {
			t.Errorf("no line %s in\n%s", line, out)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var result Result
	if err := json.Unmarshal(text, &result); err != nil {
		t.Fatal(err)
	}
	if result.Total.Records != 2000 || result.Total.Bytes != 100_000 || result.Steady.Records != 1600 || result.Failed != 0 || len(result.Windows) == 0 {
		t.Errorf("got %s", text)
	}
	if got := len(consumed(t, address, one, 1000)) + len(consumed(t, address, two, 1000)); got != 2000*51 {
		t.Errorf("%d bytes came out", got)
	}
}

// Claim: records that the broker refuses are counted, named and fail the command.
// Method: a topic whose limit is below the record size.
func TestRefusedRecordsFailTheRun(t *testing.T) {
	address := testbroker.Start(t)
	limit := "1000"
	topic := testbroker.Topic(t, address, 1, map[string]*string{"max.message.bytes": &limit})
	file := filepath.Join(t.TempDir(), "result.json")
	produce(t, cli.ExitFailure, "-b", address, "--topic", topic, "--num-records", "3", "--record-size", "3000", "--json", file)
	text, _ := os.ReadFile(file)
	var result Result
	if err := json.Unmarshal(text, &result); err != nil || result.Failed != 3 || result.Total.Records != 0 || result.FirstError == "" {
		t.Errorf("%v: %s", err, text)
	}
}

// Claim: no broker is exit status 4, at once.
// Method: a port where nothing listens.
func TestNoBrokerIsUnreachable(t *testing.T) {
	produce(t, cli.ExitUnreachable, "-b", "127.0.0.1:1", "--topic", "t", "--num-records", "1", "--record-size", "1")
}
