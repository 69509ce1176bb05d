package broker

import (
	"context"
	"fmt"

	"millrace/coord/group/coordinator"
	"millrace/engine"
	"millrace/engine/batch"
	"millrace/replica"
)

// groupLog is a partition of __consumer_offsets as the coordinator sees it.
type groupLog struct{ partition *replica.Partition }

// groupAppend is a batch of groups' records on its way into the log.
type groupAppend struct {
	partition *replica.Partition
	append    engine.Append
	err       error // it was not queued
}

func (l *groupLog) Append(b []byte, info batch.Info) coordinator.Pending {
	p := &groupAppend{partition: l.partition}
	p.append.Batch, p.append.Info = b, info
	if p.err = l.partition.Admit(allInSync); p.err == nil {
		p.err = l.partition.Enqueue(&p.append)
	}
	return p
}

// allInSync is acks=-1: what a group is told is on every in-sync replica.
const allInSync = -1

func (p *groupAppend) Wait() error {
	if p.err != nil {
		return p.err
	}
	if err := p.partition.Write(&p.append); err != nil {
		return err
	}
	return p.partition.Wait(&p.append, allInSync)
}

func (l *groupLog) Load(ctx context.Context, f func(b []byte) error) error {
	log := l.partition.Log()
	if log == nil {
		return replica.ErrOffline
	}
	var buf []byte
	for at := log.Start(); ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		s, err := log.Read(at, groupLoadBytes, l.partition.HighWatermark(), true)
		if err != nil {
			return err
		}
		if s.Size() == 0 {
			return nil
		}
		if cap(buf) < s.Size() {
			buf = make([]byte, s.Size())
		}
		buf = buf[:s.Size()]
		err = s.ReadInto(buf)
		s.Release()
		if err != nil {
			return err
		}
		if at, err = eachBatch(buf, at, f); err != nil {
			return err
		}
	}
}

// eachBatch hands out the whole batches of a range and returns the offset
// behind the last one.
func eachBatch(b []byte, at engine.Offset, f func(b []byte) error) (engine.Offset, error) {
	for first := true; len(b) > 0; first = false {
		size, err := batch.Split(b)
		if err != nil || size > len(b) {
			if first {
				return at, fmt.Errorf("no whole batch at offset %d: %w", at, err)
			}
			return at, nil // cut off by the size of the read; the next one begins there
		}
		info, err := batch.CheckStored(b[:size])
		if err != nil {
			return at, fmt.Errorf("batch at offset %d: %w", at, err)
		}
		if err := f(b[:size]); err != nil {
			return at, err
		}
		at = engine.Offset(info.BaseOffset + int64(info.LastOffsetDelta) + 1)
		b = b[size:]
	}
	return at, nil
}
