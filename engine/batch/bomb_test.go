package batch

import (
	"bytes"
	"encoding/binary"
	"math"
	"runtime"
	"testing"

	"github.com/klauspost/compress/s2"
)

// bombs are payloads of 150 KB to 4 MB that would expand to 2 GiB or more.
func bombs() map[string]struct {
	codec   Codec
	payload []byte
} {
	member := appendGzip(nil, make([]byte, 1<<20), 9)
	gz := bytes.Repeat(member, 2048)

	// A frame of 32,768 blocks, each one byte repeated 131,072 times; it does not say its size.
	zs := []byte{0x28, 0xb5, 0x2f, 0xfd, 0, 0x58} // magic, descriptor, window
	for i := range 32768 {
		word := uint32(zstdBlock)<<3 | 1<<1 // size, "repeat", not the last
		if i == 32767 {
			word |= 1
		}
		zs = append(zs, byte(word), byte(word>>8), byte(word>>16), 0)
	}

	frame := appendLZ4(nil, make([]byte, 64<<10), 0, lz4Descriptor)
	block := frame[7 : len(frame)-4]
	lz := append(bytes.Clone(frame[:7]), bytes.Repeat(block, 32768)...)

	sn := bytes.Clone(xerialHeader)
	zeros := s2.EncodeSnappy(nil, make([]byte, 1<<20))
	for range 64 {
		sn = append(binary.BigEndian.AppendUint32(sn, uint32(len(zeros))), zeros...)
	}
	sn = append(sn, sn...)

	lie := []byte{0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0} // says 4 GiB, has none
	return map[string]struct {
		codec   Codec
		payload []byte
	}{
		"gzip": {Gzip, gz}, "zstd": {Zstd, zs}, "lz4": {LZ4, lz}, "snappy": {Snappy, sn},
		"zstd that lies about its size":   {Zstd, lie},
		"snappy that lies about its size": {Snappy, []byte{0xff, 0xff, 0xff, 0xff, 0x0f, 0}},
	}
}

// Claim: a small payload that expands to gigabytes is refused as too large, and memory stays within the limit.
// Method: bombs for every codec, in a batch and in a message set, under a limit of 4 MiB; all bytes allocated meanwhile are counted.
func TestBombsAreRefusedAndMemoryStaysFlat(t *testing.T) {
	const limit = 4 << 20
	for name, c := range bombs() {
		b := build(None, nil)
		b[atAttributes+1] = byte(c.codec)
		b = append(b, c.payload...)
		binary.BigEndian.PutUint32(b[atCount:], 1)
		b = seal(b)
		runs := map[string]func() error{
			"checked": func() error { _, err := Check(b, &Rules{MaxExpanded: limit}); return err },
		}
		if c.codec != Zstd {
			set := appendMessage(nil, &message{magic: 1, attributes: byte(c.codec), value: c.payload})
			runs["converted"] = func() error { _, err := UpConvert(set, limit); return err }
		}
		for how, run := range runs {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			err := run()
			runtime.ReadMemStats(&after)
			requireReason(t, err, TooLarge)
			// All buffers on the way up count here, though at most two of them live at a time: doubling makes twice the
			// last, zstd's retries with a four times larger one a little more; the decoders themselves have about 2 MiB.
			if got := after.TotalAlloc - before.TotalAlloc; got > 6*limit {
				t.Errorf("%s, %s: %d bytes allocated under a limit of %d", name, how, got, limit)
			}
		}
	}
}

// Claim: the default limit holds too, and the number of expanding calls at a time is bounded.
// Method: the zstd bomb under default rules; then more goroutines than slots, watching the slots.
func TestExpandingCallsAreBounded(t *testing.T) {
	if math.MaxInt32 < DefaultMaxExpanded || cap(slots) != maxExpanding || maxExpanding > maxSlots {
		t.Fatal("the limits do not fit together")
	}
	held := make([]*scratch, 0, maxExpanding)
	for range maxExpanding {
		held = append(held, borrow())
	}
	done := make(chan struct{})
	go func() { // ends when a slot is free; the test waits for it
		defer close(done)
		if _, err := Check(build(Gzip, someRecords(3, 10)), &Rules{}); err != nil {
			t.Error(err)
		}
	}()
	runtime.Gosched()
	select {
	case <-done:
		t.Error("a call expanded without a slot")
	default:
	}
	for _, s := range held {
		s.giveBack()
	}
	<-done
}
