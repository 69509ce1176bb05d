// Package client turns Kafka's client properties and our flags into a franz-go
// client. Properties keep Kafka's names, defaults and meanings, so that a command
// line written for Kafka's tools measures the same thing here.
package client

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Acks is what the broker must have done before it answers a produce request.
type Acks int8

// The three kinds of acknowledgement.
const (
	AcksAll    Acks = -1 // every in-sync replica has it
	AcksNone   Acks = 0  // no answer at all
	AcksLeader Acks = 1  // the leader has it
)

func (a Acks) String() string {
	if a == AcksAll {
		return "all"
	}
	return fmt.Sprint(int8(a))
}

// Settings are a client's properties. NewSettings gives Kafka's defaults.
type Settings struct {
	Bootstrap       []string // host:port
	ClientID        string
	RequestTimeout  time.Duration
	ConnectTimeout  time.Duration // how long Connect looks for a broker; ours, Kafka has none
	MetadataMaxAge  time.Duration
	ConnectionsIdle time.Duration

	Acks             Acks
	Idempotence      *bool // nil: on where acks and in-flight allow it, as in Kafka
	Compression      string
	CompressionLevel *int // nil: the codec's own default
	BatchSize        int  // bytes of a batch before it is sent without lingering
	LargestRecord    int  // bytes of the largest record to come if known; 0 otherwise
	Linger           time.Duration
	BufferMemory     int // bytes waiting to be sent before a send blocks
	MaxRequestSize   int // bytes; no record may be larger
	MaxInFlight      int // produce requests per connection
	Retries          int
	DeliveryTimeout  time.Duration
	TransactionalID  string
	Partition        int32 // ≥ 0: every record goes to this partition

	GroupID           string
	FromLatest        bool // auto.offset.reset=latest
	ReadCommitted     bool
	FetchMinBytes     int
	FetchMaxBytes     int
	FetchMaxWait      time.Duration
	PartitionMaxBytes int
	MaxPollRecords    int
}

// NewSettings are the defaults of Kafka 4.3's clients.
func NewSettings() *Settings {
	return &Settings{
		Bootstrap:       []string{"127.0.0.1:9092"},
		ClientID:        "millrace",
		RequestTimeout:  30 * time.Second,
		ConnectTimeout:  10 * time.Second,
		MetadataMaxAge:  5 * time.Minute,
		ConnectionsIdle: 9 * time.Minute,

		Acks:            AcksAll,
		Compression:     "none",
		BatchSize:       16384,
		Linger:          5 * time.Millisecond,
		BufferMemory:    32 << 20,
		MaxRequestSize:  1 << 20,
		MaxInFlight:     5,
		Retries:         math.MaxInt32,
		DeliveryTimeout: 2 * time.Minute,
		Partition:       -1,

		FetchMinBytes:     1,
		FetchMaxBytes:     50 << 20,
		FetchMaxWait:      500 * time.Millisecond,
		PartitionMaxBytes: 1 << 20,
		MaxPollRecords:    500,
	}
}

// RecordOverhead is more than a batch with one record adds to the record's own
// bytes: a 61-byte header, the record's varints, and the request's array lengths.
const RecordOverhead = 128

// Bounds of franz-go on the size of a batch.
const (
	smallestBatch = 512
	largestBatch  = 1 << 30
)

// batchLimit is the one limit that franz-go knows. Kafka has two: a batch is
// closed at batch.size, but one record may be larger, up to max.request.size.
// So the limit is batch.size, raised to what the largest known record needs.
func (s *Settings) batchLimit() int {
	need := s.MaxRequestSize
	if s.LargestRecord > 0 {
		need = min(s.LargestRecord+RecordOverhead, s.MaxRequestSize)
	}
	return min(max(s.BatchSize, need, smallestBatch), largestBatch)
}

// idempotent decides as Kafka's producer does: on unless something that was set
// excludes it; a contradiction that was asked for is an error.
func (s *Settings) idempotent() (bool, error) {
	var against string
	switch {
	case s.Acks != AcksAll:
		against = "acks=" + s.Acks.String() + " (it needs acks=all)"
	case s.MaxInFlight > 5:
		against = fmt.Sprintf("max.in.flight.requests.per.connection=%d (it needs 5 or fewer)", s.MaxInFlight)
	case s.Retries == 0:
		against = "retries=0"
	}
	if s.Idempotence == nil {
		return against == "", nil
	}
	if *s.Idempotence && against != "" {
		return false, fmt.Errorf("enable.idempotence=true contradicts %s", against)
	}
	return *s.Idempotence, nil
}

