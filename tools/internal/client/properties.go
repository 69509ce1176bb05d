package client

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/magiconair/properties"
)

// Role says which of Kafka's clients a property belongs to.
type Role uint8

// The roles; a property of both has both bits.
const (
	ForProducer Role = 1 << iota
	ForConsumer
	ForBoth = ForProducer | ForConsumer
)

// property is one row of the table: Kafka's name, whose it is, and what it sets.
type property struct {
	name string
	role Role
	set  func(s *Settings, value string) error
}

// table holds every property we act on. One that is not here is warned about,
// never dropped in silence: a benchmark that ignores a setting lies.
var table = []property{
	{"bootstrap.servers", ForBoth, func(s *Settings, v string) error { s.Bootstrap = splitList(v); return nil }},
	{"client.id", ForBoth, func(s *Settings, v string) error { s.ClientID = v; return nil }},
	{"request.timeout.ms", ForBoth, millis(func(s *Settings) *time.Duration { return &s.RequestTimeout })},
	{"metadata.max.age.ms", ForBoth, millis(func(s *Settings) *time.Duration { return &s.MetadataMaxAge })},
	{"connections.max.idle.ms", ForBoth, millis(func(s *Settings) *time.Duration { return &s.ConnectionsIdle })},
	{"socket.connection.setup.timeout.ms", ForBoth, millis(func(s *Settings) *time.Duration { return &s.ConnectTimeout })},
	{"security.protocol", ForBoth, only("PLAINTEXT", "encryption and authentication are not supported yet")},

	{"acks", ForProducer, setAcks},
	{"enable.idempotence", ForProducer, func(s *Settings, v string) error {
		b, err := strconv.ParseBool(v)
		s.Idempotence = &b
		return err
	}},
	{"compression.type", ForProducer, func(s *Settings, v string) error {
		s.Compression = v
		_, err := s.codec()
		return err
	}},
	{"compression.gzip.level", ForProducer, setLevel},
	{"compression.lz4.level", ForProducer, setLevel},
	{"compression.zstd.level", ForProducer, setLevel},
	{"batch.size", ForProducer, count(0, largestBatch, func(s *Settings) *int { return &s.BatchSize })},
	{"linger.ms", ForProducer, millis(func(s *Settings) *time.Duration { return &s.Linger })},
	{"buffer.memory", ForProducer, count(1, math.MaxInt, func(s *Settings) *int { return &s.BufferMemory })},
	{"max.request.size", ForProducer, count(1, largestBatch, func(s *Settings) *int { return &s.MaxRequestSize })},
	{"max.in.flight.requests.per.connection", ForProducer, count(1, 1<<20, func(s *Settings) *int { return &s.MaxInFlight })},
	{"retries", ForProducer, count(0, math.MaxInt32, func(s *Settings) *int { return &s.Retries })},
	{"delivery.timeout.ms", ForProducer, millis(func(s *Settings) *time.Duration { return &s.DeliveryTimeout })},
	{"transactional.id", ForProducer, func(s *Settings, v string) error { s.TransactionalID = v; return nil }},
	{"key.serializer", ForProducer, ignored}, // bytes are bytes here
	{"value.serializer", ForProducer, ignored},

	{"group.id", ForConsumer, func(s *Settings, v string) error { s.GroupID = v; return nil }},
	{"auto.offset.reset", ForConsumer, oneOf(map[string]func(*Settings){
		"earliest": func(s *Settings) { s.FromLatest = false },
		"latest":   func(s *Settings) { s.FromLatest = true },
	})},
	{"isolation.level", ForConsumer, oneOf(map[string]func(*Settings){
		"read_uncommitted": func(s *Settings) { s.ReadCommitted = false },
		"read_committed":   func(s *Settings) { s.ReadCommitted = true },
	})},
	{"fetch.min.bytes", ForConsumer, count(0, math.MaxInt32, func(s *Settings) *int { return &s.FetchMinBytes })},
	{"fetch.max.bytes", ForConsumer, count(1, math.MaxInt32, func(s *Settings) *int { return &s.FetchMaxBytes })},
	{"fetch.max.wait.ms", ForConsumer, millis(func(s *Settings) *time.Duration { return &s.FetchMaxWait })},
	{"max.partition.fetch.bytes", ForConsumer, count(1, math.MaxInt32, func(s *Settings) *int { return &s.PartitionMaxBytes })},
	{"max.poll.records", ForConsumer, count(1, math.MaxInt32, func(s *Settings) *int { return &s.MaxPollRecords })},
	{"key.deserializer", ForConsumer, ignored},
	{"value.deserializer", ForConsumer, ignored},
	{"check.crcs", ForConsumer, only("true", "checksums are always checked")},
}

