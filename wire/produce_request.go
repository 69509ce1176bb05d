package wire

import "slices"

// ProduceRequest is a parsed Produce request, any version. Names, the
// transactional id and all records alias the parsed body: they are valid until
// the frame is reused, and whoever keeps a name copies it. A ProduceRequest is
// made to be parsed into again: its slices are reused, so that in steady state
// parsing allocates nothing. Not safe for concurrent use.
type ProduceRequest struct {
	Version         int16
	TransactionalID *string // v3+; nil = null
	Acks            int16
	TimeoutMs       int32
	Topics          []ProduceTopic

	txn        string             // what TransactionalID points to
	partitions []ProducePartition // behind all Topics[i].Partitions
}

// ProduceTopic names its topic by Name up to v12 and by ID from v13 on.
type ProduceTopic struct {
	Name       string
	ID         [16]byte
	Partitions []ProducePartition

	first, end int // of partitions, until all are parsed
}

// ProducePartition is one partition's bytes. Records is nil if null was sent.
type ProducePartition struct {
	Index   int32
	Records []byte
}

// Parse reads a body of the given version, replacing what r held. All counts
// are checked against the bytes left before anything is allocated (W1).
// Bytes after the end of the request are ignored, as Kafka does. Errors are
// *MalformedError; r then holds nothing to rely on.
func (r *ProduceRequest) Parse(body []byte, version int16) error {
	rd := newReader(body, version >= 9)
	r.reset(version)
	if version >= 3 {
		if s, ok := rd.nullableString("transactional id"); ok {
			r.txn = s
			r.TransactionalID = &r.txn
		}
	}
	r.Acks = rd.int16("acks")
	r.TimeoutMs = rd.int32("timeout")

	topics := rd.array(minTopicSize(version, rd.flexible), "topic count")
	r.Topics = slices.Grow(r.Topics, topics)
	for ; topics > 0 && rd.bad == nil; topics-- {
		r.parseTopic(&rd)
	}
	if rd.flexible {
		rd.skipTags()
	}
	// Only now do the partitions stay where they are.
	for i := range r.Topics {
		t := &r.Topics[i]
		t.Partitions = r.partitions[t.first:t.end:t.end]
	}
	return rd.failure(KeyProduce, version)
}

func (r *ProduceRequest) parseTopic(rd *reader) {
	t := ProduceTopic{first: len(r.partitions)}
	if r.Version >= 13 {
		t.ID = rd.uuid("topic id")
	} else {
		t.Name = rd.string("topic name")
	}
	size := 4 + 4 // index, records length
	if rd.flexible {
		size = 4 + 1 + 1 // index, records length, tag count
	}
	n := rd.array(size, "partition count")
	r.partitions = slices.Grow(r.partitions, n)
	for ; n > 0 && rd.bad == nil; n-- {
		p := ProducePartition{Index: rd.int32("partition index")}
		p.Records = rd.nullableBytes("records")
		if rd.flexible {
			rd.skipTags()
		}
		r.partitions = append(r.partitions, p)
	}
	if rd.flexible {
		rd.skipTags()
	}
	t.end = len(r.partitions)
	r.Topics = append(r.Topics, t)
}

// reset forgets the request before, and its room too if that was a giant.
func (r *ProduceRequest) reset(version int16) {
	r.Version, r.TransactionalID, r.txn = version, nil, ""
	r.Topics = reuse(r.Topics)
	r.partitions = reuse(r.partitions)
}

// reuse empties s, keeping its room unless it is a giant's.
func reuse[T any](s []T) []T {
	if cap(s) > keepElements {
		return nil
	}
	clear(s)
	return s[:0]
}

// minTopicSize is the fewest bytes a topic of a Produce or Fetch request takes
// where name and id have the given version's form: name or id, partition
// count, and the tag count if flexible.
func minTopicSize(version int16, flexible bool) int {
	switch {
	case version >= 13:
		return 16 + 1 + 1
	case flexible:
		return 1 + 1 + 1
	default:
		return 2 + 4
	}
}
