package sweep

import (
	"fmt"
	"hash/crc32"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/engine/batch"
)

// firstTime is the timestamp of the first record that is sent, in ms: all are, so that both brokers hold the same bytes.
const firstTime = 1_700_000_000_000

// recordsOf makes a batch of n small records; magic 2 unless the version of the Produce request is older.
func recordsOf(version int16, n int, opts ...batch.Option) []byte {
	return compressed(version, batch.None, n, opts...)
}

func compressed(version int16, c batch.Codec, n int, opts ...batch.Option) []byte {
	b := batch.NewBuilder(c, batch.DefaultLevel)
	for i := range n {
		if err := b.Add(batch.Record{Timestamp: firstTime + int64(i), Key: fmt.Appendf(nil, "key %d", i), Value: fmt.Appendf(nil, "value %d", i)}); err != nil {
			panic(err)
		}
	}
	whole := b.Bytes(opts...)
	if version >= 3 {
		return whole
	}
	old, err := batch.DownConvert(nil, whole, int8(min(version/2, 1)), 0)
	if err != nil {
		panic(err)
	}
	return old
}

// ptr is a nullable field's value.
func ptr[T any](v T) *T { return &v }

// with makes a request and lets fill set its fields.
func with[T any](make func() T, fill func(r T)) T {
	r := make()
	if fill != nil {
		fill(r)
	}
	return r
}

// ask is a step that sends one request, the same in every round.
func ask[T kmsg.Request](name string, make func() T, fill func(c *moment, r T)) step {
	return step{name: name, build: func(c *moment) kmsg.Request {
		r := make()
		if fill != nil {
			fill(c, r)
		}
		return r
	}}
}

func (p step) since(v int16) step { p.from = v; return p }
func (p step) until(v int16) step { p.to = v; return p }
func (p step) round(n int16) step { p.rounds = n; return p }
func (p step) till(code int16) step {
	return p.when(func(r kmsg.Response) bool { return slices.Contains(codes(r), int64(code)) })
}
func (p step) when(done func(r kmsg.Response) bool) step { p.done = done; return p }
func (p step) within(limit time.Duration) step           { p.limit = limit; return p }
func (p step) settled() step                             { p.settle = true; return p }
func (p step) unanswered() step                          { p.silent = true; return p }
func (p step) over(conn string) step                     { p.on = conn; return p }
func (p step) later() step                               { p.sent = true; return p }
func (p step) then(after func(c *moment, r kmsg.Response)) step {
	p.after = after
	return p
}

// answerTo takes the answer of an earlier step that was sent with later.
func answerTo(name string) step { return step{name: name + ", answered", await: name} }

// strange is an id that no topic has.
var strange = [16]byte{9, 9, 9}

func crc32c(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }
