package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/twmb/franz-go/pkg/kgo"

	"millrace/benchmarks/load"
	"millrace/benchmarks/peers/report"
)

// measureLatency sends at fixed rates, whatever the answers do, and counts from the intended time.
func measureLatency(e *env) error {
	e.sec.Method = "Open loop over 8 raw connections, latency counted from the intended time of sending: 1,000 messages/s one by one, 50,000/s in requests of 10, and half of what each system took of the same requests in a closed loop just before. End to end: franz-go's producer (no lingering) and consumer in this process, from the intended time to the consumer having it."
	servers := e.up(e.millraceSynced(), e.millracePageCache(), e.kafka())
	defer e.down(servers...)
	e.warmServers(servers)
	one := load.Row{Records: 1, Size: 100, Partitions: 1, Connections: 8, InFlight: 5, Acks: 1}
	ten := one
	ten.Records = 10
	for _, s := range servers {
		if s.err != nil {
			continue
		}
		err := e.topic(s, "latency", 1)
		if err == nil {
			err = e.leads(s, "latency", 1)
		}
		if err == nil {
			err = e.warm(s, ten, [][]byte{load.ProduceFrame(ten, "latency")})
		}
		if err != nil {
			s.err = err
		}
	}
	rate := func(name string, r load.Row, perSecond func(*server) int) {
		e.alternate(name, servers, func(s *server) (report.Values, error) {
			r := r
			if r.Rate = perSecond(s); r.Rate < 1 {
				return nil, errors.New("its maximum was not measured")
			}
			res, err := e.run(s, r, [][]byte{load.ProduceFrame(r, "latency")})
			v := values(r, res)
			v[report.PerSecond] *= float64(r.Records)
			return v, err
		})
	}
	fixed := func(n int) func(*server) int { return func(*server) int { return n } }
	rate("1,000 messages/s, one by one", one, fixed(1000))
	rate("50,000 messages/s, ten at a time", ten, fixed(5000))
	most := map[*server]float64{}
	e.alternate("closed loop, ten at a time (8 × 5)", servers, func(s *server) (report.Values, error) {
		res, err := e.run(s, ten, [][]byte{load.ProduceFrame(ten, "latency")})
		most[s] = max(most[s], res.PerSecond)
		v := values(ten, res)
		v[report.PerSecond] *= 10
		return v, err
	})
	rate("half of its own maximum, ten at a time", ten, func(s *server) int { return int(most[s] / 2) })
	for _, perSecond := range []int{1000, 20_000} {
		e.alternate(fmt.Sprintf("end to end, %d messages/s", perSecond), servers, func(s *server) (report.Values, error) {
			return e.endToEnd(s, perSecond)
		})
	}
	return nil
}

// endToEnd produces stamped records at a fixed rate and measures when a consumer that waits for them has them.
func (e *env) endToEnd(s *server, perSecond int) (report.Values, error) {
	topic := fmt.Sprintf("e2e-%d", perSecond)
	if err := e.topic(s, topic, 1); err != nil {
		return nil, err
	}
	if err := e.leads(s, topic, 1); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(e.ctx, e.duration+40*time.Second)
	defer cancel()
	producer, err := kgo.NewClient(kgo.SeedBrokers(s.addr), kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0),
		kgo.MaxBufferedRecords(1_000_000))
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	if err := producer.ProduceSync(ctx, &kgo.Record{Value: make([]byte, 100)}).FirstErr(); err != nil {
		return nil, err
	}
	consumer, err := kgo.NewClient(kgo.SeedBrokers(s.addr), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtEnd()), kgo.FetchMinBytes(1))
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	if err := atEnd(ctx, producer, consumer); err != nil {
		return nil, err
	}
	total := max(10, int(float64(perSecond)*e.duration.Seconds()))
	start := time.Now()
	go func() { // ends after the last record, or with ctx
		for i := range total {
			at := start.Add(time.Duration(i) * time.Second / time.Duration(perSecond))
			if d := time.Until(at); d > 0 {
				time.Sleep(d)
			}
			v := make([]byte, 100)
			binary.BigEndian.PutUint64(v, uint64(at.UnixNano()))
			producer.Produce(ctx, &kgo.Record{Value: v}, nil)
			if ctx.Err() != nil {
				return
			}
		}
	}()
	hist := hdrhistogram.New(1, 120_000_000, 3)
	for got := 0; got < total; {
		f := consumer.PollFetches(ctx)
		if err := f.Err(); err != nil {
			return nil, fmt.Errorf("after %d of %d records: %w", got, total, err)
		}
		now := time.Now().UnixNano()
		f.EachRecord(func(r *kgo.Record) {
			if at := int64(binary.BigEndian.Uint64(r.Value)); at >= start.UnixNano() {
				hist.RecordValue(max(1, (now-at)/1000))
				got++
			}
		})
	}
	return report.Values{report.PerSecond: float64(total) / time.Since(start).Seconds(), report.P50: float64(hist.ValueAtQuantile(50)),
		report.P99: float64(hist.ValueAtQuantile(99)), report.P999: float64(hist.ValueAtQuantile(99.9))}, nil
}

// atEnd produces until the consumer, which begins at the end, has got something.
func atEnd(ctx context.Context, producer, consumer *kgo.Client) error {
	for {
		if err := producer.ProduceSync(ctx, &kgo.Record{Value: make([]byte, 100)}).FirstErr(); err != nil {
			return err
		}
		short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		f := consumer.PollFetches(short)
		cancel()
		if f.NumRecords() > 0 {
			return nil
		}
		if err := f.Err(); err != nil && !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
	}
}
