package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"millrace/benchmarks/peers/report"
)

// toolLimit bounds one run of a foreign tool.
const toolLimit = 2 * time.Minute

// clientRow is one run of somebody's client, which reads or writes count records.
type clientRow struct {
	name   string
	size   int // bytes of a value
	share  float64
	reads  bool
	client func(e *env, s *server, topic string, count int, size int) (perSecond float64, err error)
}

func kafkaProducer(props ...string) func(*env, *server, string, int, int) (float64, error) {
	return func(e *env, s *server, topic string, count, size int) (float64, error) {
		args := append([]string{"--topic", topic, "--num-records", strconv.Itoa(count), "--throughput", "-1", "--record-size", strconv.Itoa(size),
			"--producer-props", "bootstrap.servers=" + s.addr}, props...)
		out, err := e.kafkaTool("org.apache.kafka.tools.ProducerPerformance", args...)
		if err != nil {
			return 0, err
		}
		return producedPerSecond(string(out))
	}
}

func kafkaConsumer(e *env, s *server, topic string, count, _ int) (float64, error) {
	out, err := e.kafkaTool("org.apache.kafka.tools.ConsumerPerformance", "--bootstrap-server", s.addr, "--topic", topic, "--num-records", strconv.Itoa(count), "--timeout", "30000")
	if err != nil {
		return 0, err
	}
	return consumedPerSecond(string(out))
}

func ourProducer(args ...string) func(*env, *server, string, int, int) (float64, error) {
	return func(e *env, s *server, topic string, count, size int) (float64, error) {
		out, err := e.command(toolLimit, "", e.bin("perf-producer"), append([]string{"--bootstrap-server", s.addr, "--topic", topic,
			"--num-records", strconv.Itoa(count), "--record-size", strconv.Itoa(size)}, args...)...)
		if err != nil {
			return 0, err
		}
		return producedPerSecond(string(out))
	}
}

func ourConsumer(e *env, s *server, topic string, count, _ int) (float64, error) {
	out, err := e.command(toolLimit, "", e.bin("perf-consumer"), "--bootstrap-server", s.addr, "--topic", topic, "--num-records", strconv.Itoa(count))
	if err != nil {
		return 0, err
	}
	return consumedPerSecond(string(out))
}

func kcatProducer(e *env, s *server, topic string, count, size int) (float64, error) {
	kcat, err := exec.LookPath("kcat")
	if err != nil {
		return 0, errNotHad{"kcat is not installed"}
	}
	lines, err := e.lines(count, size)
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	_, err = e.command(toolLimit, lines, kcat, "-P", "-b", s.addr, "-t", topic)
	return float64(count) / time.Since(begun).Seconds(), err
}

func kcatConsumer(e *env, s *server, topic string, count, _ int) (float64, error) {
	kcat, err := exec.LookPath("kcat")
	if err != nil {
		return 0, errNotHad{"kcat is not installed"}
	}
	begun := time.Now()
	_, err = e.command(toolLimit, "", kcat, "-C", "-q", "-b", s.addr, "-t", topic, "-o", "beginning", "-c", strconv.Itoa(count), "-f", "")
	return float64(count) / time.Since(begun).Seconds(), err
}

func clientRows() []clientRow {
	return []clientRow{
		{name: "Kafka's producer, default settings, 100 B", size: 100, share: 1, client: kafkaProducer()},
		{name: "Kafka's producer, linger 10 ms, 256 KiB batches, 100 B", size: 100, share: 1, client: kafkaProducer("linger.ms=10", "batch.size=262144")},
		{name: "Kafka's producer, linger 10 ms, 256 KiB batches, 1 KiB", size: 1024, share: 0.3, client: kafkaProducer("linger.ms=10", "batch.size=262144")},
		{name: "Kafka's consumer, 100 B", size: 100, share: 2, reads: true, client: kafkaConsumer},
		{name: "perf-producer, default settings, 100 B", size: 100, share: 1, client: ourProducer()},
		{name: "perf-producer, linger 10 ms, 256 KiB batches, 100 B", size: 100, share: 1, client: ourProducer("--linger-ms", "10", "--batch-size", "262144")},
		{name: "perf-consumer, 100 B", size: 100, share: 2, reads: true, client: ourConsumer},
		{name: "kcat (librdkafka) producing, 100 B", size: 100, share: 0.5, client: kcatProducer},
		{name: "kcat (librdkafka) consuming, 100 B", size: 100, share: 2, reads: true, client: kcatConsumer},
	}
}

