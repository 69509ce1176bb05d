package broker

import (
	"log/slog"

	"millrace/engine/batch"
	"millrace/wire"
)

// Consumers of before Fetch v10 (Kafka 2.1) cannot read every batch: zstd is
// unknown to them, and before v4 (0.11) so is format 2. Their records are
// looked at, and converted if need be, in memory; copiedFetch bounds how much.

// lentBytes is memory borrowed for one answer.
type lentBytes struct {
	bufs    [][]byte
	charged int64
}

// take borrows n bytes; nil if the broker stops.
func (l *lentBytes) take(b *Broker, n int) []byte {
	_, size := classOf(n)
	if !b.budget.reserve(int64(size), false, b.stopping) {
		return nil
	}
	buf := b.buffers.get(n)
	l.bufs = append(l.bufs, buf)
	l.charged += int64(size)
	return buf[:n]
}

func (l *lentBytes) giveBack(b *Broker) {
	for i, buf := range l.bufs {
		b.buffers.put(buf)
		l.bufs[i] = nil
	}
	b.budget.release(l.charged)
	l.bufs, l.charged = l.bufs[:0], 0
}

// copyRecords replaces the ranges of all results by bytes that the client can
// read, or by an error.
func (c *conn) copyRecords() {
	f := &c.fetch
	for i := range f.results {
		r := &f.results[i]
		if r.Payload == nil {
			continue
		}
		records, err := c.readable(&f.items[i], r)
		r.Payload.Release()
		r.Payload, r.Bytes = nil, records
		if err != nil {
			c.failFetch(&f.items[i], r, err)
		}
	}
}

func (c *conn) readable(item *fetchItem, r *wire.FetchPartitionResult) ([]byte, error) {
	version := c.rc.header.Version
	records := c.fetch.lent.take(c.b, r.Payload.Size())
	if records == nil {
		return nil, errStopped
	}
	if err := r.Payload.ReadInto(records); err != nil {
		return nil, err
	}
	whole, newest, err := survey(records)
	if err != nil {
		return nil, err
	}
	target := magicFor(version)
	if newest > target {
		if records, err = batch.DownConvert(nil, records[:whole], target, item.ask.Offset); err != nil {
			return nil, err
		}
		c.b.limits.old.log(c.log, slog.LevelDebug, "converting records for an old consumer", "fetch_version", version, "client_id", c.rc.header.ClientID)
	}
	if version < 3 { // F039: cut at the limit, the client drops the torn end
		records = records[:min(len(records), int(max(item.ask.MaxBytes, 0)))]
	}
	return records, nil
}

// magicFor is the newest format that a Fetch version can carry.
func magicFor(version int16) int8 {
	switch {
	case version < 2:
		return 0
	case version < 4:
		return 1
	}
	return 2
}

// survey walks the entries: how many bytes are whole entries, the newest format
// among them, and errZstdReader if one needs zstd.
func survey(records []byte) (whole int, newest int8, err error) {
	for whole < len(records) {
		rest := records[whole:]
		if len(rest) > minimalEntry {
			newest = max(newest, batch.View(rest).Magic())
		}
		if len(rest) >= batch.HeaderSize && batch.View(rest).Magic() == 2 && batch.View(rest).Codec() == batch.Zstd {
			return whole, newest, errZstdReader
		}
		size, err := batch.Split(rest)
		if err != nil {
			break // torn by the limit
		}
		whole += size
	}
	return whole, newest, nil
}
