package wire

import (
	"math"
	"slices"
)

// FetchRequest is a parsed Fetch request, any version; fields that a version
// does not have hold the protocol's defaults. Strings alias the parsed body:
// whoever keeps them (a session, a waiting fetch) copies them or keeps the
// frame. Made to be parsed into again. Not safe for concurrent use.
type FetchRequest struct {
	Version      int16
	ClusterID    *string // v12+; nil = null
	ReplicaID    int32   // -1 consumer, ≥0 follower; v15+ out of the tagged ReplicaState
	ReplicaEpoch int64   // v15+, broker epoch of the follower; -1 unknown
	MaxWaitMs    int32
	MinBytes     int32
	MaxBytes     int32 // v3+; else no limit
	Isolation    int8  // v4+; 0 read uncommitted, 1 read committed
	SessionID    int32 // v7+; else 0
	SessionEpoch int32 // v7+; else -1
	Topics       []FetchTopic
	Forgotten    []ForgottenTopic // v7+
	Rack         string           // v11+

	cluster    string           // what ClusterID points to
	partitions []FetchPartition // behind all Topics[i].Partitions
	forgotten  []int32          // behind all Forgotten[i].Partitions
}

// FetchTopic names its topic by Name up to v12 and by ID from v13 on.
type FetchTopic struct {
	Name       string
	ID         [16]byte
	Partitions []FetchPartition

	first, end int // of partitions, until all are parsed
}

// FetchPartition asks for one partition's records.
type FetchPartition struct {
	Index            int32
	CurrentEpoch     int32 // v9+: leader epoch the client knows; -1 unknown
	Offset           int64
	LastFetchedEpoch int32    // v12+: epoch of the record before Offset; -1 unknown
	LogStart         int64    // v5+: the follower's; -1 for consumers
	MaxBytes         int32    // of this partition
	DirectoryID      [16]byte // v17+
	HighWatermark    int64    // v18+: the follower's; MaxInt64 unknown
}

// ForgottenTopic lists partitions that leave the fetch session.
type ForgottenTopic struct {
	Name       string
	ID         [16]byte
	Partitions []int32

	first, end int
}

// Parse reads a body of the given version, replacing what r held, under the
// same rules as ProduceRequest.Parse.
func (r *FetchRequest) Parse(body []byte, version int16) error {
	rd := newReader(body, version >= 12)
	r.reset(version)
	if version < 15 {
		r.ReplicaID = rd.int32("replica id")
	}
	r.MaxWaitMs = rd.int32("max wait")
	r.MinBytes = rd.int32("min bytes")
	if version >= 3 {
		r.MaxBytes = rd.int32("max bytes")
	}
	if version >= 4 {
		r.Isolation = rd.int8("isolation level")
	}
	if version >= 7 {
		r.SessionID = rd.int32("session id")
		r.SessionEpoch = rd.int32("session epoch")
	}

	n := rd.array(minTopicSize(version, rd.flexible), "topic count")
	r.Topics = slices.Grow(r.Topics, n)
	for ; n > 0 && rd.bad == nil; n-- {
		r.parseTopic(&rd)
	}
	if version >= 7 {
		n = rd.array(minTopicSize(version, rd.flexible), "forgotten topic count")
		r.Forgotten = slices.Grow(r.Forgotten, n)
		for ; n > 0 && rd.bad == nil; n-- {
			r.parseForgotten(&rd)
		}
	}
	if version >= 11 {
		r.Rack = rd.string("rack")
	}
	if rd.flexible {
		r.parseTags(&rd)
	}
	for i := range r.Topics {
		t := &r.Topics[i]
		t.Partitions = r.partitions[t.first:t.end:t.end]
	}
	for i := range r.Forgotten {
		t := &r.Forgotten[i]
		t.Partitions = r.forgotten[t.first:t.end:t.end]
	}
	return rd.failure(KeyFetch, version)
}

