package java

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"millrace/tools/compat/harness"

	"github.com/twmb/franz-go/pkg/kgo"
)

const consumerPackage = "org.apache.kafka.clients.consumer."

// oldClients are releases that teams still have in their applications. Kafka 4 refuses the first two.
var oldClients = []struct {
	libs      harness.Libs
	parts     string // of src
	class     string
	codecs    []string
	assignors []string
	name      string
}{
	{harness.Libs{Name: "kafka-0.8.2.2", Artifacts: []string{"org.apache.kafka:kafka_2.11:0.8.2.2"}}, "old08", "Client08", []string{"none", "gzip", "snappy", "lz4"}, nil,
		"new and Scala producer, SimpleConsumer, each codec; a group's offsets"},
	{harness.Libs{Name: "kafka-0.10.2.2", Artifacts: []string{"org.apache.kafka:kafka_2.11:0.10.2.2"}}, "old", "OldClient", []string{"none", "gzip", "snappy", "lz4"}, []string{"RangeAssignor", "RoundRobinAssignor"}, ""},
	{clientsOf("1.1.1"), "old+mid", "MidClient", []string{"none", "gzip", "snappy", "lz4"}, []string{"RangeAssignor", "RoundRobinAssignor", "StickyAssignor"}, ""},
	{clientsOf("2.3.1"), "old+mid", "MidClient", []string{"none", "gzip", "snappy", "lz4", "zstd"}, []string{"RangeAssignor", "RoundRobinAssignor", "StickyAssignor"}, ""},
	{clientsOf("2.8.2"), "old+mid", "MidClient", []string{"none", "gzip", "snappy", "lz4", "zstd"}, []string{"RangeAssignor", "RoundRobinAssignor", "StickyAssignor", "CooperativeStickyAssignor"}, ""},
}

func clientsOf(version string) harness.Libs {
	return harness.Libs{Name: "kafka-clients-" + version, Artifacts: []string{"org.apache.kafka:kafka-clients:" + version, "org.slf4j:slf4j-reload4j:1.7.36"}}
}

// oldChecks: each old client writes with every codec it knows, reads all of it and what a new client wrote, and shares work in groups.
func oldChecks() []harness.Check {
	var out []harness.Check
	for _, c := range oldClients {
		version := c.libs.Name[strings.LastIndexByte(c.libs.Name, '-')+1:]
		if c.name == "" {
			c.name = "each codec in and out, groups with each assignor"
		}
		out = append(out, harness.Check{Client: "Java client " + version, Name: c.name, Limit: 5 * time.Minute, Run: func(e *harness.Env) error {
			return oldClient(e, c.libs, c.parts, c.class, c.codecs, c.assignors)
		}})
	}
	return out
}

func oldClient(e *harness.Env, l harness.Libs, parts, class string, codecs, assignors []string) error {
	m, err := harness.StartMillrace(e, "group.initial.rebalance.delay.ms=0")
	if err != nil {
		return err
	}
	defer m.Kill()
	for _, codec := range codecs {
		for _, name := range []string{"in-", "new-", "scala-"} {
			if err := harness.CreateTopic(m.Addr, name+codec, 1); err != nil {
				return err
			}
		}
		if err := putAsNew(m.Addr, "new-"+codec, codec); err != nil {
			return err
		}
	}
	host, port, err := net.SplitHostPort(m.Addr)
	if err != nil {
		return err
	}
	args := []string{class, host, port, strings.Join(codecs, ",")}
	if assignors != nil {
		for _, a := range assignors {
			if err := harness.CreateTopic(m.Addr, "group-"+a, 4); err != nil {
				return err
			}
		}
		args = []string{class, m.Addr, strings.Join(codecs, ","), consumerPackage + strings.Join(assignors, ","+consumerPackage)}
	}
	p, err := startProgram(e, l, parts, "old", args...)
	if err != nil {
		return err
	}
	if err := p.wait(4 * time.Minute); err != nil {
		return err
	}
	var did []string
	for _, line := range p.said() {
		if what, ok := strings.CutPrefix(line, "ok "); ok {
			did = append(did, what)
		}
	}
	if want := len(codecs) + len(assignors); len(did) < want {
		return fmt.Errorf("it did %d things (%s), want %d", len(did), strings.Join(did, ", "), want)
	}
	e.Note("%s", strings.Join(did, ", "))
	return m.Stop()
}

// putAsNew writes 500 records as a client of today does, with headers, compressed.
func putAsNew(addr, topic, codec string) error {
	by := map[string]kgo.CompressionCodec{"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression()}[codec]
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ProducerBatchCompression(by))
	if err != nil {
		return err
	}
	defer cl.Close()
	var records []*kgo.Record
	for i := range 500 {
		n := strconv.Itoa(i)
		records = append(records, &kgo.Record{Topic: topic, Key: []byte("key " + n), Value: []byte("value " + n), Headers: []kgo.RecordHeader{{Key: "h", Value: []byte(n)}}})
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return cl.ProduceSync(ctx, records...).FirstErr()
}
