package main

import (
	"errors"
	"fmt"
	"slices"

	"millrace/benchmarks/peers/report"
)

// measureOthers holds the systems of other kinds beside ours, each with the client it comes with.
func measureOthers(e *env) error {
	e.sec.Method = "Messages of 100 B on one stream. One by one: raw connections for Kafka's protocol and Redis, their own Go clients for NATS and RabbitMQ. At full speed, open loop and reading: franz-go, nats.go, rabbitmq-stream-go-client, one client process each; Redis's XADD pipelined by 100 over 8 raw connections (its open loop over one) and read 1,000 at a time; without answers: raw batches of 200 over one connection, for Jafka's produce request has none (it syncs after 10,000 messages or 100 ms: compare it with acks=0 and the page cache). Open-loop latencies count from the intended time. Only the synced ones sync before an ack: millrace, kafka flush=1, nats sync=always, redis always."
	servers := e.up(e.millraceSynced(), e.millracePageCache(), e.kafka(), e.nats(), e.natsSynced(), e.redis(), e.redisSynced(), e.rabbitMQ(), e.jafka())
	defer e.down(servers...)
	for _, s := range servers {
		if s.err == nil {
			s.err = s.client.first(e, s)
		}
	}
	e.warmServers(servers)
	for _, conns := range []int{1, 8} {
		e.alternate(fmt.Sprintf("record by record, %d connection(s)", conns), servers, func(s *server) (report.Values, error) {
			return s.client.one(e, s, conns)
		})
	}
	for _, rate := range []int{1000, 50_000} {
		e.alternate(fmt.Sprintf("open loop, %d messages/s", rate), servers, func(s *server) (report.Values, error) {
			return s.client.open(e, s, rate)
		})
	}
	stored := map[*server]int{}
	full := "one client at full speed"
	e.alternate(full, servers, func(s *server) (report.Values, error) {
		v, n, err := s.client.full(e, s)
		stored[s] += n
		return v, err
	})
	e.alternate("open loop, half of its own maximum (at most 100,000/s)", servers, func(s *server) (report.Values, error) {
		best, _, _, ok := e.sec.Row(full).Median(s.label, report.PerSecond)
		if _, silent := s.client.(jafkaClient); !ok && !silent {
			return nil, errors.New("its maximum was not measured")
		}
		return s.client.open(e, s, int(min(best/2, 100_000)))
	})
	silent := slices.DeleteFunc(slices.Clone(servers), func(s *server) bool {
		_, ok := s.client.(noAcker)
		return !ok
	})
	e.alternate("one client at full speed, no answers (acks=0), until the last can be read", silent, func(s *server) (report.Values, error) {
		v, n, err := s.client.(noAcker).noAcks(e, s)
		stored[s] += n
		return v, err
	})
	e.memoryRow("memory after that", servers)
	e.alternate("read from the start", servers, func(s *server) (report.Values, error) {
		n := min(stored[s], 500_000)
		if n == 0 {
			return nil, fmt.Errorf("nothing was stored")
		}
		return s.client.read(e, s, n)
	})
	return nil
}

// noAcker is a client that can send without being answered.
type noAcker interface {
	noAcks(e *env, s *server) (report.Values, int, error)
}
