package client

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kgo"
)

func apply(t *testing.T, role Role, pairs ...string) (*Settings, []string, error) {
	t.Helper()
	s := NewSettings()
	unknown, err := s.Apply(role, pairs)
	return s, unknown, err
}

// Claim: Kafka's property names set what they say, and their values reach franz-go.
// Method: set many, look at the settings and at the client's own view of its options.
func TestPropertiesReachTheClient(t *testing.T) {
	s, unknown, err := apply(t, ForProducer,
		"bootstrap.servers=a:1, b:2", "acks=1", "batch.size=65536", "linger.ms=7", "compression.type=zstd",
		"buffer.memory=1000000", "max.request.size=2000000", "max.in.flight.requests.per.connection=3",
		"client.id=me", "request.timeout.ms=1500", "delivery.timeout.ms=2500", "retries=4")
	if err != nil || unknown != nil {
		t.Fatal(unknown, err)
	}
	o, err := s.Producer()
	if err != nil {
		t.Fatal(err)
	}
	cl, err := kgo.NewClient(o...)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	for _, c := range []struct {
		name      string
		got, want any
	}{
		{"bootstrap", strings.Join(s.Bootstrap, " "), "a:1 b:2"},
		{"linger", cl.OptValue(kgo.ProducerLinger), 7 * time.Millisecond},
		{"acks", cl.OptValue(kgo.RequiredAcks), kgo.LeaderAck()},
		{"idempotence off with acks=1", cl.OptValue(kgo.DisableIdempotentWrite), true},
		{"in flight", cl.OptValue(kgo.MaxProduceRequestsInflightPerBroker), 3},
		{"produce timeout", cl.OptValue(kgo.ProduceRequestTimeout), 1500 * time.Millisecond},
		{"delivery timeout", cl.OptValue(kgo.RecordDeliveryTimeout), 2500 * time.Millisecond},
		{"client id", s.ClientID, "me"},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, c.got, c.want)
		}
	}
}

// Claim: idempotence follows Kafka's rules: on by default, off where acks, retries or
// in-flight exclude it, an error where it was asked for against them.
// Method: the combinations as a table.
func TestIdempotenceFollowsKafkasRules(t *testing.T) {
	for _, c := range []struct {
		pairs string
		want  bool
		fails bool
	}{
		{"", true, false},
		{"acks=all", true, false},
		{"acks=-1", true, false},
		{"acks=1", false, false},
		{"acks=0", false, false},
		{"retries=0", false, false},
		{"max.in.flight.requests.per.connection=6", false, false},
		{"enable.idempotence=false", false, false},
		{"enable.idempotence=true", true, false},
		{"enable.idempotence=true acks=1", false, true},
		{"enable.idempotence=true retries=0", false, true},
	} {
		s, _, err := apply(t, ForProducer, strings.Fields(c.pairs)...)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.idempotent()
		if got != c.want || (err != nil) != c.fails {
			t.Errorf("%q: got %v, %v", c.pairs, got, err)
		}
	}
}

// Claim: a batch is batch.size, but large enough for the largest known record and
// for any record where none is known, never beyond max.request.size for a record.
// Method: the cases as a table.
func TestBatchLimitFitsTheLargestRecord(t *testing.T) {
	for _, c := range []struct{ batch, largest, request, want int }{
		{16384, 100, 1 << 20, 16384},
		{16384, 20000, 1 << 20, 20000 + RecordOverhead},
		{16384, 2 << 20, 1 << 20, 1 << 20},
		{16384, 0, 1 << 20, 1 << 20},
		{0, 10, 1 << 20, smallestBatch},
		{2 << 20, 100, 1 << 20, 2 << 20},
	} {
		s := &Settings{BatchSize: c.batch, LargestRecord: c.largest, MaxRequestSize: c.request}
		if got := s.batchLimit(); got != c.want {
			t.Errorf("%+v: got %d", c, got)
		}
	}
}