func (r *FetchRequest) parseTopic(rd *reader) {
	t := FetchTopic{first: len(r.partitions)}
	if r.Version >= 13 {
		t.ID = rd.uuid("topic id")
	} else {
		t.Name = rd.string("topic name")
	}
	n := rd.array(r.minPartitionSize(), "partition count")
	r.partitions = slices.Grow(r.partitions, n)
	for ; n > 0 && rd.bad == nil; n-- {
		r.partitions = append(r.partitions, r.parsePartition(rd))
	}
	if rd.flexible {
		rd.skipTags()
	}
	t.end = len(r.partitions)
	r.Topics = append(r.Topics, t)
}

// minPartitionSize is the fewest bytes a partition takes in r's version.
func (r *FetchRequest) minPartitionSize() int {
	size := 4 + 8 + 4 // index, offset, max bytes
	if r.Version >= 5 {
		size += 8 // log start
	}
	if r.Version >= 9 {
		size += 4 // current epoch
	}
	if r.Version >= 12 {
		size += 4 + 1 // last fetched epoch, tag count
	}
	return size
}

func (r *FetchRequest) parsePartition(rd *reader) FetchPartition {
	p := FetchPartition{CurrentEpoch: -1, LastFetchedEpoch: -1, LogStart: -1, HighWatermark: math.MaxInt64}
	p.Index = rd.int32("partition index")
	if r.Version >= 9 {
		p.CurrentEpoch = rd.int32("current leader epoch")
	}
	p.Offset = rd.int64("fetch offset")
	if r.Version >= 12 {
		p.LastFetchedEpoch = rd.int32("last fetched epoch")
	}
	if r.Version >= 5 {
		p.LogStart = rd.int64("log start offset")
	}
	p.MaxBytes = rd.int32("partition max bytes")
	if !rd.flexible {
		return p
	}
	for tag, value := range rd.eachTag() {
		v := newReader(value, true)
		switch {
		case tag == 0 && r.Version >= 17:
			p.DirectoryID = v.uuid("replica directory id")
		case tag == 1 && r.Version >= 18:
			p.HighWatermark = v.int64("high watermark")
		}
		if v.bad != nil {
			rd.fail(v.bad.Field, int64(len(value)))
		}
	}
	return p
}

func (r *FetchRequest) parseForgotten(rd *reader) {
	t := ForgottenTopic{first: len(r.forgotten)}
	if r.Version >= 13 {
		t.ID = rd.uuid("forgotten topic id")
	} else {
		t.Name = rd.string("forgotten topic name")
	}
	n := rd.array(4, "forgotten partition count")
	r.forgotten = slices.Grow(r.forgotten, n)
	for ; n > 0 && rd.bad == nil; n-- {
		r.forgotten = append(r.forgotten, rd.int32("forgotten partition"))
	}
	if rd.flexible {
		rd.skipTags()
	}
	t.end = len(r.forgotten)
	r.Forgotten = append(r.Forgotten, t)
}

// parseTags reads the top level's tagged fields: 0 cluster id, 1 replica state.
func (r *FetchRequest) parseTags(rd *reader) {
	for tag, value := range rd.eachTag() {
		v := newReader(value, true)
		switch {
		case tag == 0:
			if s, ok := v.nullableString("cluster id"); ok {
				r.cluster = s
				r.ClusterID = &r.cluster
			}
		case tag == 1 && r.Version >= 15:
			r.ReplicaID = v.int32("replica id")
			r.ReplicaEpoch = v.int64("replica epoch")
			v.skipTags()
		}
		if v.bad != nil {
			rd.fail(v.bad.Field, int64(len(value)))
		}
	}
}

func (r *FetchRequest) reset(version int16) {
	topics, forgottenTopics := reuse(r.Topics), reuse(r.Forgotten)
	partitions, forgotten := reuse(r.partitions), reuse(r.forgotten)
	*r = FetchRequest{
		Version: version, ReplicaID: -1, ReplicaEpoch: -1, MaxBytes: math.MaxInt32, SessionEpoch: -1,
		Topics: topics, Forgotten: forgottenTopics, partitions: partitions, forgotten: forgotten,
	}
}
