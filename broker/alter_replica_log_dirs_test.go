package broker

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/engine/batch"
	"millrace/wire"
)

// moveTo asks for one partition and returns the code.
func (c *adminClient) moveTo(version int16, topic string, partition int32, dir string) int16 {
	c.t.Helper()
	req := kmsg.NewPtrAlterReplicaLogDirsRequest()
	req.Version = version
	req.Dirs = []kmsg.AlterReplicaLogDirsRequestDir{{Dir: dir, Topics: []kmsg.AlterReplicaLogDirsRequestDirTopic{{Topic: topic, Partitions: []int32{partition}}}}}
	r := ask[*kmsg.AlterReplicaLogDirsResponse](c, req)
	if len(r.Topics) != 1 || r.Topics[0].Topic != topic || len(r.Topics[0].Partitions) != 1 || r.Topics[0].Partitions[0].Partition != partition {
		c.t.Fatalf("answer %+v", r)
	}
	return r.Topics[0].Partitions[0].ErrorCode
}

func (c *adminClient) logDirs() *kmsg.DescribeLogDirsResponse {
	c.t.Helper()
	req := kmsg.NewPtrDescribeLogDirsRequest()
	req.Version = 4
	return ask[*kmsg.DescribeLogDirsResponse](c, req)
}

// Claim: every version moves a partition, and what cannot be moved is told as Kafka tells it: a path that is not of log.dirs, or not
// absolute, a topic that is not there; a partition that is asked for before it exists is made in the directory named.
// Method: one of each, in versions 0 to 2.
func TestAlterReplicaLogDirs(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	b := startBroker(t, "log.dirs="+first+","+second)
	c := dialAdmin(t, b.Broker, "")
	c.createTopic("a", 1)
	record := values(batch.None, "v")
	b.mustProduce("a", 0, record)
	for version := int16(0); version <= 2; version++ {
		to := []string{second, first}[version%2]
		if code := c.moveTo(version, "a", 0, to); code != 0 {
			t.Fatalf("v%d: %s", version, wire.ErrorName(code))
		}
		b.eventually("the partition is in "+to, func() bool {
			return slices.Contains(told(c.logDirs()), fmt.Sprintf("%s: a-0=%d", filepath.Base(to), len(record)))
		})
		for _, x := range []struct {
			topic     string
			partition int32
			dir       string
			want      int16
		}{
			{"a", 0, dir, wire.ErrLogDirNotFound}, {"a", 0, "second", wire.ErrLogDirNotFound}, {"a", 0, "", wire.ErrLogDirNotFound},
			{"none", 0, second, wire.ErrUnknownTopicOrPartition}, {"a", 1, second, wire.ErrUnknownTopicOrPartition}, {"a", -1, second, wire.ErrUnknownTopicOrPartition},
			{"a", 0, to, 0}, {"a", 0, to + "/", 0},
		} {
			if code := c.moveTo(version, x.topic, x.partition, x.dir); code != x.want {
				t.Errorf("v%d: %s-%d to %q: %s, want %s", version, x.topic, x.partition, x.dir, wire.ErrorName(code), wire.ErrorName(x.want))
			}
		}
	}
	c.createTopic("none", 1)
	if got := told(c.logDirs()); !slices.Equal(got, []string{"first:", fmt.Sprintf("second: a-0=%d none-0=0", len(record))}) {
		t.Errorf("%q", got)
	}
	req := kmsg.NewPtrAlterReplicaLogDirsRequest()
	topic := kmsg.AlterReplicaLogDirsRequestDirTopic{Topic: "a", Partitions: []int32{0, 7}}
	req.Dirs = []kmsg.AlterReplicaLogDirsRequestDir{{Dir: "/nowhere", Topics: []kmsg.AlterReplicaLogDirsRequestDirTopic{topic}}, {Dir: second, Topics: []kmsg.AlterReplicaLogDirsRequestDirTopic{topic}}}
	r := ask[*kmsg.AlterReplicaLogDirsResponse](c, req)
	if len(r.Topics) != 1 || len(r.Topics[0].Partitions) != 2 || r.Topics[0].Partitions[0].ErrorCode != 0 || r.Topics[0].Partitions[1].ErrorCode != wire.ErrUnknownTopicOrPartition {
		t.Errorf("named twice: %+v", r)
	}
}