// Claim: a wrong value names property and value; an unknown name is reported, not dropped.
// Method: one of each kind.
func TestWrongPropertiesAreNamed(t *testing.T) {
	for _, pair := range []string{
		"acks=2", "batch.size=x", "linger.ms=-1", "compression.type=rar", "enable.idempotence=maybe",
		"security.protocol=SSL", "max.in.flight.requests.per.connection=0",
	} {
		_, _, err := apply(t, ForProducer, pair)
		if err == nil || !strings.Contains(err.Error(), pair) {
			t.Errorf("%s: %v", pair, err)
		}
	}
	if _, _, err := apply(t, ForProducer, "acks"); err == nil {
		t.Error("a pair without = was taken")
	}
	_, unknown, err := apply(t, ForProducer, "no.such=1", "fetch.min.bytes=3")
	if err != nil || strings.Join(unknown, " ") != "no.such fetch.min.bytes" {
		t.Errorf("unknown: %v, %v", unknown, err)
	}
}

// Claim: a level applies to the codec that it is for.
// Method: every codec with a level becomes a client.
func TestEveryCodecMakesAClient(t *testing.T) {
	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		s, _, err := apply(t, ForProducer, "compression.type="+codec, "compression.zstd.level=3")
		if err != nil {
			t.Fatal(err)
		}
		o, err := s.Producer()
		if err != nil {
			t.Fatal(codec, err)
		}
		cl, err := kgo.NewClient(o...)
		if err != nil {
			t.Fatal(codec, err)
		}
		cl.Close()
	}
}

// Claim: the file is read first, properties win over it, --bootstrap-server over
// both; both spellings of a flag add to one list; what is unknown is warned about.
// Method: parse a whole command line.
func TestFlagsResolveInKafkasOrder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "client.properties")
	text := "# a comment\nacks=1\nlinger.ms = 9\nclient.id=${user}\nbootstrap.servers=file:1\nodd.one=1\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	var f Flags
	fs := pflag.NewFlagSet("t", pflag.ContinueOnError)
	f.Register(fs, "producer.config", "producer-props")
	err := fs.Parse([]string{"--producer.config", file, "--producer-props", "acks=0", "batch.size=99", "--command-property", "linger.ms=1", "-b", "here,there:2"})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.OnlyProperties(fs.Args()); err != nil {
		t.Fatal(err)
	}
	var warned bytes.Buffer
	s, err := f.Settings(ForProducer, fs.Args(), &warned)
	if err != nil {
		t.Fatal(err)
	}
	if s.Acks != AcksNone || s.Linger != time.Millisecond || s.BatchSize != 99 || s.ClientID != "${user}" ||
		strings.Join(s.Bootstrap, " ") != "here:9092 there:2" {
		t.Errorf("got %+v", s)
	}
	if !strings.Contains(warned.String(), "odd.one") {
		t.Errorf("warned %q", warned.String())
	}
	if err := new(Flags).OnlyProperties([]string{"a=b"}); err == nil {
		t.Error("an argument without a property flag was taken")
	}
	if _, err := (&Flags{Config: file + "x"}).Settings(ForProducer, nil, io.Discard); err == nil {
		t.Error("a file that is not there was taken")
	}
}

// Claim: every row of the table takes the value that Kafka has as its default.
// Method: the defaults as Kafka's documentation lists them.
func TestTableTakesKafkasDefaults(t *testing.T) {
	s := NewSettings()
	for name, value := range map[string]string{
		"acks": "all", "batch.size": "16384", "buffer.memory": "33554432", "linger.ms": "5", "retries": "2147483647",
		"delivery.timeout.ms": "120000", "request.timeout.ms": "30000", "max.request.size": "1048576",
		"max.in.flight.requests.per.connection": "5", "compression.type": "none", "metadata.max.age.ms": "300000",
		"fetch.min.bytes": "1", "fetch.max.bytes": "52428800", "fetch.max.wait.ms": "500", "max.poll.records": "500",
		"max.partition.fetch.bytes": "1048576", "isolation.level": "read_uncommitted", "connections.max.idle.ms": "540000",
		"socket.connection.setup.timeout.ms": "10000", "security.protocol": "PLAINTEXT",
	} {
		known, err := s.Set(ForBoth, name, value)
		if !known || err != nil {
			t.Errorf("%s=%s: %v, %v", name, value, known, err)
		}
	}
	fresh := NewSettings()
	if s.Linger != fresh.Linger || s.BatchSize != fresh.BatchSize || s.Retries != fresh.Retries || s.BufferMemory != fresh.BufferMemory ||
		s.DeliveryTimeout != fresh.DeliveryTimeout || s.FetchMaxBytes != fresh.FetchMaxBytes || s.ConnectionsIdle != fresh.ConnectionsIdle {
		t.Errorf("NewSettings differs from Kafka's defaults: %+v", fresh)
	}
}