// Set applies one property. known is false if we have no such property for this
// role; the caller warns then.
func (s *Settings) Set(role Role, name, value string) (known bool, err error) {
	i := slices.IndexFunc(table, func(p property) bool { return p.name == name && p.role&role != 0 })
	if i < 0 {
		return false, nil
	}
	if err := table[i].set(s, strings.TrimSpace(value)); err != nil {
		return true, fmt.Errorf("property %s=%s: %w", name, value, err)
	}
	return true, nil
}

// Names lists the properties of a role, for help texts.
func Names(role Role) []string {
	var out []string
	for _, p := range table {
		if p.role&role != 0 {
			out = append(out, p.name)
		}
	}
	return out
}

// Load applies a Java properties file. It returns the names it did not know.
func (s *Settings) Load(role Role, file string) (unknown []string, err error) {
	l := properties.Loader{Encoding: properties.UTF8, DisableExpansion: true} // ${…} is no feature of Kafka's files
	p, err := l.LoadFile(file)
	if err != nil {
		return nil, err
	}
	for _, name := range p.Keys() {
		value, _ := p.Get(name)
		known, err := s.Set(role, name, value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if !known {
			unknown = append(unknown, name)
		}
	}
	return unknown, nil
}

// Apply applies name=value pairs from a command line.
func (s *Settings) Apply(role Role, pairs []string) (unknown []string, err error) {
	for _, pair := range pairs {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("property %q is not of the form name=value", pair)
		}
		known, err := s.Set(role, strings.TrimSpace(name), value)
		if err != nil {
			return nil, err
		}
		if !known {
			unknown = append(unknown, name)
		}
	}
	return unknown, nil
}

func splitList(v string) []string {
	var out []string
	for _, item := range strings.Split(v, ",") {
		if item = strings.TrimSpace(item); item != "" {
			out = append(out, item)
		}
	}
	return out
}

func setAcks(s *Settings, v string) error {
	switch v {
	case "all", "-1":
		s.Acks = AcksAll
	case "1":
		s.Acks = AcksLeader
	case "0":
		s.Acks = AcksNone
	default:
		return fmt.Errorf("must be all, -1, 0 or 1")
	}
	return nil
}

func setLevel(s *Settings, v string) error {
	n, err := strconv.Atoi(v)
	s.CompressionLevel = &n
	return err
}

func millis(field func(*Settings) *time.Duration) func(*Settings, string) error {
	return func(s *Settings, v string) error {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < 0 || n > math.MaxInt32 {
			return fmt.Errorf("must be milliseconds from 0 to %d", math.MaxInt32)
		}
		*field(s) = time.Duration(n) * time.Millisecond
		return nil
	}
}

func count(low, high int, field func(*Settings) *int) func(*Settings, string) error {
	return func(s *Settings, v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < low || n > high {
			return fmt.Errorf("must be a number from %d to %d", low, high)
		}
		*field(s) = n
		return nil
	}
}

func oneOf(choices map[string]func(*Settings)) func(*Settings, string) error {
	return func(s *Settings, v string) error {
		set, ok := choices[v]
		if !ok {
			var names []string
			for name := range choices {
				names = append(names, name)
			}
			slices.Sort(names)
			return fmt.Errorf("must be %s", strings.Join(names, " or "))
		}
		set(s)
		return nil
	}
}

func only(value, why string) func(*Settings, string) error {
	return func(_ *Settings, v string) error {
		if !strings.EqualFold(v, value) {
			return fmt.Errorf("only %s is possible: %s", value, why)
		}
		return nil
	}
}

func ignored(*Settings, string) error { return nil }