// Claim: while a partition moves, DescribeLogDirs shows the copy with its size and how far it is behind; the rate can be changed
// meanwhile, 0 halts; a topic deleted meanwhile leaves nothing; a directory that is offline is refused.
// Method: a halted move that is let go, another that ends with its topic; a file in the place of a directory.
func TestMovesAreShown(t *testing.T) {
	dir := t.TempDir()
	first, second, bad := filepath.Join(dir, "first"), filepath.Join(dir, "second"), filepath.Join(dir, "bad")
	if err := os.WriteFile(bad, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const rate = "replica.alter.log.dirs.io.max.bytes.per.second"
	b := startBroker(t, "log.dirs="+first+","+second+","+bad, rate+"=0", "admin.listener=127.0.0.1:0")
	c := dialAdmin(t, b.Broker, "")
	c.createTopic("a", 1)
	record := values(batch.None, "v")
	b.mustProduce("a", 0, record)
	if code := c.moveTo(2, "a", 0, bad); code != wire.ErrKafkaStorageError {
		t.Errorf("to a directory that is offline: %s", wire.ErrorName(code))
	}
	begin := func() {
		t.Helper()
		if code := c.moveTo(2, "a", 0, second); code != 0 {
			t.Fatal(wire.ErrorName(code))
		}
		b.eventually("the copy is shown", func() bool {
			r := c.logDirs()
			return len(r.Dirs[1].Topics) == 1 && r.Dirs[1].Topics[0].Partitions[0].Size > 0
		})
	}
	begin()
	b.mustProduce("a", 0, record)
	b.mustProduce("a", 0, record)
	here, there := c.logDirs().Dirs[0].Topics[0].Partitions[0], c.logDirs().Dirs[1].Topics[0].Partitions[0]
	if here.IsFuture || here.OffsetLag != 0 || here.Size != int64(3*len(record)) || !there.IsFuture || there.OffsetLag != 2 || there.Size != int64(len(record)) {
		t.Errorf("%+v and %+v", here, there)
	}
	b.scrape().expect(t, scraped{"millrace_log_moves": 1, "kafka_server_replicaalterlogdirsmanager_maxlag": 2, `millrace_log_moves_total{result="done"}`: 0})
	mustAlter(c, ofBroker, "", alteration{opSet, rate, "1000000"})
	b.eventually("it has moved", func() bool {
		return slices.Equal(told(c.logDirs())[:2], []string{"first:", fmt.Sprintf("second: a-0=%d", 3*len(record))})
	})
	b.scrape().expect(t, scraped{"millrace_log_moves": 0, `millrace_log_moves_total{result="done"}`: 1, "millrace_log_move_bytes_total": float64(3 * len(record))})
	if code := c.moveTo(2, "a", 0, first); code != 0 {
		t.Fatal(wire.ErrorName(code))
	}
	b.eventually("it is back", func() bool { return len(c.logDirs().Dirs[1].Topics) == 0 })
	mustAlter(c, ofBroker, "", alteration{opSet, rate, "0"})
	begin()
	b.delete("a")
	if got := told(c.logDirs())[:2]; !slices.Equal(got, []string{"first:", "second:"}) {
		t.Errorf("after the deletion: %q", got)
	}
}

// Claim: partitions that move to and fro all the time are produced to and consumed from without an error, and nothing is lost, doubled or reordered.
// Method: a real client with an idempotent producer and a consumer, in this process; two partitions, ten moves each.
func TestPartitionsMoveWhileTheyServe(t *testing.T) {
	dirs := []string{t.TempDir(), t.TempDir()}
	b := startBroker(t, "log.dirs="+strings.Join(dirs, ","), "log.segment.bytes=1048576")
	c := dialAdmin(t, b.Broker, "")
	c.createTopic("t", 2)
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addr("")), kgo.ConsumeTopics("t"), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0),
		kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var sent [2]atomic.Int64
	var stop atomic.Bool
	var writers sync.WaitGroup
	for p := range int32(2) {
		writers.Go(func() { // ends with stop
			for i := 0; !stop.Load(); i++ {
				r := &kgo.Record{Topic: "t", Partition: p, Value: append(fmt.Appendf(nil, "%d ", i), make([]byte, 8000)...)}
				if err := cl.ProduceSync(ctx, r).FirstErr(); err != nil {
					t.Errorf("produce: %v", err)
					return
				}
				sent[p].Add(1)
			}
		})
	}
	for i := range 10 {
		before := sent[0].Load() + sent[1].Load()
		for p := range int32(2) {
			to := dirs[(i+int(p))%2]
			if code := c.moveTo(2, "t", p, to); code != 0 {
				t.Fatal(wire.ErrorName(code))
			}
			b.eventually("the partition has moved", func() bool {
				return len(b.store.Moves()) == 0 && b.store.DirOf(b.store.Log("t", p)) == to
			})
		}
		b.eventually("more is written", func() bool { return t.Failed() || sent[0].Load()+sent[1].Load() > before+20 })
	}
	stop.Store(true)
	writers.Wait()
	next := [2]int64{}
	for next[0] < sent[0].Load() || next[1] < sent[1].Load() {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatal(err, next)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			value, _, _ := strings.Cut(string(r.Value), " ")
			if want := next[r.Partition]; r.Offset != want || value != fmt.Sprint(want) {
				t.Fatalf("partition %d: %q at %d, want %d", r.Partition, value, r.Offset, want)
			}
			next[r.Partition]++
		})
	}
}

