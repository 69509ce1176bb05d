package java

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"millrace/tools/compat/harness"
)

// perfActs: the verifiable clients and the performance tools. Their figures are not compared, their counts are.
func perfActs(s *stage) {
	s.do(act{tool: "topics", args: "--create --topic verified --partitions 2"})
	s.do(act{tool: "topics", args: "--create --topic speed --partitions 1"})
	verifiableActs(s)
	bootstrap, count := "--bootstrap-server {b}", "--num-records"
	if s.old {
		bootstrap, count = "--producer-props bootstrap.servers={b}", "--messages"
	}
	for _, set := range []string{"acks=all", "acks=1 compression.type=lz4", "acks=0"} {
		props := " --command-property " + strings.ReplaceAll(set, " ", " --command-property ")
		if s.old {
			props = " " + set
		}
		s.do(act{tool: "producer-perf-test", args: "--topic speed --num-records 20000 --record-size 100 --throughput -1 " + bootstrap + props, how: alone,
			want: []string{`~20000 records sent, [\d.]+ records/sec \([\d.]+ MB/sec\), [\d.]+ ms avg latency, [\d.]+ ms max latency, \d+ ms 50th, \d+ ms 95th, \d+ ms 99th, \d+ ms 99.9th.`}})
	}
	s.do(act{tool: "get-offsets", args: "--topic speed", want: []string{"speed:0:60000"}})
	out := s.do(act{tool: "consumer-perf-test", args: "--topic speed --timeout 60000 " + count + " 60000", how: alone, want: []string{"~start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec.*", "~2.*, 5.722., .*, 60000, .*"}})
	if strings.Contains(out, "WARNING") {
		s.fail(fmt.Errorf("consumer-perf-test: %s", out))
	}
	s.do(act{tool: "consumer-perf-test", args: "--topic speed --group perf --timeout 60000 --show-detailed-stats --reporting-interval 100 " + count + " 60000", how: alone, want: []string{"~time, threadId, data.consumed.in.MB, .*"}})
	latency := "--bootstrap-server {b} --topic latency --num-records 200 --producer-acks all --record-size 100"
	if s.old {
		latency = "{b} latency 200 all 100"
	}
	s.do(act{tool: "e2e-latency", args: latency, how: alone, want: []string{"~Avg latency: \\d+[.,]\\d+ ms", "~Percentiles: 50th = \\d+, 99th = \\d+, 99.9th = \\d+"}})
	s.do(act{tool: "get-offsets", args: "--topic latency", want: []string{"latency:0:200"}})
}

// verifiableActs: what one says it got acked is what the other says it read, and each record comes once.
func verifiableActs(s *stage) {
	for _, b := range s.brokers {
		out, err := s.verifiableProducer(b)
		if err == nil {
			err = holds(out, []string{`~.*"name":"shutdown_complete".*`, `~.*"name":"tool_data".*"acked":1000.*`}, true)
		}
		if err != nil {
			s.fail(fmt.Errorf("verifiable-producer against %s: %w", b.name, err))
			continue
		}
		acked := events(out, "producer_send_success", "value")
		out = s.on(b, act{tool: "verifiable-consumer", args: "--bootstrap-server {b} --topic verified --group-id checked --max-messages 1000 --reset-policy earliest --verbose", want: []string{`~.*"name":"partitions_assigned".*`, `~.*"name":"offsets_committed".*"success":true.*`}})
		read := events(out, "record_data", "value")
		if len(acked) != 1000 || len(read) != 1000 {
			s.fail(fmt.Errorf("verifiable clients on %s: %d acked, %d read, want 1000", b.name, len(acked), len(read)))
		}
		for i := range 1000 {
			v := "7." + strconv.Itoa(i)
			if acked[v] != 1 || read[v] != 1 {
				s.fail(fmt.Errorf("verifiable clients on %s: value %s was acked %d times and read %d times", b.name, v, acked[v], read[v]))
				break
			}
		}
	}
}

// verifiableProducer runs in a JVM of its own: the tool ends by a shutdown hook.
func (s *stage) verifiableProducer(b stageBroker) (string, error) {
	cmd, err := s.e.KafkaTool(s.tools.libs, "verifiable-producer", "--bootstrap-server", b.addr, "--topic", "verified", "--max-messages", "1000", "--acks", "-1", "--value-prefix", "7")
	if err != nil {
		return "", err
	}
	s.acts++
	return harness.Output(cmd, "", actLimit)
}

// events counts the values of a field in the JSON lines of one name.
func events(out, name, field string) map[string]int {
	m := map[string]int{}
	for line := range strings.Lines(out) {
		var v map[string]any
		if json.Unmarshal([]byte(line), &v) == nil && v["name"] == name {
			m[fmt.Sprint(v[field])]++
		}
	}
	return m
}