// measureTools runs whole clients: Kafka's own performance tests, ours, and librdkafka's command.
func measureTools(e *env) error {
	count := e.records()
	e.sec.Method = fmt.Sprintf("Whole clients, one process each, %d records (a part of that for large and slow ones, twice that to read); records/s as the tool says (kcat: records over its run time). A JVM's start and warming are in its figures, as they are in a user's.", count)
	servers := e.up(e.millraceSynced(), e.millracePageCache(), e.kafka())
	defer e.down(servers...)
	e.warmServers(servers)
	filled := map[*server]bool{}
	for i, r := range clientRows() {
		n := max(1000, int(float64(count)*r.share))
		e.alternate(r.name, servers, func(s *server) (report.Values, error) {
			topic := fmt.Sprintf("tool-%d", i)
			if r.reads {
				topic = "to-read"
			}
			if err := e.topic(s, topic, 1); err != nil {
				return nil, err
			}
			if err := e.leads(s, topic, 1); err != nil {
				return nil, err
			}
			if r.reads && !filled[s] {
				if _, err := ourProducer("--batch-size", "65536")(e, s, topic, 2*count+1000, r.size); err != nil {
					return nil, fmt.Errorf("filling the topic: %w", err)
				}
				filled[s] = true
			}
			before := s.proc.CPU()
			rate, err := r.client(e, s, topic, n, r.size)
			used := (s.proc.CPU() - before).Seconds()
			bytes := float64(n) * float64(r.size)
			return report.Values{report.PerSecond: rate, report.MBps: rate * float64(r.size) / 1e6,
				report.CPUMillion: used / (float64(n) / 1e6), report.CPUGB: used / (bytes / 1e9)}, err
		})
	}
	e.memoryRow("memory after these rows", servers)
	return nil
}

// records is how many a client moves in one measurement: 400,000 for each second of -duration.
func (e *env) records() int { return max(20_000, int(400_000*e.duration.Seconds())) }

// kafkaTool runs one of Kafka's tools.
func (e *env) kafkaTool(class string, args ...string) ([]byte, error) {
	libs, err := e.kafkaLibs()
	if err != nil {
		return nil, err
	}
	return e.command(toolLimit, "", "java", append([]string{"-Xmx512M", "-cp", libs + "/*", class}, args...)...)
}

// lines is a file of count lines of size letters.
func (e *env) lines(count, size int) (string, error) {
	name := filepath.Join(e.dir, fmt.Sprintf("lines-%d-%d", count, size))
	if _, err := os.Stat(name); err == nil {
		return name, nil
	}
	f, err := os.Create(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	for i := range count {
		fmt.Fprintf(w, "%0*d\n", size, i)
	}
	return name, w.Flush()
}

// producedPerSecond reads the last summary of a producer performance test: "N records sent, R records/sec (…) …".
func producedPerSecond(out string) (float64, error) {
	at := strings.LastIndex(out, " records sent, ")
	if at < 0 {
		return 0, fmt.Errorf("no summary in the tool's output: %q", lastPart(out))
	}
	rest := out[at+len(" records sent, "):]
	word, _, _ := strings.Cut(rest, " ")
	return strconv.ParseFloat(word, 64)
}

// consumedPerSecond reads the figures of a consumer performance test by the names in its head line.
func consumedPerSecond(out string) (float64, error) {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, "start.time") || i+1 >= len(lines) {
			continue
		}
		names, figures := strings.Split(line, ","), strings.Split(lines[i+1], ",")
		for k, name := range names {
			if strings.TrimSpace(name) == "nMsg.sec" && k < len(figures) {
				return strconv.ParseFloat(strings.TrimSpace(figures[k]), 64)
			}
		}
	}
	return 0, fmt.Errorf("no figures in the tool's output: %q", lastPart(out))
}

func lastPart(s string) string { return s[max(0, len(s)-200):] }