// movingBroker names the data directories of a broker in a process of its own.
const movingBroker = "MILLRACE_TEST_MOVING_BROKER"

// TestMovingBrokerProcess is that process, see the test below: it serves until it is killed.
func TestMovingBrokerProcess(t *testing.T) {
	dirs := os.Getenv(movingBroker)
	if dirs == "" {
		t.Skip("only as the process of another test")
	}
	b := startBroker(t, "log.dirs="+dirs, "log.segment.bytes=1048576", "log.segment.delete.delay.ms=1")
	fmt.Printf("\naddress %s\n", b.Addr(""))
	io.Copy(io.Discard, os.Stdin) // ends with the parent
}

// startMoving starts the process and returns its address, and what kills it.
func startMoving(t *testing.T, dirs []string) (address string, kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestMovingBrokerProcess$", "-test.count=1")
	cmd.Env = append(os.Environ(), movingBroker+"="+strings.Join(dirs, ","), "TMPDIR="+t.TempDir()) // who is killed cleans nothing up
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		cmd.Process.Kill()
		cmd.Wait()
		stdin.Close()
	})
	t.Cleanup(kill)
	var said strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if a, ok := strings.CutPrefix(lines.Text(), "address "); ok {
			return a, kill
		}
		said.WriteString(lines.Text() + "\n")
	}
	t.Fatalf("the broker's process did not start:\n%s", said.String())
	return "", nil
}

// Claim: no acknowledged record is lost when the broker's process is killed while partitions move.
// Method: kill -9 of a real process, eight times, each at another moment of moves that never rest; then all that was ever acknowledged is read.
func TestKillWhilePartitionsMove(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	dirs := []string{t.TempDir(), t.TempDir()}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var mu sync.Mutex
	acked := map[string]bool{}
	moves := 0
	for round := range 8 {
		address, kill := startMoving(t, dirs)
		cl, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0),
			kgo.ProducerBatchCompression(kgo.NoCompression()))
		if err != nil {
			t.Fatal(err)
		}
		admin := kadm.NewClient(cl)
		if round == 0 {
			if _, err := admin.CreateTopic(ctx, 2, 1, nil, "t"); err != nil {
				t.Fatal(err)
			}
		} else if got := readAll(t, ctx, address); !containsAll(got, acked) {
			t.Fatalf("round %d: %d records acknowledged, %d read, some are missing", round, len(acked), len(got))
		}
		ended, end := context.WithCancel(ctx)
		var work sync.WaitGroup
		var n atomic.Int64
		for p := range int32(2) {
			work.Go(func() { // ends with the first error, after the kill
				for i := 0; ended.Err() == nil; i++ {
					value := fmt.Sprintf("%d/%d/%d", round, p, i)
					if cl.ProduceSync(ended, &kgo.Record{Topic: "t", Partition: p, Value: append([]byte(value+" "), make([]byte, 8000)...)}).FirstErr() != nil {
						return
					}
					mu.Lock()
					acked[value] = true
					mu.Unlock()
					n.Add(1)
				}
			})
		}
		work.Go(func() { // likewise
			for i := 0; ended.Err() == nil; i++ {
				var req kadm.AlterReplicaLogDirsReq
				req.Add(dirs[i%2], kadm.TopicsSet{"t": {0: {}, 1: {}}})
				if _, err := admin.AlterAllReplicaLogDirs(ended, req); err != nil {
					return
				}
				moves++
				time.Sleep(time.Duration(3+round*2) * time.Millisecond) // where the kill falls; nothing depends on it
			}
		})
		for n.Load() < int64(100+37*round) && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		kill()
		end()
		cl.Close() // what is on its way has no other end
		work.Wait()
	}
	address, _ := startMoving(t, dirs)
	if got := readAll(t, ctx, address); !containsAll(got, acked) || moves < 16 {
		t.Fatalf("%d records acknowledged, %d read, some are missing; %d moves", len(acked), len(got), moves)
	}
}

// readAll reads the topic from its start to its end.
func readAll(t *testing.T, ctx context.Context, address string) map[string]bool {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.ConsumeTopics("t"))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, "t")
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	var next [2]int64
	at := func(p int32) int64 { o, _ := ends.Lookup("t", p); return o.Offset }
	for next[0] < at(0) || next[1] < at(1) {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			value, _, _ := strings.Cut(string(r.Value), " ")
			got[value] = true
			next[r.Partition] = r.Offset + 1
		})
	}
	return got
}

func containsAll(got, want map[string]bool) bool {
	for v := range want {
		if !got[v] {
			return false
		}
	}
	return true
}
