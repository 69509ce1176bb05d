package broker

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/engine/batch"
	"millrace/wire"
)

// traced names the scenario that this process runs under strace.
const traced = "MILLRACE_TRACED"

// trace runs one test of this binary under strace and returns the calls.
func trace(t *testing.T, scenario string) string {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed")
	}
	out := t.TempDir() + "/trace"
	cmd := exec.Command(strace, "-f", "-y", "-o", out, "-e", "trace=sendfile,pwritev,pwritev2,pwrite64", os.Args[0], "-test.run=^TestTracedScenario$", "-test.v")
	cmd.Env = append(os.Environ(), traced+"="+scenario)
	if text, err := cmd.CombinedOutput(); err != nil {
		if bytes.Contains(text, []byte("Operation not permitted")) {
			t.Skip("strace may not trace here: " + string(text))
		}
		t.Fatalf("%v\n%s", err, text)
	}
	calls, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return string(calls)
}

// TestTracedScenario is what trace runs; by itself it does nothing.
func TestTracedScenario(t *testing.T) {
	switch scenario := os.Getenv(traced); scenario {
	case "":
		t.Skip("runs only under strace, started by the other tests of this file")
	case "fetch":
		fetchLargeAndSmall(t)
	case "produce":
		produceUnderLoad(t)
	default:
		t.Fatal(scenario)
	}
}

const (
	largeFetches = 10
	loadRequests = 400
)

func fetchLargeAndSmall(t *testing.T) {
	b := startBroker(t)
	b.topic("large", 1)
	b.topic("small", 1)
	for range 4 {
		b.mustProduce("large", 0, sized(256<<10))
	}
	b.mustProduce("small", 0, sized(1000))
	c := b.dial()
	for range largeFetches {
		if p := c.fetch(b.fetchOf(12, want{topic: "large"}), 12).Topics[0].Partitions[0]; len(p.RecordBatches) != 1<<20 {
			t.Fatalf("%d bytes, want %d", len(p.RecordBatches), 1<<20)
		}
		c.fetch(b.fetchOf(12, want{topic: "small"}), 12)
	}
}

func produceUnderLoad(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1)
	var wait sync.WaitGroup
	for range 4 {
		c := b.dial()
		var frames [][]byte
		for range loadRequests / 4 {
			frames = append(frames, c.frame(b.produceTo(9, -1, "t", 0, values(batch.None, strings.Repeat("x", 100))), 9))
		}
		wait.Go(func() {
			c.write(frames...)
			for range frames {
				_, rest := c.read()
				if p := c.decode(kmsg.NewPtrProduceRequest(), 9, rest).(*kmsg.ProduceResponse).Topics[0].Partitions[0]; p.ErrorCode != 0 {
					t.Error(wire.ErrorName(p.ErrorCode))
				}
			}
		})
	}
	wait.Wait()
}

// Claim: fetches of large ranges leave by sendfile, small ones do not.
// Method: count the system calls of a broker that serves both.
func TestLargeFetchesUseSendfile(t *testing.T) {
	calls := trace(t, "fetch")
	// A call may be cut in two lines by another thread's: "unfinished", then
	// "resumed" with the result.
	sent := 0
	for _, m := range regexp.MustCompile(`sendfile(?:\(| resumed)[^\n]* = (\d+)`).FindAllStringSubmatch(calls, -1) {
		var n int
		_, _ = fmt.Sscan(m[1], &n)
		sent += n
	}
	if sent != largeFetches<<20 || !strings.Contains(calls, "large-0") {
		t.Errorf("%d bytes left by sendfile, want %d", sent, largeFetches<<20)
	}
	if strings.Contains(calls, "small-0") && regexp.MustCompile(`sendfile\(.*small-0`).MatchString(calls) {
		t.Error("a small range left by sendfile")
	}
}

// Claim: under load, appends take fewer writes to the segment than requests.
// Method: count the writes of a broker that gets pipelined produces.
func TestAppendsUnderLoadAreCombined(t *testing.T) {
	calls := trace(t, "produce")
	writes := len(regexp.MustCompile(`pwrite(v|v2|64)\([^\n]*t-0/\d+\.log`).FindAllString(calls, -1))
	if writes == 0 || writes > loadRequests/2 {
		t.Errorf("%d writes for %d requests", writes, loadRequests)
	}
	t.Logf("%d writes for %d requests", writes, loadRequests)
}
