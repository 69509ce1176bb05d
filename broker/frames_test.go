package broker

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
)

// pieces is a source that gives a stream in pieces of random size, and finds
// nothing there now and then.
type pieces struct {
	stream []byte
	most   int
	random *rand.Rand
}

func (p *pieces) readInto(target func() []byte, idle func()) (int, error) {
	if p.random.IntN(3) == 0 {
		target()
		idle()
	}
	if len(p.stream) == 0 {
		return 0, nil
	}
	room := target()
	n := copy(room, p.stream[:min(len(p.stream), 1+p.random.IntN(p.most))])
	p.stream = p.stream[n:]
	return n, nil
}

func testFrames(s source, limit int) *frames {
	return newFrames(s, &buffers{keep: 64 << 20}, newBudget(256<<20), make(chan struct{}), limit)
}

// Claim: however the bytes of a connection are cut into reads, the same frames
// come out, and no memory stays reserved.
// Method: random frames of all sizes, random reads, compared with what went in.
func TestFramesComeOutAsTheyWentIn(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 1))
		var want [][]byte
		var stream []byte
		for range 40 {
			size := 1 + random.IntN(1<<(3+random.IntN(18)))
			frame := make([]byte, size)
			for i := range frame {
				frame[i] = byte(random.Uint32())
			}
			want = append(want, frame)
			stream = append(binary.BigEndian.AppendUint32(stream, uint32(size)), frame...)
		}
		f := testFrames(&pieces{stream: stream, most: 1 << (3 + random.IntN(18)), random: random}, 1<<20)
		got := 0
		for got < len(want) {
			frame, err := f.next()
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if frame == nil {
				if err := f.fill(); err != nil {
					t.Fatalf("seed %d: after %d frames: %v", seed, got, err)
				}
				continue
			}
			if !bytes.Equal(frame, want[got]) {
				t.Fatalf("seed %d: frame %d differs (%d bytes, want %d)", seed, got, len(frame), len(want[got]))
			}
			got++
		}
		if err := f.fill(); !errors.Is(err, io.EOF) {
			t.Fatalf("seed %d: at the end: %v, want EOF", seed, err)
		}
		f.close()
		if used := f.mem.used.Load(); used != 0 {
			t.Fatalf("seed %d: %d bytes still reserved", seed, used)
		}
	}
}

// Claim: a frame that is announced and does not come holds one small buffer.
// Method: announce 50 MB, send five bytes.
func TestAnnouncedFrameHoldsLittle(t *testing.T) {
	stream := append(binary.BigEndian.AppendUint32(nil, 50<<20), "abcde"...)
	f := testFrames(&pieces{stream: stream, most: 1, random: rand.New(rand.NewPCG(1, 1))}, 100<<20)
	for range len(stream) {
		if err := f.fill(); err != nil {
			t.Fatal(err)
		}
		if frame, err := f.next(); frame != nil || err != nil {
			t.Fatalf("frame %v, error %v", frame, err)
		}
	}
	if used := f.mem.used.Load(); used != 0 || len(f.buf) > baseBuffer {
		t.Errorf("%d bytes reserved and a buffer of %d for %d bytes that came", used, len(f.buf), len(stream))
	}
}

// Claim: reading and parsing frames in steady state allocates nothing.
// Method: a source that repeats one small frame.
func TestFramesAllocateNothing(t *testing.T) {
	frame := append(binary.BigEndian.AppendUint32(nil, 200), make([]byte, 200)...)
	f := testFrames(endless{frame}, 1<<20)
	run := func() {
		for {
			if got, err := f.next(); err != nil {
				t.Fatal(err)
			} else if got == nil {
				break
			}
		}
		if err := f.fill(); err != nil {
			t.Fatal(err)
		}
	}
	run()
	if n := testing.AllocsPerRun(100, run); n != 0 {
		t.Errorf("%v allocations per read, want 0", n)
	}
}

type endless struct{ frame []byte }

func (e endless) readInto(target func() []byte, idle func()) (int, error) {
	target()
	idle() // nothing there at first
	return copy(target(), e.frame), nil
}
