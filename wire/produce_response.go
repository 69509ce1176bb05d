package wire

// ProduceResponse is the answer to a Produce request. AppendTo leaves out what
// the version does not know.
type ProduceResponse struct {
	Topics     []ProduceTopicResult
	ThrottleMs int32
	Nodes      []NodeEndpoint // v10+: where the CurrentLeaders are
}

// ProduceTopicResult answers one topic, named as it was asked for.
type ProduceTopicResult struct {
	Name       string   // up to v12
	ID         [16]byte // from v13 on
	Partitions []ProducePartitionResult
}

// ProducePartitionResult answers one partition. Offsets that are not known are
// -1, LogAppendTime is -1 unless the topic is stamped by the broker.
type ProducePartitionResult struct {
	Index         int32
	Code          int16
	BaseOffset    int64
	LogAppendTime int64         // ms; v2+
	LogStart      int64         // v5+
	RecordErrors  []RecordError // v8+
	ErrorMessage  string        // v8+; "" is sent as null
	CurrentLeader *Leader       // v10+; nil is not sent
}

// RecordError names a record that was the reason for refusing its batch.
type RecordError struct {
	Index   int32  // within the batch
	Message string // "" is sent as null
}

// AppendTo appends the answer's body in the given version's form.
func (r *ProduceResponse) AppendTo(dst []byte, version int16) []byte {
	flexible := version >= 9
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
			dst = t.Partitions[j].appendTo(dst, version)
		}
		if flexible {
			dst = append(dst, 0)
		}
	}
	if version >= 1 {
		dst = appendInt32(dst, r.ThrottleMs)
	}
	switch {
	case version >= 10:
		dst = appendNodeEndpoints(dst, r.Nodes)
	case flexible:
		dst = append(dst, 0)
	}
	return dst
}

func (p *ProducePartitionResult) appendTo(dst []byte, version int16) []byte {
	flexible := version >= 9
	dst = appendInt32(dst, p.Index)
	dst = appendInt16(dst, p.Code)
	dst = appendInt64(dst, p.BaseOffset)
	if version >= 2 {
		dst = appendInt64(dst, p.LogAppendTime)
	}
	if version >= 5 {
		dst = appendInt64(dst, p.LogStart)
	}
	if version >= 8 {
		dst = appendCountV(dst, len(p.RecordErrors), flexible)
		for i := range p.RecordErrors {
			e := &p.RecordErrors[i]
			dst = appendInt32(dst, e.Index)
			dst = appendMessage(dst, e.Message, flexible)
			if flexible {
				dst = append(dst, 0)
			}
		}
		dst = appendMessage(dst, p.ErrorMessage, flexible)
	}
	switch {
	case version >= 10 && p.CurrentLeader != nil:
		dst = appendLeader(append(dst, 1), 0, p.CurrentLeader)
	case flexible:
		dst = append(dst, 0)
	}
	return dst
}

// appendMessage sends "" as null: an error message is there or it is not.
func appendMessage(dst []byte, s string, flexible bool) []byte {
	if s == "" {
		return appendNullableV(dst, nil, flexible)
	}
	return appendStringV(dst, s, flexible)
}
