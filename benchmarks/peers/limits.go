package main

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/benchmarks/load"
	"millrace/benchmarks/peers/report"
)

// frameRow is a row of prepared frames. The names are those of the goals in report/goals.go.
type frameRow struct {
	name string
	load.Row
}

func produceRows() []frameRow {
	p := func(name string, records, size, parts, conns, flight int, acks int16) frameRow {
		return frameRow{name, load.Row{Records: records, Size: size, Partitions: parts, Connections: conns, InFlight: flight, Acks: acks}}
	}
	open := p("open loop 2000/s of 10 × 100 B", 10, 100, 1, 8, 64, 1)
	open.Rate = 2000
	return []frameRow{
		p("1 × 100 B, one connection", 1, 100, 1, 1, 1, 1),
		p("1 × 100 B, 8 × 1", 1, 100, 1, 8, 1, 1),
		p("1 × 100 B, 8 × 5", 1, 100, 1, 8, 5, 1),
		p("1 × 100 B, 500 × 1", 1, 100, 1, 500, 1, 1),
		p("100 × 100 B, 4 × 5", 100, 100, 1, 4, 5, 1),
		p("16 × 1 KiB, 4 × 5", 16, 1024, 1, 4, 5, 1),
		p("16 × 1 KiB, 4 × 5, acks=all", 16, 1024, 1, 4, 5, -1),
		p("1000 × 100 B, 4 × 5", 1000, 100, 1, 4, 5, 1),
		p("900 × 1 KiB, 4 × 3", 900, 1024, 1, 4, 3, 1),
		p("100 partitions × 1 KiB, 4 × 2", 1, 1024, 100, 4, 2, 1),
		open,
	}
}

func fetchRows() []frameRow {
	f := func(name string, bytes, parts int) frameRow {
		return frameRow{name, load.Row{Records: 16, Size: 1000, Partitions: parts, Connections: 4, InFlight: 1, Fetch: bytes}}
	}
	return []frameRow{f("fetch 1 MiB", 1<<20, 1), f("fetch 64 KiB", 64<<10, 1), f("fetch 20 × 16 KiB", 16<<10, 20)}
}

// measureLimits sends the load generator's frames to both of our modes and to Kafka, as it comes and tuned.
func measureLimits(e *env) error {
	e.sec.Method = "Prepared frames over raw connections (connections × requests in flight; records a batch × bytes), the rows of benchmarks/limits. Produce with acks=1 unless said."
	servers := e.up(e.millraceSynced(), e.millracePageCache(), e.kafka(), e.kafkaTuned())
	defer e.down(servers...)
	e.warmServers(servers)
	e.frameRows(servers, append(produceRows(), fetchRows()...))
	e.memoryRow("memory after these rows", servers)
	return nil
}

// frameRows measures rows one after the other, each on topics of its own that are gone afterwards.
func (e *env) frameRows(servers []*server, rows []frameRow) {
	for i, r := range rows {
		topic := fmt.Sprintf("row-%d", i)
		frames := map[*server][][]byte{}
		for _, s := range servers {
			if s.err != nil {
				continue
			}
			f, err := e.prepare(s, r.Row, topic)
			if err != nil {
				e.note("%s, %s: %v", r.name, s.label, err)
				continue
			}
			frames[s] = f
		}
		e.alternate(r.name, servers, func(s *server) (report.Values, error) {
			if frames[s] == nil {
				return nil, fmt.Errorf("its topic could not be made or filled, see the notes")
			}
			res, err := e.run(s, r.Row, frames[s])
			return values(r.Row, res), err
		})
		e.dropTopics(servers)
	}
}

// prepare makes a row's topic, fills it for a fetch row, and runs the row unmeasured.
func (e *env) prepare(s *server, r load.Row, topic string) ([][]byte, error) {
	if err := e.topic(s, topic, r.Partitions); err != nil {
		return nil, err
	}
	if err := e.leads(s, topic, r.Partitions); err != nil {
		return nil, err
	}
	if r.Produce() {
		frames := [][]byte{load.ProduceFrame(r, topic)}
		return frames, e.warm(s, r, frames)
	}
	frames, err := load.PrepareFetch(s.addr, r, topic)
	if err != nil {
		return nil, err
	}
	return frames, e.warm(s, r, frames)
}

// leadsLimit bounds the wait for a new topic: one of thousands may take a while.
const leadsLimit = 3 * time.Minute

// leads waits until every partition of a topic has its leader.
func (e *env) leads(s *server, topic string, partitions int) error {
	until := time.Now().Add(leadsLimit)
	for {
		req, resp := kmsg.NewPtrMetadataRequest(), kmsg.NewPtrMetadataResponse()
		req.SetVersion(4)
		resp.SetVersion(4)
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(topic)
		req.Topics = append(req.Topics, t)
		err := load.Ask(e.ctx, s.addr, req, resp)
		if err == nil && len(resp.Topics) == 1 && resp.Topics[0].ErrorCode == 0 {
			led := 0
			for _, p := range resp.Topics[0].Partitions {
				if p.ErrorCode == 0 && p.Leader >= 0 {
					led++
				}
			}
			if led == partitions {
				err = e.serves(s, topic, partitions)
			} else {
				err = fmt.Errorf("%d of %d partitions of %s have a leader", led, partitions, topic)
			}
			if err == nil {
				return nil
			}
		}
		if time.Now().After(until) || e.ctx.Err() != nil {
			return fmt.Errorf("a topic is not ready: %w", err)
		}
		pause(e.ctx, 50*time.Millisecond)
	}
}

// serves asks every partition for records: a broker may be told to lead a partition after everybody else knows that it does.
func (e *env) serves(s *server, topic string, partitions int) error {
	req, resp := kmsg.NewPtrFetchRequest(), kmsg.NewPtrFetchResponse()
	req.SetVersion(11)
	resp.SetVersion(11)
	req.ReplicaID, req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.SessionEpoch = -1, 0, 0, 1<<20, -1
	t := kmsg.NewFetchRequestTopic()
	t.Topic = topic
	for i := range partitions {
		p := kmsg.NewFetchRequestTopicPartition()
		p.Partition, p.PartitionMaxBytes = int32(i), 1
		t.Partitions = append(t.Partitions, p)
	}
	req.Topics = append(req.Topics, t)
	if err := load.Ask(e.ctx, s.addr, req, resp); err != nil {
		return err
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode != 0 {
				return fmt.Errorf("partition %d of %s answers error code %d", p.Partition, topic, p.ErrorCode)
			}
		}
	}
	return nil
}

// memoryRow keeps the resident memory of the servers as it is now.
func (e *env) memoryRow(name string, servers []*server) {
	row := e.sec.Row(name)
	for _, s := range servers {
		if s.err != nil {
			row.Not(s.label, why(s.err))
			continue
		}
		row.Add(s.label, report.Values{report.RSS: float64(s.proc.RSS()) / 1e6})
	}
	e.say("%s", report.OneLine(row))
}

// measureDurable holds what is on disk before the ack against what Kafka offers for that.
func measureDurable(e *env) error {
	e.sec.Method = "The same frames; every ack after a sync: Millrace as it comes, Kafka with log.flush.interval.messages=1."
	servers := e.up(e.millraceSynced(), e.kafkaFlush())
	defer e.down(servers...)
	e.warmServers(servers)
	e.frameRows(servers, produceRows())
	return nil
}
