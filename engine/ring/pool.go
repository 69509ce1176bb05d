//go:build linux && (amd64 || arm64)

package ring

import "sync"

// Backend is a way to carry out batches. All methods may be called at the same time from many goroutines, Close included.
type Backend interface {
	// Do carries out all operations and returns when the last has ended. The caller must not touch ops or their buffers meanwhile.
	Do(ops []Op)

	// Park is Do for what may take long: where the kernel allows it, the goroutine waits and nothing else does.
	Park(ops []Op)

	// String is "ring" or "pool".
	String() string

	// Close waits for the batches that are under way and gives back descriptors and memory. What comes later is carried out by plain calls.
	Close()
}

// poolWorkers is how many operations of all batches a Pool has under way beside those of the callers themselves. More threads in the kernel
// do not make a disk faster: 8 and 32 of them read cold ranges alike.
const poolWorkers = 16

// Pool carries out batches by plain system calls: the operations of a batch side by side, the first by the caller. It has no descriptors and, while
// nothing is to be done, no goroutines.
type Pool struct{ slots chan struct{} }

// NewPool makes a Pool.
func NewPool() *Pool { return &Pool{slots: make(chan struct{}, poolWorkers)} }

func (p *Pool) String() string { return "pool" }

// Close does nothing: every batch waits for its own goroutines.
func (p *Pool) Close() {}

// Park is Do: there is no way to wait for a plain call without a thread.
func (p *Pool) Park(ops []Op) { p.Do(ops) }

// Do implements Backend. What finds no free slot is done by the caller, one after another.
func (p *Pool) Do(ops []Op) {
	var others sync.WaitGroup
	for i := len(ops) - 1; i >= 0; i-- {
		o := &ops[i]
		if !o.begin() || i > 0 && p.start(o, &others) {
			continue
		}
		o.plain()
	}
	others.Wait()
}

func (p *Pool) start(o *Op, others *sync.WaitGroup) bool {
	select {
	case p.slots <- struct{}{}:
	default:
		return false
	}
	others.Go(func() { // ends with its operation; Do waits for it
		o.plain()
		<-p.slots
	})
	return true
}
