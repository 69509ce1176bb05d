package replica

import (
	"time"

	"millrace/engine/batch"
)

// Policy is what a topic's settings ask of batches and of acks. It never changes
// once published; a change of settings publishes another.
type Policy struct {
	MinInSync  int // min.insync.replicas; acks=all needs this many, or all replicas if fewer
	Validate   batch.Level
	MaxMessage int // bytes of a whole batch as stored
	Compacted  bool
	AppendTime bool // LogAppendTime
	BeforeMax  time.Duration
	AfterMax   time.Duration // < 0: no limit, as BeforeMax

	Recompress bool // compression.type is not "producer"
	Codec      batch.Codec
	CodecLevel int
}

// Rules fills r with what batch.Check needs; r is the caller's, so that a check
// costs no allocation.
func (p *Policy) Rules(r *batch.Rules, now time.Time) {
	*r = batch.Rules{
		Level:       p.Validate,
		MaxSize:     p.MaxMessage,
		RequireKeys: p.Compacted,
		AppendTime:  p.AppendTime,
		Now:         now,
		BeforeMax:   p.BeforeMax,
		AfterMax:    p.AfterMax,
	}
}
