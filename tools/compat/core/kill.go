package core

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"millrace/tools/compat/harness"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const killProducers = 3

// killChecks: kill -9 at random moments under three idempotent producers loses and doubles no acked record.
func killChecks() []harness.Check {
	run := func(name string, short bool, rounds int) harness.Check {
		return harness.Check{Client: "franz-go", Name: name, Short: short, Limit: 15 * time.Minute, Run: func(e *harness.Env) error { return killRounds(e, rounds) }}
	}
	return []harness.Check{run("idempotent producers under kill -9, 4 rounds", true, 4), run("idempotent producers under kill -9, 50 rounds", false, 50)}
}

// counter is one idempotent producer that writes 0, 1, 2 … to a partition of its own and knows which were acked.
type counter struct {
	partition int32
	mu        sync.Mutex
	acked     map[uint64]bool
	err       error
}

func killRounds(e *harness.Env, rounds int) error {
	m, err := harness.StartMillrace(e)
	if err != nil {
		return err
	}
	defer func() { m.Kill() }()
	m.KeepAddress()
	if err := harness.CreateTopic(m.Addr, "counted", killProducers); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var wg sync.WaitGroup
	counters := make([]*counter, killProducers)
	for i := range counters {
		c := &counter{partition: int32(i), acked: map[uint64]bool{}}
		counters[i] = c
		wg.Go(func() { c.run(ctx, m.Addr) }) // ends when ctx does and everything under way is answered
	}
	for range rounds {
		time.Sleep(50*time.Millisecond + rand.N(500*time.Millisecond))
		m.Kill()
		if err := m.Start(); err != nil {
			cancel()
			return fmt.Errorf("restart after kill -9: %w", err)
		}
	}
	time.Sleep(300 * time.Millisecond)
	cancel()
	wg.Wait()
	total := 0
	for _, c := range counters {
		if err := c.verify(m.Addr); err != nil {
			return err
		}
		total += len(c.acked)
	}
	if total < 100*rounds {
		return fmt.Errorf("only %d records were acked in %d rounds", total, rounds)
	}
	e.Note("%d acked records, each there once and in order", total)
	return m.Stop()
}

// run produces until ctx ends, then waits for what is under way.
func (c *counter) run(ctx context.Context, addr string) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerLinger(time.Millisecond), kgo.MaxBufferedRecords(5000), kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }), kgo.MetadataMinAge(50*time.Millisecond))
	if err != nil {
		c.err = err
		return
	}
	defer cl.Close()
	for n := uint64(0); ctx.Err() == nil; n++ {
		v := binary.BigEndian.AppendUint64(nil, n)
		cl.Produce(context.Background(), &kgo.Record{Topic: "counted", Partition: c.partition, Value: append(v, make([]byte, rand.IntN(400))...)}, func(r *kgo.Record, err error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			if err != nil {
				c.err = err
				return
			}
			c.acked[binary.BigEndian.Uint64(r.Value)] = true
		})
		if n%50 == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	flush, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := cl.Flush(flush); err != nil {
		c.mu.Lock()
		c.err = err
		c.mu.Unlock()
	}
}

// verify reads the partition: numbers strictly rise (nothing twice, nothing out of order) and no acked one is missing.
func (c *counter) verify(addr string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return fmt.Errorf("producer %d: %w", c.partition, c.err)
	}
	last, seen := int64(-1), 0
	err := harness.ReadAll(addr, "counted", c.partition, func(r *kgo.Record) error {
		n := int64(binary.BigEndian.Uint64(r.Value))
		if n <= last {
			return fmt.Errorf("partition %d: record %d at offset %d comes after record %d", c.partition, n, r.Offset, last)
		}
		last = n
		if c.acked[uint64(n)] {
			seen++
		}
		return nil
	})
	if err == nil && seen != len(c.acked) {
		err = fmt.Errorf("partition %d: %d of %d acked records are missing", c.partition, len(c.acked)-seen, len(c.acked))
	}
	return err
}
