package ring

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(child())
	}
	goleak.VerifyTestMain(m)
}

// ways are the two backends, each waited for in both ways: what one does, all must do.
func ways(t *testing.T, claim func(t *testing.T, do func([]Op), b Backend)) {
	for _, name := range []string{"ring", "pool"} {
		for _, wait := range []string{"do", "park"} {
			t.Run(name+"/"+wait, func(t *testing.T) {
				var b Backend = NewPool()
				if name == "ring" {
					b = newRing(t)
				}
				defer b.Close()
				if do := b.Do; wait == "do" {
					claim(t, do, b)
				} else {
					claim(t, b.Park, b)
				}
			})
		}
	}
}

func newRing(t testing.TB) *Ring {
	t.Helper()
	r, err := NewRing()
	if err != nil {
		var refused *SetupError
		if !errors.As(err, &refused) {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return r
}

// file makes a file beside the source, where a real disk is.
func file(t testing.TB, name string, data []byte) *os.File {
	t.Helper()
	dir, err := os.MkdirTemp(".", ".test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if _, err := f.Write(data); err != nil {
		t.Fatal(err)
	}
	return f
}

func op(k Kind, f *os.File, off int64, buf []byte) Op {
	return Op{Kind: k, FD: int(f.Fd()), Name: f.Name(), Off: off, Buf: buf}
}

func noise(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	r.Read(b)
	return b
}

func check(t *testing.T, ops []Op) {
	t.Helper()
	for i := range ops {
		if ops[i].Err != nil {
			t.Fatalf("operation %d: %v", i, ops[i].Err)
		}
	}
}

// Claim: what a batch wrote, a batch reads, whatever its size: also more operations than a queue holds.
func TestBatchesReadWhatBatchesWrote(t *testing.T) {
	ways(t, func(t *testing.T, do func([]Op), _ Backend) {
		f := file(t, "f", nil)
		for _, n := range []int{0, 1, 2, queueEntries, queueEntries + 1, 3*queueEntries + 7} {
			data := noise(n * 1000)
			var ops []Op
			for i := range n {
				ops = append(ops, op(Write, f, int64(i*1000), data[i*1000:(i+1)*1000]))
			}
			do(ops)
			check(t, ops)
			syncs := []Op{op(Sync, f, 0, nil), op(Sync, f, 0, nil)}
			do(syncs)
			check(t, syncs)
			got := make([]byte, len(data))
			for i := range ops {
				ops[i] = op(Read, f, int64(i*1000), got[i*1000:(i+1)*1000])
			}
			ops = append(ops, Op{Kind: WillNeed, FD: int(f.Fd()), Name: f.Name(), Len: int64(len(data))})
			do(ops)
			check(t, ops)
			for i := range n {
				if ops[i].N != 1000 {
					t.Fatalf("read %d of 1000 bytes", ops[i].N)
				}
			}
			if !bytes.Equal(got, data) {
				t.Fatalf("%d operations: other bytes came back", n)
			}
		}
	})
}

// Claim: a file that ends early gives what there is and io.EOF; one that ends before the range gives nothing.
func TestShortFilesEndWithEOF(t *testing.T) {
	ways(t, func(t *testing.T, do func([]Op), _ Backend) {
		data := noise(10_000)
		f := file(t, "f", data)
		ops := []Op{op(Read, f, 9_000, make([]byte, 5_000)), op(Read, f, 20_000, make([]byte, 10)), op(Read, f, 0, make([]byte, 10_000)), op(Read, f, 0, nil)}
		do(ops)
		for i, want := range []struct {
			n   int
			err error
		}{{1_000, io.EOF}, {0, io.EOF}, {10_000, nil}, {0, nil}} {
			if ops[i].N != want.n || ops[i].Err != want.err {
				t.Errorf("operation %d: %d, %v; want %d, %v", i, ops[i].N, ops[i].Err, want.n, want.err)
			}
		}
		if !bytes.Equal(ops[0].Buf[:1000], data[9_000:]) {
			t.Error("the short read has other bytes")
		}
	})
}

// Claim: each operation has its own error, with its name and its file's, and the others of the batch are carried out.
func TestEveryFailureNamesItsOperationAndFile(t *testing.T) {
	ways(t, func(t *testing.T, do func([]Op), _ Backend) {
		f := file(t, "good", noise(100))
		readOnly, err := os.Open(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		defer readOnly.Close()
		gone := Op{FD: 1 << 20, Name: "gone"} // above any limit: never a descriptor
		ops := []Op{
			op(Write, readOnly, 0, noise(10)),
			{Kind: Sync, FD: gone.FD, Name: "gone"},
			{Kind: Read, FD: gone.FD, Name: "gone", Buf: make([]byte, 1)},
			{Kind: WillNeed, FD: gone.FD, Name: "gone", Len: 1},
			op(Write, f, 0, noise(10)),
			op(Read, f, -1, make([]byte, 1)),
			op(0, f, 0, nil),
			{Kind: Sync, FD: -1, Name: "never opened"},
		}
		do(ops)
		for i, want := range []struct {
			op, name string
			err      error
		}{
			{"write", f.Name(), unix.EBADF}, {"fdatasync", "gone", unix.EBADF}, {"read", "gone", unix.EBADF}, {"fadvise", "gone", unix.EBADF}, {},
			{"read", f.Name(), unix.EINVAL}, {"unknown operation", f.Name(), unix.EINVAL}, {"fdatasync", "never opened", unix.EINVAL},
		} {
			var e *fs.PathError
			switch {
			case want.err == nil:
				if ops[i].Err != nil || ops[i].N != 10 {
					t.Errorf("operation %d, which could be done: %d, %v", i, ops[i].N, ops[i].Err)
				}
			case !errors.As(ops[i].Err, &e) || e.Op != want.op || e.Path != want.name || e.Err != want.err:
				t.Errorf("operation %d: %v; want %s %s: %v", i, ops[i].Err, want.op, want.name, want.err)
			}
		}
	})
}

// Claim: many goroutines may use one backend at once, more than it has queues, each sees its own results, and no descriptor above the bound is taken.
func TestManyBatchesAtOnce(t *testing.T) {
	ways(t, func(t *testing.T, do func([]Op), b Backend) {
		const each = 4096
		data := noise(64 * each)
		f := file(t, "f", data)
		rounds := 50
		if testing.Short() {
			rounds = 10
		}
		var wg sync.WaitGroup
		for g := range 3 * MaxRings {
			wg.Go(func() { // ends after its rounds
				for round := range rounds {
					var ops []Op
					for i := range 5 {
						at := (g + round*7 + i*13) % 64 * each
						ops = append(ops, op(Read, f, int64(at), make([]byte, each)))
					}
					do(ops)
					for i := range ops {
						if o := &ops[i]; o.Err != nil || !bytes.Equal(o.Buf, data[o.Off:o.Off+each]) {
							t.Errorf("goroutine %d: %d bytes, %v, or other bytes", g, o.N, o.Err)
							return
						}
					}
				}
			})
		}
		wg.Wait()
		if r, ok := b.(*Ring); ok && r.Rings() > MaxRings {
			t.Errorf("%d rings, the bound is %d", r.Rings(), MaxRings)
		}
	})
}

// Claim: Close waits for what is under way, which ends with its right result, gives every descriptor back, and what comes later works still.
func TestCloseWithOperationsUnderWay(t *testing.T) {
	ways(t, func(t *testing.T, do func([]Op), b Backend) {
		data := noise(1 << 20)
		f := file(t, "f", data)
		var wg sync.WaitGroup
		begun := make(chan struct{}, 8)
		stop := make(chan struct{})
		for range 8 {
			wg.Go(func() { // ends when stop is closed
				for first := true; ; first = false {
					ops := []Op{op(Read, f, 0, make([]byte, len(data))), op(Sync, f, 0, nil), op(Write, f, 1<<20, data[:4096])}
					do(ops)
					if ops[0].Err != nil || ops[1].Err != nil || ops[2].Err != nil || !bytes.Equal(ops[0].Buf, data) {
						t.Errorf("%v, %v, %v, or other bytes", ops[0].Err, ops[1].Err, ops[2].Err)
					}
					if first {
						begun <- struct{}{}
					}
					select {
					case <-stop:
						return
					default:
					}
				}
			})
		}
		for range 8 {
			<-begun
		}
		b.Close()
		if r, ok := b.(*Ring); ok && r.Rings() != 0 {
			t.Errorf("%d rings are open after Close", r.Rings())
		}
		close(stop)
		wg.Wait()
		b.Close() // once more is fine
	})
}

// Claim: while a parked batch waits, its processor runs others: with one processor, a goroutine runs on while another waits for an operation that does not end.
// Method: a read of a pipe that nobody writes to: neither way gives one to the kernel for a file, so it stands for a disk that does not answer.
func TestAParkedBatchHoldsNobodyUp(t *testing.T) {
	r := newRing(t)
	defer r.Close()
	q := r.take()
	defer r.give(q)
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(p[0])
	done := make(chan Op)
	go func() { // ends when the pipe is written to
		// -1 as offset, which Op refuses, is "the file's own position" to io_uring: a pipe has no other.
		ops := []Op{{Kind: Read, FD: p[0], Name: "pipe", Buf: make([]byte, 4)}}
		q.push(&ops[0], 0, sqeAsync)
		q.sqes[(*q.sqTail-1)&q.sqMask].off = ^uint64(0)
		q.submit(1)
		left := 1
		_ = q.raw.Read(func(uintptr) bool { left -= q.reap(ops); return left == 0 })
		done <- ops[0]
	}()
	select {
	case o := <-done:
		t.Fatalf("the read of an empty pipe ended: %d, %v", o.N, o.Err)
	case <-time.After(50 * time.Millisecond): // not proof of anything: time for a mistake to show
	}
	if _, err := unix.Write(p[1], []byte("here")); err != nil {
		t.Fatal(err)
	}
	if o := <-done; o.Err != nil || string(o.Buf) != "here" {
		t.Errorf("%q, %v", o.Buf, o.Err)
	}
	unix.Close(p[1])
}

// Claim: what the kernel takes part of, interrupts, cancels or has no resources for is finished by plain calls, with the right result.
// Method: the kernel's answers, made up.
func TestUnfinishedOperationsAreFinished(t *testing.T) {
	data := noise(1000)
	f := file(t, "f", data)
	for _, res := range []int32{-int32(unix.EINTR), -int32(unix.EAGAIN), -int32(unix.ECANCELED), 1, 999, 1000} {
		o := op(Read, f, 0, make([]byte, 1000))
		copy(o.Buf, data[:max(0, res)])
		o.ended(res)
		if o.Err != nil || o.N != 1000 || !bytes.Equal(o.Buf, data) {
			t.Errorf("read after %d: %d, %v", res, o.N, o.Err)
		}
		o = op(Write, f, 0, data)
		o.ended(res)
		if o.Err != nil || o.N != 1000 {
			t.Errorf("write after %d: %d, %v", res, o.N, o.Err)
		}
	}
	o := op(Read, f, 0, make([]byte, 2000))
	o.ended(1000)
	if o.Err != io.EOF || o.N != 1000 {
		t.Errorf("read at the end: %d, %v", o.N, o.Err)
	}
	o = op(Sync, f, 0, nil)
	o.ended(-int32(unix.EIO))
	if !errors.Is(o.Err, unix.EIO) {
		t.Errorf("a failed sync: %v", o.Err)
	}
}

// Claim: when the kernel refuses io_uring_enter, every operation is carried out nevertheless and the queue is not used again.
// Method: a queue whose descriptor is no ring.
func TestAQueueThatFailsIsFinishedByPlainCalls(t *testing.T) {
	for name, wait := range map[string]func(*queue, []Op){"do": (*queue).wait, "park": (*queue).park} {
		t.Run(name, func(t *testing.T) {
			r := newRing(t)
			defer r.Close()
			q := r.take()
			real := q.fd
			f := file(t, "f", nil)
			q.fd = int(f.Fd())
			data := noise(1000)
			ops := []Op{op(Write, f, 0, data), op(Sync, f, 0, nil), {Kind: Sync, FD: 1 << 20, Name: "gone"}}
			wait(q, ops)
			if ops[0].Err != nil || ops[0].N != 1000 || ops[1].Err != nil || !errors.Is(ops[2].Err, unix.EBADF) {
				t.Errorf("%v, %v, %v", ops[0].Err, ops[1].Err, ops[2].Err)
			}
			if !q.broken {
				t.Error("the queue would be used again")
			}
			q.fd = real
			r.give(q)
			if r.Rings() != 0 {
				t.Errorf("%d rings are kept", r.Rings())
			}
		})
	}
}

func BenchmarkDo(b *testing.B) {
	f := file(b, "f", noise(4096))
	r := newRing(b)
	defer r.Close()
	for name, do := range map[string]func([]Op){"ring": r.Do, "park": r.Park, "pool": NewPool().Do} {
		for _, n := range []int{1, 8} {
			b.Run(fmt.Sprintf("%s/ops=%d", name, n), func(b *testing.B) {
				ops := make([]Op, n)
				for i := range ops {
					ops[i] = op(Read, f, 0, make([]byte, 4096))
				}
				b.ReportAllocs()
				for b.Loop() {
					do(ops)
				}
			})
		}
	}
}
