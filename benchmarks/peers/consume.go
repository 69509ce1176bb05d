package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"millrace/benchmarks/load"
	"millrace/benchmarks/peers/report"
	"millrace/benchmarks/process"
)

// Every fill of this size of batch: 64 records of 1 KiB.
var fillBatch = load.Row{Records: 64, Size: 1024, Connections: 4, InFlight: 1, Acks: 1}

// fill writes gb GB into a new topic and returns the end offset of each partition.
func (e *env) fill(s *server, topic string, partitions int, gb float64) (int64, error) {
	if err := e.topic(s, topic, partitions); err != nil {
		return 0, err
	}
	if err := e.leads(s, topic, partitions); err != nil {
		return 0, err
	}
	r := fillBatch
	r.Partitions = partitions
	f := load.ProduceFrame(r, topic)
	n := max(8, int(gb*1e9)/len(f))
	return int64(n * r.Records), load.FillTopic(s.addr, r, f, n)
}

const groupCount = 10

// measureConsume reads from memory and from disk, with many groups, and looks at a producer beside a reader of old data.
func measureConsume(e *env) error {
	e.sec.Method = fmt.Sprintf("%.1f GB in 4 partitions, batches of 64 × 1 KiB, read by one raw connection for each partition in fetches of 1 MiB. Cold: synced, then dropped from the guest's page cache with fadvise (the host below may still hold it). Groups: %d of franz-go in this process, each reading a fifth of that from start to end, joining included.", e.consumeGB, groupCount)
	servers := e.up(e.millraceSynced(), e.millracePageCache(), e.kafka())
	defer e.down(servers...)
	e.warmServers(servers)
	ends, small := map[*server]int64{}, map[*server]int64{}
	for _, s := range servers {
		if s.err != nil {
			continue
		}
		var err error
		if ends[s], err = e.fill(s, "data", 4, e.consumeGB); err == nil {
			small[s], err = e.fill(s, "group-data", 4, e.consumeGB/5)
		}
		if err == nil {
			err = e.topic(s, "beside", 1)
		}
		if err == nil {
			err = e.leads(s, "beside", 1)
		}
		if err != nil {
			s.err = fmt.Errorf("filling: %w", err)
		}
	}
	read := func(s *server) (report.Values, error) {
		before := s.proc.CPU()
		res, err := load.ReadAll(s.addr, "data", 4, ends[s], 1<<20)
		used := (s.proc.CPU() - before).Seconds()
		records := float64(4 * ends[s])
		return report.Values{report.MBps: float64(res.Bytes) / res.Elapsed.Seconds() / 1e6, report.PerSecond: records / res.Elapsed.Seconds(),
			report.CPUGB: used / (float64(res.Bytes) / 1e9), report.CPUMillion: used / (records / 1e6)}, err
	}
	for _, s := range servers {
		if s.err == nil {
			read(s) // brings all of it into memory
		}
	}
	e.alternate("read all, hot", servers, read)
	e.alternate("read all, cold", servers, func(s *server) (report.Values, error) {
		if err := process.DropFromMemory(s.dir); err != nil {
			return nil, err
		}
		return read(s)
	})
	e.alternate(fmt.Sprintf("%d groups at once, hot", groupCount), servers, func(s *server) (report.Values, error) {
		return e.groups(s, "group-data", 4*small[s])
	})
	quiet := load.Row{Records: 10, Size: 100, Partitions: 1, Connections: 8, InFlight: 64, Acks: 1, Rate: 1000}
	e.alternate("produce 1000/s of 10 × 100 B, nothing beside it", servers, func(s *server) (report.Values, error) {
		res, err := e.run(s, quiet, [][]byte{load.ProduceFrame(quiet, "beside")})
		return values(quiet, res), err
	})
	e.alternate("produce 1000/s of 10 × 100 B beside a cold full read", servers, func(s *server) (report.Values, error) {
		return e.besideColdRead(s, quiet, ends[s])
	})
	return nil
}

// besideColdRead measures produce requests while one reader after the other reads everything from disk.
func (e *env) besideColdRead(s *server, r load.Row, end int64) (report.Values, error) {
	if err := process.DropFromMemory(s.dir); err != nil {
		return nil, err
	}
	stop, read := make(chan struct{}), make(chan error, 1)
	go func() { // ends with the full read that is under way when stop is closed
		for {
			_, err := load.ReadAll(s.addr, "data", 4, end, 1<<20)
			select {
			case <-stop:
				read <- err
				return
			default:
			}
			if err == nil {
				err = process.DropFromMemory(s.dir)
			}
			if err != nil {
				read <- err
				return
			}
		}
	}()
	res, err := e.run(s, r, [][]byte{load.ProduceFrame(r, "beside")})
	close(stop)
	return values(r, res), errors.Join(err, <-read)
}

// groups lets each of several consumer groups read the topic's records.
func (e *env) groups(s *server, topic string, records int64) (report.Values, error) {
	ctx, cancel := context.WithTimeout(e.ctx, 2*time.Minute)
	defer cancel()
	before, begun := s.proc.CPU(), time.Now()
	errs, bytes := make([]error, groupCount), make([]int64, groupCount)
	var wg sync.WaitGroup
	for i := range groupCount {
		wg.Go(func() { // ends when the group has read all, or with ctx
			bytes[i], errs[i] = readAsGroup(ctx, s.addr, topic, fmt.Sprintf("g-%d-%d", i, begun.UnixNano()), records)
		})
	}
	wg.Wait()
	took, used := time.Since(begun).Seconds(), (s.proc.CPU() - before).Seconds()
	var sum float64
	for _, b := range bytes {
		sum += float64(b)
	}
	all := float64(records * groupCount)
	return report.Values{report.MBps: sum / took / 1e6, report.PerSecond: all / took, report.CPUGB: used / (sum / 1e9), report.CPUMillion: used / (all / 1e6)}, errors.Join(errs...)
}

func readAsGroup(ctx context.Context, addr, topic, group string, records int64) (bytes int64, err error) {
	c, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return 0, err
	}
	defer c.Close()
	for got := int64(0); got < records; {
		f := c.PollFetches(ctx)
		if err := f.Err(); err != nil {
			return bytes, fmt.Errorf("group %s after %d of %d records: %w", group, got, records, err)
		}
		f.EachRecord(func(r *kgo.Record) {
			got++
			bytes += int64(len(r.Value))
		})
	}
	return bytes, nil
}