// Common are the options of every client.
func (s *Settings) Common() []kgo.Opt {
	return []kgo.Opt{
		kgo.SeedBrokers(s.Bootstrap...),
		kgo.ClientID(s.ClientID),
		kgo.RequestTimeoutOverhead(s.RequestTimeout),
		kgo.RetryTimeout(s.RequestTimeout),
		kgo.DialTimeout(s.ConnectTimeout),
		kgo.MetadataMaxAge(s.MetadataMaxAge),
		kgo.ConnIdleTimeout(s.ConnectionsIdle),
		kgo.DisableClientMetrics(), // measuring tools must not send measurements of their own
		kgo.SoftwareNameAndVersion("millrace", Version()),
	}
}

// Producer are the options of a producing client.
func (s *Settings) Producer() ([]kgo.Opt, error) {
	codec, err := s.codec()
	if err != nil {
		return nil, err
	}
	idempotent, err := s.idempotent()
	if err != nil {
		return nil, err
	}
	limit := s.batchLimit()
	o := append(s.Common(),
		kgo.ProducerBatchCompression(codec),
		kgo.ProducerBatchMaxBytes(int32(limit)),
		kgo.BrokerMaxWriteBytes(int32(min(max(100<<20, limit+1<<20), largestBatch))),
		kgo.ProducerLinger(s.Linger),
		kgo.MaxBufferedBytes(max(s.BufferMemory, limit)),
		kgo.MaxBufferedRecords(max(10_000, s.BufferMemory/recordMemory)),
		kgo.ProduceRequestTimeout(s.RequestTimeout),
		kgo.RecordDeliveryTimeout(s.DeliveryTimeout),
	)
	switch s.Acks {
	case AcksAll:
		o = append(o, kgo.RequiredAcks(kgo.AllISRAcks()))
	case AcksLeader:
		o = append(o, kgo.RequiredAcks(kgo.LeaderAck()))
	case AcksNone:
		o = append(o, kgo.RequiredAcks(kgo.NoAck()))
	}
	if s.Retries != math.MaxInt32 {
		o = append(o, kgo.RecordRetries(s.Retries))
	}
	if idempotent {
		// Without this a record that was sent and not answered is retried for ever.
		// A tool that gives up reports a failure and sends nothing again, so the
		// duplicate that franz-go warns of cannot come from here.
		o = append(o, kgo.AllowIdempotentProduceCancellation())
	} else {
		o = append(o, kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(s.MaxInFlight))
	}
	if s.Partition >= 0 {
		o = append(o, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	}
	return o, nil
}

// recordMemory is about what one buffered record costs beyond its payload. It
// keeps a buffer of tiny records near buffer.memory instead of 30 times above it.
const recordMemory = 256

// Consumer are the options of a consuming client; what it consumes is the caller's.
func (s *Settings) Consumer() []kgo.Opt {
	start := kgo.NewOffset().AtStart()
	if s.FromLatest {
		start = kgo.NewOffset().AtEnd()
	}
	o := append(s.Common(),
		kgo.ConsumeStartOffset(start),
		kgo.ConsumeResetOffset(start),
		kgo.FetchMinBytes(int32(s.FetchMinBytes)),
		kgo.FetchMaxBytes(int32(max(s.FetchMaxBytes, s.PartitionMaxBytes))),
		kgo.FetchMaxPartitionBytes(int32(s.PartitionMaxBytes)),
		kgo.FetchMaxWait(s.FetchMaxWait),
		kgo.BrokerMaxReadBytes(int32(min(max(100<<20, 2*int64(s.FetchMaxBytes), 2*int64(s.PartitionMaxBytes)), largestBatch))),
	)
	if s.ReadCommitted {
		o = append(o, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	if s.GroupID != "" {
		o = append(o, kgo.ConsumerGroup(s.GroupID))
	}
	return o
}

func (s *Settings) codec() (kgo.CompressionCodec, error) {
	var c kgo.CompressionCodec
	switch strings.ToLower(s.Compression) {
	case "", "none", "uncompressed":
		return kgo.NoCompression(), nil
	case "gzip":
		c = kgo.GzipCompression()
	case "snappy":
		return kgo.SnappyCompression(), nil // has no levels
	case "lz4":
		c = kgo.Lz4Compression()
	case "zstd":
		c = kgo.ZstdCompression()
	default:
		return c, fmt.Errorf("compression %q is none of none, gzip, snappy, lz4, zstd", s.Compression)
	}
	if s.CompressionLevel != nil {
		c = c.WithLevel(*s.CompressionLevel)
	}
	return c, nil
}
