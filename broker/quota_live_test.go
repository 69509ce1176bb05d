package broker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/engine/batch"
	"millrace/wire"
)

// shortWindows make quotas hold within a test: one second of credit, at most three of
// waiting.
var shortWindows = []string{"quota.window.num=2", "quota.window.size.seconds=1"}

// as is frame with another client id than the harness's.
func (c *client) as(id string, req kmsg.Request, version int16) []byte {
	req.SetVersion(version)
	c.next++
	dst, mark := wire.BeginFrame(nil)
	dst = wire.AppendRequestHeader(dst, wire.Header{Key: req.Key(), Version: version, Correlation: c.next, ClientID: id, HasClientID: true})
	return wire.EndFrame(append(dst, req.AppendTo(nil)...), mark)
}

// Claim: a producer that could send ten times its quota is slowed down to it within a
// tenth, gets no error and no time-out; another producer does not notice. When the
// quota goes, it is free at once.
// Method: a real client with five requests in flight; its rate after the credit is used
// up, and the time that another's requests take meanwhile.
func TestAProducerIsSlowedToItsQuota(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seven seconds")
	}
	b := startBroker(t, shortWindows...)
	b.topic("t", 1)
	b.topic("u", 1)
	const rate = 400_000
	b.quota("client-id=greedy", fmt.Sprintf("producer_byte_rate=%d", rate))
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addr("")), kgo.ClientID("greedy"), kgo.DefaultProduceTopic("t"), kgo.ProducerBatchMaxBytes(16<<10),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ProducerLinger(0), kgo.RecordRetries(0), kgo.MaxBufferedRecords(2000))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithCancel(context.Background())
	var sent atomic.Int64
	var wait sync.WaitGroup
	wait.Go(func() {
		value := make([]byte, 1000)
		for i := range value {
			value[i] = byte(i * i)
		}
		for ctx.Err() == nil {
			cl.Produce(ctx, &kgo.Record{Value: value}, func(r *kgo.Record, err error) {
				if err == nil {
					sent.Add(int64(len(r.Value)) + 10)
				} else if ctx.Err() == nil {
					t.Errorf("produce: %v", err)
				}
			})
		}
	})
	var slowest time.Duration
	wait.Go(func() {
		other := b.dial()
		for ctx.Err() == nil {
			begun := time.Now()
			req := b.produceTo(9, -1, "u", 0, values(batch.None, "x"))
			other.write(other.as("modest", req, 9))
			if r := other.answer(req, 9).(*kmsg.ProduceResponse); r.ThrottleMillis != 0 || r.Topics[0].Partitions[0].ErrorCode != 0 {
				t.Errorf("the other one: %+v", r)
			}
			slowest = max(slowest, time.Since(begun))
			time.Sleep(5 * time.Millisecond)
		}
	})
	time.Sleep(2 * time.Second) // the credit
	before, begun := sent.Load(), time.Now()
	time.Sleep(5 * time.Second)
	got := float64(sent.Load()-before) / time.Since(begun).Seconds()
	if math.Abs(got-rate) > rate/10 {
		t.Errorf("%.0f bytes a second, want %d", got, rate)
	}
	b.quota("client-id=greedy", "producer_byte_rate")
	before, begun = sent.Load(), time.Now()
	for sent.Load()-before < 4*rate && time.Since(begun) < 5*time.Second {
		time.Sleep(10 * time.Millisecond)
	}
	if took := time.Since(begun); took > 3*time.Second {
		t.Errorf("without the quota 4 seconds' worth took %v", took)
	}
	cancel()
	wait.Wait()
	if slowest > time.Second {
		t.Errorf("the other producer waited %v", slowest)
	}
}

