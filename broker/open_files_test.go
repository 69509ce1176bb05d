package broker

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Claim (F127): under the common limit of 1,024 open files a broker makes 2,000 partitions, takes and gives records in each of them, and deletes and makes
// topics as before; what is open stays within the limit, and the limit was logged at the start.
// Method: a process of its own, since the limit is the process's.
func TestField_F127_OpenFiles(t *testing.T) {
	const child = "MILLRACE_TEST_OPEN_FILES"
	if os.Getenv(child) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestField_F127_OpenFiles$", "-test.v")
		cmd.Env = append(os.Environ(), child+"=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for sc := bufio.NewScanner(strings.NewReader(string(out))); sc.Scan(); {
			if strings.Contains(sc.Text(), "made ") {
				t.Log(strings.TrimSpace(sc.Text()))
			}
		}
		return
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 1024, Max: 1024}); err != nil {
		t.Fatal(err)
	}
	b := startBroker(t)
	c := b.dial()
	create := func(name string) (int16, string) {
		req := kmsg.NewPtrCreateTopicsRequest()
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, 100, 1
		req.Topics, req.TimeoutMillis = append(req.Topics, topic), 30000
		resp := c.ask(req, 5).(*kmsg.CreateTopicsResponse)
		message := ""
		if m := resp.Topics[0].ErrorMessage; m != nil {
			message = *m
		}
		return resp.Topics[0].ErrorCode, message
	}
	made := 0
	topic := func(i int) string { return "t" + string(rune('a'+i)) }
	for ; made < 20; made++ {
		if code, message := create(topic(made)); code != 0 {
			t.Fatalf("topic %d: %d %q", made, code, message)
		}
		for p := range int32(100) { // each partition opens its files
			if r := b.produce(c, 9, topic(made), p, values(0, "first")); r.ErrorCode != 0 {
				t.Fatalf("topic %d, partition %d: error %d", made, p, r.ErrorCode)
			}
		}
	}
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	files := b.store.FileStats()
	t.Logf("made %d topics of 100 partitions: %d descriptors, %+v", made, len(open), files)
	if len(open) > 900 || files.Open > 600 || files.Evicted < 1000 {
		t.Errorf("%d descriptors, %+v", len(open), files)
	}
	if r := b.produce(c, 9, "ta", 7, values(0, "still")); r.ErrorCode != 0 || r.BaseOffset != 1 {
		t.Errorf("a second record: error %d, offset %d, want offset 1", r.ErrorCode, r.BaseOffset)
	}
	if got := c.fetch(b.fetchOf(11, want{topic: "ta", partition: 7}), 11); len(got.Topics) != 1 || len(got.Topics[0].Partitions[0].RecordBatches) == 0 {
		t.Errorf("nothing could be read: %+v", got)
	}
	b.delete("tb")
	b.delete("tc")
	if code, message := create("again"); code != 0 {
		t.Errorf("after deletions: %d %q", code, message)
	}
}
