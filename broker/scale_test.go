package broker

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/coord"
	"millrace/engine/batch"
	"millrace/engine/vfs/faultfs"
	"millrace/wire"
)

// F115: lag was computed from an end read before the commit, and was negative.
// Claim: while producers and a committing group run at full speed no scrape ever shows a lag below 0, of a partition, of their sum or in seconds; a
// commit beyond the end shows as 0.
// Method: one connection writes and commits the very end each time, so that any end read too early lies below the commit.
func TestField_F115_LagIsNeverNegative(t *testing.T) {
	b := startBroker(t, append([]string{withAdmin}, quick...)...)
	b.topic("t", 1)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var commits atomic.Int64
	c := b.dial()
	b.coordinator(c, "g")
	wg.Go(func() { // ends with stop
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			p := b.produce(c, 9, "t", 0, values(batch.None, "a", "b", "c"))
			commit := kmsg.NewPtrOffsetCommitRequest()
			commit.Group, commit.Generation = "g", -1
			topic := kmsg.NewOffsetCommitRequestTopic()
			topic.Topic = "t"
			partition := kmsg.NewOffsetCommitRequestTopicPartition()
			partition.Offset = p.BaseOffset + 3
			if i%10 == 0 {
				partition.Offset += 1000 // as of a topic that was made anew
			}
			topic.Partitions = append(topic.Partitions, partition)
			commit.Topics = append(commit.Topics, topic)
			if code := c.ask(commit, 7).(*kmsg.OffsetCommitResponse).Topics[0].Partitions[0].ErrorCode; code != 0 {
				t.Errorf("commit: %s", wire.ErrorName(code))
				return
			}
			commits.Add(1)
		}
	})
	seen := 0
	for scrapes := 0; scrapes < 60 || (seen < 30 || commits.Load() < 30) && !t.Failed(); scrapes++ {
		for name, v := range b.scrape() {
			if strings.HasPrefix(name, "kafka_consumergroup_lag") {
				seen++
				if v < 0 {
					t.Errorf("%s is %v", name, v)
				}
			}
		}
	}
	close(stop)
	wg.Wait()
}

// bigImage is a cluster of 4,000 topics with 10 partitions each.
func bigImage() *coord.Image {
	var topics []coord.Topic
	for i := range 4000 {
		topic := coord.Topic{Name: fmt.Sprintf("topic-with-a-name-of-usual-length-%04d", i), ID: coord.ID{1, byte(i >> 8), byte(i)}}
		for range 10 {
			topic.Partitions = append(topic.Partitions, coord.Partition{Leader: 1, Replicas: []int32{1}, ISR: []int32{1}})
		}
		topics = append(topics, topic)
	}
	return coord.NewImage("cluster", 1, []coord.Broker{{ID: 1, Endpoints: []coord.Endpoint{{Listener: "PLAINTEXT", Host: "127.0.0.1", Port: 9092}}}}, topics)
}

// standing is a coordination whose image never changes.
type standing struct {
	coord.Service
	img *coord.Image
}

func (s standing) Image() *coord.Image { return s.img }

// F121: consoles ask for everything, and big clusters made them wait for a minute.
// Claim: ten clients that ask for all 40,000 partitions at once get each of them, whole, in every version.
// How long it takes, and in how much memory, is BenchmarkMetadataOfAll.
func TestField_F121_BigMetadata(t *testing.T) {
	b := &Broker{coord: standing{img: bigImage()}}
	rc := &requestContext{listener: "PLAINTEXT", log: slog.New(slog.DiscardHandler)}
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() { // ends with its answer
			req := kmsg.NewPtrMetadataRequest()
			req.Version = int16(4 + i)
			body := b.handleMetadata(rc, req).(*kmsg.MetadataResponse).AppendTo(nil)
			resp := req.ResponseKind().(*kmsg.MetadataResponse)
			if err := resp.ReadFrom(body); err != nil {
				t.Error(err)
				return
			}
			partitions := 0
			for _, topic := range resp.Topics {
				for _, p := range topic.Partitions {
					if p.ErrorCode == 0 && p.Leader == 1 {
						partitions++
					}
				}
			}
			if len(resp.Topics) != 4000 || partitions != 40_000 {
				t.Errorf("version %d: %d topics, %d partitions with a leader, in %d bytes", req.Version, len(resp.Topics), partitions, len(body))
			}
		})
	}
	wg.Wait()
}

// What an answer of 40,000 partitions costs (F121 asks for less than a second).
func BenchmarkMetadataOfAll(b *testing.B) {
	broker := &Broker{coord: standing{img: bigImage()}}
	rc := &requestContext{listener: "PLAINTEXT", log: slog.New(slog.DiscardHandler)}
	req := kmsg.NewPtrMetadataRequest()
	req.Version = 9
	b.ReportAllocs()
	for b.Loop() {
		body := broker.handleMetadata(rc, req).(*kmsg.MetadataResponse).AppendTo(nil)
		b.ReportMetric(float64(len(body)), "answer-bytes")
	}
}

// F123: a replay from a cold disk stalled every producer that shared its thread.
// Claim: while the disk does not come back with old data, readers of it wait and nobody else: producers of the same partition and of others, and
// readers of what is new.
// Method: a disk that does not answer reads of the first segment.
func TestField_F123_ColdReadsHoldUpNobody(t *testing.T) {
	disk := faultfs.New(t)
	release := make(chan struct{})
	var slow atomic.Bool
	var held atomic.Int64
	first := filepath.Join("t-0", "00000000000000000000.log")
	disk.BeforeRead(func(name string) {
		if slow.Load() && strings.HasSuffix(name, first) {
			held.Add(1)
			<-release
		}
	})
	b := startOn(t, disk)
	b.topic("t", 2, "segment.bytes=20000")
	for range 20 {
		b.mustProduce("t", 0, sized(3000))
	}
	slow.Store(true)
	const readers = 4
	answers := make(chan int, readers)
	for range readers {
		c := b.dial()
		c.write(c.frame(b.fetchOf(12, want{topic: "t", partition: 0, offset: 0, max: 10_000}), 12))
		go func() { // ends when the disk answers
			_, rest, err := c.tryRead(30 * time.Second)
			if err != nil {
				t.Error(err)
			}
			answers <- len(rest)
		}()
	}
	b.eventually("the readers wait for the disk", func() bool { return held.Load() >= 1 })
	for range 50 { // each has its answer while all of them still wait
		b.mustProduce("t", 0, values(batch.None, "same partition"))
		b.mustProduce("t", 1, values(batch.None, "another"))
	}
	end := b.end("t", 0)
	if got := b.dial().fetch(b.fetchOf(12, want{topic: "t", partition: 0, offset: end - 1}), 12).Topics[0].Partitions[0]; got.ErrorCode != 0 || len(got.RecordBatches) == 0 {
		t.Errorf("a read at the tail: %s, %d bytes", wire.ErrorName(got.ErrorCode), len(got.RecordBatches))
	}
	if len(answers) != 0 {
		t.Errorf("%d of the cold reads were answered: nothing was held", len(answers))
	}
	close(release)
	for range readers {
		if n := <-answers; n < 3000 {
			t.Errorf("a cold read brought %d bytes", n)
		}
	}
}