// Claim: a consumer is slowed to its quota within a tenth, with what it gets in order
// and whole, although single answers could be far larger.
// Method: a real client reads what lies there.
func TestAConsumerIsSlowedToItsQuota(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seven seconds")
	}
	b := startBroker(t, shortWindows...)
	b.topic("t", 1)
	const rate = 500_000
	for range 30 {
		b.mustProduce("t", 0, sized(100_000))
	}
	b.quota("user", fmt.Sprintf("consumer_byte_rate=%d", rate)) // each user by itself
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addr("")), kgo.ConsumeTopics("t"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var begun time.Time
	records, counted := 0, 0
	for records < 28 {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if r.Offset != int64(records) {
				t.Fatalf("offset %d, want %d", r.Offset, records)
			}
			records++
		})
		switch {
		case records < 10: // the credit
		case begun.IsZero():
			begun, counted = time.Now(), records
		}
	}
	got := float64(records-counted) * 100_000 / time.Since(begun).Seconds()
	if math.Abs(got-rate) > rate/5 { // whole answers: the ends of the measure are one uncertain
		t.Errorf("%.0f bytes a second, want %d", got, rate)
	}
}

// Claim: since the version that says so an answer comes at once and tells the time, and
// the next request waits; before that version the answer itself waits.
// Method: every version of Produce, one request that costs half a second, and a look at
// the clock.
func TestEveryProduceVersionIsThrottledItsWay(t *testing.T) {
	b := startBroker(t, shortWindows...)
	b.topic("t", 1)
	var wait sync.WaitGroup
	for version := range int16(14) {
		id := fmt.Sprint("v", version)
		b.quota("client-id="+id, "producer_byte_rate=100000")
		wait.Go(func() {
			c := b.dial()
			defer c.nc.Close()
			req := b.produceTo(version, -1, "t", 0, sized(150_000))
			if version < 3 {
				req.Topics[0].Partitions[0].Records = sized(150_000)
			}
			begun := time.Now()
			c.write(c.as(id, req, version))
			r := c.answer(req, version).(*kmsg.ProduceResponse)
			took := time.Since(begun)
			if r.Topics[0].Partitions[0].ErrorCode != 0 {
				t.Errorf("v%d: %s", version, wire.ErrorName(r.Topics[0].Partitions[0].ErrorCode))
			}
			if version >= 1 && (r.ThrottleMillis < 450 || r.ThrottleMillis > 550) {
				t.Errorf("v%d: throttle %d ms, want 500", version, r.ThrottleMillis)
			}
			next := kmsg.NewPtrApiVersionsRequest()
			c.write(c.frame(next, 0))
			c.answer(next, 0)
			all := time.Since(begun)
			if told := version >= 6; told && took > 400*time.Millisecond || !told && took < 400*time.Millisecond || all < 450*time.Millisecond {
				t.Errorf("v%d: the answer took %v, the next one came at %v", version, took, all)
			}
		})
	}
	wait.Wait()
}

// Claim: the same for Fetch: a consumer above its quota is told, and then gets an empty
// answer in its session; an older one waits.
// Method: two connections of one client id, in every version.
func TestEveryFetchVersionIsThrottledItsWay(t *testing.T) {
	b := startBroker(t, shortWindows...)
	b.topic("t", 1)
	for range 3 {
		b.mustProduce("t", 0, sized(150_000))
	}
	var wait sync.WaitGroup
	for version := range int16(19) {
		id := fmt.Sprint("v", version)
		b.quota("client-id="+id, "consumer_byte_rate=100000")
		wait.Go(func() {
			one, two := b.dial(), b.dial()
			req := b.fetchOf(version, want{topic: "t", max: 200_000})
			one.write(one.as(id, req, version))
			r := one.answer(req, version).(*kmsg.FetchResponse)
			if n := len(r.Topics[0].Partitions[0].RecordBatches); n < 100_000 {
				t.Errorf("v%d: %d bytes", version, n)
			}
			req.SessionEpoch = 0
			begun := time.Now()
			two.write(two.as(id, req, version))
			again := two.answer(req, version).(*kmsg.FetchResponse)
			took := time.Since(begun)
			if version < 8 {
				if took < 300*time.Millisecond || len(again.Topics) != 1 {
					t.Errorf("v%d: took %v, %d topics", version, took, len(again.Topics))
				}
				return
			}
			if r.ThrottleMillis < 400 || r.ThrottleMillis > 600 || again.ThrottleMillis < 300 || took > 300*time.Millisecond || len(again.Topics) != 0 || again.ErrorCode != 0 || again.SessionID == 0 {
				t.Errorf("v%d: throttle %d then %d ms, took %v, %d topics, session %d, code %d", version, r.ThrottleMillis, again.ThrottleMillis, took, len(again.Topics), again.SessionID, again.ErrorCode)
			}
			// The session's epoch has advanced; its partitions were not forgotten.
			req.SessionID, req.SessionEpoch, req.Topics = again.SessionID, 1, nil
			two.write(two.as(id, req, version))
			last := two.answer(req, version).(*kmsg.FetchResponse)
			if last.ErrorCode != 0 || len(last.Topics) != 1 || len(last.Topics[0].Partitions[0].RecordBatches) == 0 {
				t.Errorf("v%d: in the session: code %d, %d topics, throttle %d ms", version, last.ErrorCode, len(last.Topics), last.ThrottleMillis)
			}
		})
	}
	wait.Wait()
}

