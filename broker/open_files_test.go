package broker

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"millrace/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Claim (F127): under the common limit of 1,024 open files a broker makes topics until few are left, then refuses with a message that names the
// limit; what is there takes and gives records, and after a deletion topics can be made again.
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
	for ; made < 20; made++ {
		code, message := create("t" + string(rune('a'+made)))
		if code == 0 {
			for p := range int32(100) { // each partition opens its files
				if r := b.produce(c, 9, "t"+string(rune('a'+made)), p, values(0, "first")); r.ErrorCode != 0 {
					t.Fatalf("topic %d, partition %d: error %d", made, p, r.ErrorCode)
				}
			}
			continue
		}
		if code != wire.ErrKafkaStorageError || !strings.Contains(message, "RLIMIT_NOFILE is 1024") {
			t.Fatalf("refused with %d %q, want %d and the limit", code, message, wire.ErrKafkaStorageError)
		}
		break
	}
	t.Logf("made %d topics of 100 partitions", made)
	if made < 5 || made > 9 {
		t.Errorf("made %d topics of 100 partitions, want 5 to 9", made)
	}
	if r := b.produce(c, 9, "ta", 7, values(0, "still")); r.ErrorCode != 0 || r.BaseOffset != 1 {
		t.Errorf("a record after the refusal: error %d, offset %d, want offset 1", r.ErrorCode, r.BaseOffset)
	}
	if got := c.fetch(b.fetchOf(11, want{topic: "ta", partition: 7}), 11); len(got.Topics) != 1 || len(got.Topics[0].Partitions[0].RecordBatches) == 0 {
		t.Errorf("nothing could be read after the refusal: %+v", got)
	}
	b.delete("tb")
	b.delete("tc")
	if code, message := create("again"); code != 0 {
		t.Errorf("after deletions: %d %q", code, message)
	}
}
