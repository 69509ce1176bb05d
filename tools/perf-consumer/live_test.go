package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"millrace/tools/internal/cli"
	"millrace/tools/internal/testbroker"
)

// consume runs the command and returns its standard output.
func consume(t *testing.T, want int, args ...string) string {
	t.Helper()
	return testbroker.Run(t, newCommand(), want, args...)
}

func fill(t *testing.T, address, topic string, n int) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.DefaultProduceTopic(topic))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for i := range n {
		cl.Produce(ctx, &kgo.Record{Key: []byte("k"), Value: fmt.Appendf(nil, "%08d", i)}, func(_ *kgo.Record, err error) {
			if err != nil {
				t.Error(err)
			}
		})
	}
	if err := cl.Flush(ctx); err != nil {
		t.Fatal(err)
	}
}

// Claim: exactly what was asked is consumed, and counted in records and bytes.
// Method: fewer records than the topic has; --json beside the lines.
func TestConsumesWhatWasAsked(t *testing.T) {
	address := testbroker.Start(t)
	topic := testbroker.Topic(t, address, 3, nil)
	fill(t, address, topic, 5000)
	file := filepath.Join(t.TempDir(), "result.json")
	out := consume(t, cli.ExitOK, "-b", address, "--topic", topic, "--num-records", "4321", "--json", file, "--print-metrics")
	if !strings.HasPrefix(out, totalHeader+"\n") || !strings.Contains(out, ", 4321, ") {
		t.Errorf("got\n%s", out)
	}
	text, _ := os.ReadFile(file)
	var result Result
	if err := json.Unmarshal(text, &result); err != nil || result.Total.Records != 4321 || result.Total.Bytes != 4321*9 || result.TimedOut {
		t.Errorf("%v: %s", err, text)
	}
}

// Claim: when records stop coming the figures are printed, with Kafka's warning, and
// the exit status is 4.
// Method: more records than the topic has.
func TestTimeoutIsToldAndFails(t *testing.T) {
	address := testbroker.Start(t)
	topic := testbroker.Topic(t, address, 1, nil)
	fill(t, address, topic, 10)
	out := consume(t, cli.ExitUnreachable, "-b", address, "--topic", topic, "--num-records", "11", "--timeout", "300", "--hide-header")
	if !strings.HasPrefix(out, "WARNING: Exiting before consuming the expected number of records: timeout (300 ms) exceeded.") || !strings.Contains(out, ", 10, ") {
		t.Errorf("got\n%s", out)
	}
}

// Claim: a topic that is not there is exit status 3, no broker 4.
// Method: ask for both.
func TestNothingThere(t *testing.T) {
	address := testbroker.Start(t)
	consume(t, cli.ExitNotFound, "-b", address, "--topic", "no-such-topic", "--num-records", "1")
	consume(t, cli.ExitNotFound, "-b", address, "--include", "no-such-.*", "--num-records", "1")
	consume(t, cli.ExitUnreachable, "-b", "127.0.0.1:1", "--topic", "t", "--num-records", "1")
}