// Claim: a client that lets us work more than its share gets time to rest, never an
// error; what waits for others is no work.
// Method: metadata of many topics as fast as it goes, old and new; then a held fetch.
func TestRequestTimeIsAQuota(t *testing.T) {
	b := startBroker(t, shortWindows...)
	b.topic("t", 500)
	b.quota("client-id=busy", "request_percentage=1")
	for _, version := range []int16{4, 9} { // 6 is the first that tells
		c := b.dial()
		req := kmsg.NewPtrMetadataRequest()
		throttled, longest := int32(0), time.Duration(0)
		end := time.Now().Add(1500 * time.Millisecond)
		for throttled == 0 && time.Now().Before(end) {
			begun := time.Now()
			c.write(c.as("busy", req, version))
			r := c.answer(req, version).(*kmsg.MetadataResponse)
			throttled, longest = r.ThrottleMillis, max(longest, time.Since(begun))
		}
		if throttled == 0 || throttled > 1000 {
			t.Errorf("v%d: throttle %d ms", version, throttled)
		}
		if told := version >= 6; !told && longest < time.Duration(throttled)*time.Millisecond/2 {
			t.Errorf("v%d: the answer that tells of %d ms took %v", version, throttled, longest)
		}
	}
	b.quota("client-id=patient", "request_percentage=1")
	c := b.dial()
	fetch := b.fetchOf(12, want{topic: "t"})
	fetch.MaxWaitMillis = 300
	for range 2 {
		c.write(c.as("patient", fetch, 12))
		if r := c.answer(fetch, 12).(*kmsg.FetchResponse); r.ThrottleMillis != 0 {
			t.Errorf("a held fetch costs: throttle %d ms", r.ThrottleMillis)
		}
	}
}

// Claim: acks=0 is slowed too, though nothing can tell the client; nothing is lost.
// Method: four seconds' worth at once, in many frames.
func TestProduceWithoutAcksIsMuted(t *testing.T) {
	b := startBroker(t, shortWindows...)
	b.topic("t", 1)
	b.quota("client-id=test", "producer_byte_rate=1000000")
	c := b.dial()
	var frames [][]byte
	for range 10 {
		frames = append(frames, c.frame(b.produceTo(9, 0, "t", 0, sized(200_000)), 9))
	}
	begun := time.Now()
	c.write(frames...)
	c.ask(kmsg.NewPtrApiVersionsRequest(), 0)
	if took := time.Since(begun); took < 900*time.Millisecond || took > 3*time.Second {
		t.Errorf("2 MB at 1 MB/s with 1 s of credit took %v", took)
	}
	if end := b.end("t", 0); end != 10 {
		t.Errorf("%d of 10 records", end)
	}
}

// mutedClient is a connection that owes for many seconds.
func (b *testBroker) mutedClient() *client {
	c := b.dial()
	if p := b.produce(c, 9, "t", 0, sized(500_000)); p.ErrorCode != 0 {
		b.t.Fatal(wire.ErrorName(p.ErrorCode))
	}
	return c
}

