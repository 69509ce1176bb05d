package wire

import "slices"

// FetchResponse is the answer to a Fetch request. Send leaves out what the
// version does not know.
type FetchResponse struct {
	ThrottleMs int32
	Code       int16 // v7+: of the session
	SessionID  int32 // v7+
	Topics     []FetchTopicResult
	Nodes      []NodeEndpoint // v16+: where the CurrentLeaders are

	holes []hole // scratch of Send
}

// FetchTopicResult answers one topic, named as it was asked for.
type FetchTopicResult struct {
	Name       string   // up to v12
	ID         [16]byte // from v13 on
	Partitions []FetchPartitionResult
}

// FetchPartitionResult answers one partition. The records are Payload's bytes,
// or Bytes if Payload is nil. With an error set, the watermarks are -1.
type FetchPartitionResult struct {
	Index            int32
	Code             int16
	HighWatermark    int64
	LastStable       int64        // v4+
	LogStart         int64        // v5+
	Diverging        *EpochEnd    // v12+; nil is not sent
	CurrentLeader    *Leader      // v12+; nil is not sent
	Snapshot         *EpochEnd    // v12+; nil is not sent
	Aborted          []AbortedTxn // v4+; nil is sent as null (read uncommitted)
	PreferredReplica int32        // v11+; -1 = none
	Payload          Payload
	Bytes            []byte

	ReadError error // set by Send: why the payload could not be read, to be logged
}

// EpochEnd is an epoch and the offset at which it ends.
type EpochEnd struct {
	Epoch int32
	End   int64
}

// AbortedTxn names an aborted transaction that reaches into the records sent.
type AbortedTxn struct {
	ProducerID  int64
	FirstOffset int64
}

func (p *FetchPartitionResult) size() int {
	if p.Payload != nil {
		return p.Payload.Size()
	}
	return len(p.Bytes)
}

// Release gives back all payloads, unsent. For answers that are dropped; Send
// releases by itself.
func (r *FetchResponse) Release() {
	for i := range r.Topics {
		for j := range r.Topics[i].Partitions {
			p := &r.Topics[i].Partitions[j]
			if p.Payload != nil {
				p.Payload.Release()
				p.Payload = nil
			}
		}
	}
}

// AppendTo appends the answer's body with all records copied in: for tests,
// tools and answers made of Bytes. Payloads are not released. A payload that
// cannot be read answers its partition with a storage error.
func (r *FetchResponse) AppendTo(dst []byte, version int16) []byte {
	return r.append(dst, version, func(dst []byte, p *FetchPartitionResult) ([]byte, error) {
		return p.appendRecords(dst)
	})
}

// append appends the body; records appends one partition's record bytes, or
// notes that they go there.
func (r *FetchResponse) append(dst []byte, version int16, records func([]byte, *FetchPartitionResult) ([]byte, error)) []byte {
	flexible := version >= 12
	if version >= 1 {
		dst = appendInt32(dst, r.ThrottleMs)
	}
	if version >= 7 {
		dst = appendInt16(dst, r.Code)
		dst = appendInt32(dst, r.SessionID)
	}
	dst = appendCountV(dst, len(r.Topics), flexible)
	for i := range r.Topics {
		t := &r.Topics[i]
		if version >= 13 {
			dst = append(dst, t.ID[:]...)
		} else {
			dst = appendStringV(dst, t.Name, flexible)
		}
		dst = appendCountV(dst, len(t.Partitions), flexible)
		for j := range t.Partitions {
			p := &t.Partitions[j]
			start := len(dst)
			var err error
			if dst, err = records(p.appendHead(dst, version), p); err != nil {
				p.unreadable(err, version)
				dst = p.appendHead(dst[:start], version)
			}
			if flexible {
				dst = p.appendTags(dst)
			}
		}
		if flexible {
			dst = append(dst, 0)
		}
	}
	switch {
	case version >= 16:
		dst = appendNodeEndpoints(dst, r.Nodes)
	case flexible:
		dst = append(dst, 0)
	}
	return dst
}

// appendRecords copies the record bytes in.
func (p *FetchPartitionResult) appendRecords(dst []byte) ([]byte, error) {
	if p.Payload == nil {
		return append(dst, p.Bytes...), nil
	}
	start, size := len(dst), p.Payload.Size()
	dst = slices.Grow(dst, size)[:start+size]
	if err := p.Payload.ReadInto(dst[start:]); err != nil {
		return dst[:start], err
	}
	return dst, nil
}

// unreadable turns the partition's answer into a storage error.
func (p *FetchPartitionResult) unreadable(err error, version int16) {
	p.Payload.Release()
	p.ReadError, p.Payload, p.Bytes = err, nil, nil
	p.Code = ErrKafkaStorageError
	if version <= 5 { // what such clients know of it (protocol note of KafkaStorageException)
		p.Code = ErrNotLeaderOrFollower
	}
	p.HighWatermark, p.LastStable, p.LogStart, p.PreferredReplica, p.Aborted = -1, -1, -1, -1, nil
}

// appendHead appends all that comes before the record bytes, their length last.
func (p *FetchPartitionResult) appendHead(dst []byte, version int16) []byte {
	flexible := version >= 12
	dst = appendInt32(dst, p.Index)
	dst = appendInt16(dst, p.Code)
	dst = appendInt64(dst, p.HighWatermark)
	if version >= 4 {
		dst = appendInt64(dst, p.LastStable)
	}
	if version >= 5 {
		dst = appendInt64(dst, p.LogStart)
	}
	if version >= 4 {
		if p.Aborted == nil {
			dst = appendCountV(dst, -1, flexible)
		} else {
			dst = appendCountV(dst, len(p.Aborted), flexible)
		}
		for _, a := range p.Aborted {
			dst = appendInt64(dst, a.ProducerID)
			dst = appendInt64(dst, a.FirstOffset)
			if flexible {
				dst = append(dst, 0)
			}
		}
	}
	if version >= 11 {
		dst = appendInt32(dst, p.PreferredReplica)
	}
	return appendCountV(dst, p.size(), flexible)
}

func (p *FetchPartitionResult) appendTags(dst []byte) []byte {
	n := byte(0)
	for _, there := range []bool{p.Diverging != nil, p.CurrentLeader != nil, p.Snapshot != nil} {
		if there {
			n++
		}
	}
	dst = append(dst, n)
	if d := p.Diverging; d != nil {
		dst = append(dst, 0, 13) // int32, int64 and an empty tag block
		dst = append(appendInt64(appendInt32(dst, d.Epoch), d.End), 0)
	}
	if p.CurrentLeader != nil {
		dst = appendLeader(dst, 1, p.CurrentLeader)
	}
	if s := p.Snapshot; s != nil {
		dst = append(dst, 2, 13)
		dst = append(appendInt32(appendInt64(dst, s.End), s.Epoch), 0) // in this order, unlike above
	}
	return dst
}
