package engine

import (
	"container/heap"
	"log/slog"
	"sync"
	"time"
)

// Background does what must happen some time later and may take long: deleting
// files, which costs half a second a gigabyte here. One goroutine for all logs
// of a Store; it lives only while there is something to wait for.
type Background struct {
	logger *slog.Logger

	mu      sync.Mutex
	tasks   taskHeap
	running bool
	closed  bool
	wake    chan struct{} // cap 1: an earlier task came, or the end
	idle    sync.WaitGroup
}

type task struct {
	due  time.Time
	name string
	do   func() error
}

// NewBackground returns an idle Background. logger gets what went wrong; nil discards it.
func NewBackground(logger *slog.Logger) *Background {
	return &Background{logger: orDiscard(logger), wake: make(chan struct{}, 1)}
}

// After runs do once delay has passed, after everything due before it.
// Nothing runs any more after Close; what deletes files is found again at the
// next start, by the files' names.
func (b *Background) After(delay time.Duration, name string, do func() error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	heap.Push(&b.tasks, task{time.Now().Add(delay), name, do})
	if b.running {
		b.nudge()
		return
	}
	b.running = true
	b.idle.Add(1)
	go b.loop() // owner: b; ends with the last task or Close, which waits for it
}

// Close drops what is not yet due and waits for what is running.
func (b *Background) Close() {
	b.mu.Lock()
	b.closed, b.tasks = true, nil
	b.nudge()
	b.mu.Unlock()
	b.idle.Wait()
}

func (b *Background) nudge() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

func (b *Background) loop() {
	defer b.idle.Done()
	for {
		b.mu.Lock()
		if len(b.tasks) == 0 {
			b.running = false
			b.mu.Unlock()
			return
		}
		wait := time.Until(b.tasks[0].due)
		if wait > 0 {
			b.mu.Unlock()
			timer := time.NewTimer(wait)
			select {
			case <-timer.C:
			case <-b.wake:
				timer.Stop()
			}
			continue
		}
		t := heap.Pop(&b.tasks).(task)
		b.mu.Unlock()
		if err := t.do(); err != nil {
			b.logger.Warn("background work failed", "work", t.name, "error", err)
		}
	}
}

type taskHeap []task

func (h taskHeap) Len() int           { return len(h) }
func (h taskHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h taskHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *taskHeap) Push(x any)        { *h = append(*h, x.(task)) }
func (h *taskHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	*h = old[:len(old)-1]
	return t
}

func orDiscard(l *slog.Logger) *slog.Logger {
	if l == nil {
		return slog.New(slog.DiscardHandler)
	}
	return l
}