// Claim: a muted connection holds no memory of the budget, and no stop and no goroutine
// once its client is gone.
// Method: leave while muted; stop while muted, also with an answer held back.
func TestMutedConnectionsEndAtOnce(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1)
	b.quota("client-id=test", "producer_byte_rate=1000")
	c := b.mutedClient()
	for end := time.Now().Add(2 * time.Second); b.budget.used.Load() > 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if n := b.budget.used.Load(); n > maxBuffer {
		t.Errorf("a muted connection holds %d bytes", n)
	}
	open := func() (n int) {
		b.conns.each(func(*conn) { n++ })
		return n
	}
	c.nc.Close()
	for end := time.Now().Add(2 * time.Second); open() > 1 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	if n := open(); n > 1 { // that of the topic's maker
		t.Errorf("%d connections after the muted one is gone", n)
	}
	muted, held := b.mutedClient(), b.dial()
	old := b.produceTo(5, 1, "t", 0, sized(1000))
	held.write(held.frame(old, 5))
	time.Sleep(200 * time.Millisecond)
	begun := time.Now()
	b.halt()
	if took := time.Since(begun); took > time.Second {
		t.Errorf("the stop took %v", took)
	}
	if r := held.answer(old, 5).(*kmsg.ProduceResponse); r.Topics[0].Partitions[0].ErrorCode != 0 || r.ThrottleMillis == 0 {
		t.Errorf("the answer held back: %+v", r)
	}
	if _, err := io.Copy(io.Discard, muted.nc); err != nil && !errors.Is(err, net.ErrClosed) {
		t.Errorf("the muted one was cut off: %v", err)
	}
}

// Claim: answers of one connection stay in order (W3) when some of them are held back.
// Method: requests of all kinds and ages in one write.
func TestHeldAnswersStayInOrder(t *testing.T) {
	b := startBroker(t, shortWindows...)
	b.topic("t", 1)
	b.quota("client-id=test", "producer_byte_rate=100000", "consumer_byte_rate=300000", "request_percentage=0.5")
	c := b.dial()
	var frames [][]byte
	fetch := b.fetchOf(4, want{topic: "t"})
	for i := range 3 {
		frames = append(frames,
			c.frame(b.produceTo(3, 1, "t", 0, sized(60_000)), 3), c.frame(fetch, 4), c.frame(kmsg.NewPtrMetadataRequest(), 2),
			c.frame(b.produceTo(9, 1, "t", 0, sized(1000+i)), 9), c.frame(kmsg.NewPtrMetadataRequest(), 9))
	}
	c.write(bytes.Join(frames, nil))
	for i := range frames {
		if correlation, _ := c.read(); correlation != int32(i+1) {
			t.Fatalf("answer to %d, want %d", correlation, i+1)
		}
	}
}

// Claim: connections above their address's rate are served late, in turn, and all are
// served; a change of the quota frees those that wait.
// Method: six at once under two a second.
func TestConnectionsAreSlowedToTheirRate(t *testing.T) {
	b := startBroker(t, "quota.window.num=2")
	b.quota("ip=127.0.0.1", "connection_creation_rate=2")
	serve := func() time.Duration {
		begun := time.Now()
		var wait sync.WaitGroup
		for range 5 {
			c := b.dial()
			wait.Go(func() { c.ask(kmsg.NewPtrApiVersionsRequest(), 0) })
		}
		wait.Wait()
		return time.Since(begun)
	}
	if took := serve(); took < 1300*time.Millisecond || took > 2500*time.Millisecond {
		t.Errorf("five connections, two at once and two a second, took %v", took)
	}
	go func() {
		time.Sleep(300 * time.Millisecond)
		req := kmsg.NewPtrAlterClientQuotasRequest()
		req.Entries = []kmsg.AlterClientQuotasRequestEntry{entry("ip=127.0.0.1", "connection_creation_rate")}
		b.handleAlterClientQuotas(&requestContext{ctx: b.ctx, log: b.Broker.log}, req)
	}()
	begun := time.Now()
	b.dial().ask(kmsg.NewPtrApiVersionsRequest(), 0)
	if took := time.Since(begun); took > 450*time.Millisecond {
		t.Errorf("freed after %v", took)
	}
}
