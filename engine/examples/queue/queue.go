// Package queue is a durable queue on one engine.Log: many producers, many
// consumers, each message to one of them, again if it was not done.
//
// Put returns when the messages survive a loss of power. A message is delivered at
// least once: it is done when it was acknowledged, and comes again after Nack, and
// after a crash. Acknowledgements are noted by moving the log's start, every
// Options.AckEvery of them, so that many messages that were done before a crash, and those that were done before
// an older one was, come again as well. What is done is deleted, segment by segment.
package queue

import (
	"context"
	"errors"
	"sync"
	"time"

	"millrace/engine"
)

// Options of a queue; zero values are usable.
type Options struct {
	AckEvery     int               // acknowledgements between two durable notes of them; 0: 1000
	SegmentBytes int64             // size of a file; space of what is done comes back in these steps; 0: 16 MiB
	Log          engine.LogOptions // its Config is the queue's business
}

// Message is one message on its way to a consumer, who calls Ack or Nack once.
type Message struct {
	Offset engine.Offset // grows from message to message
	Value  []byte
	queue  *Queue
}

// Queue is open for use by any number of goroutines.
type Queue struct {
	log      *engine.Log
	ackEvery int
	stop     context.CancelFunc
	feeding  sync.WaitGroup
	ready    chan Message  // from the tail; closed at its end
	again    chan struct{} // cap 1: there is something in mu.again

	mu struct {
		sync.Mutex
		done    engine.Offset          // all messages below it are done
		acked   map[engine.Offset]bool // done, at or above it
		again   []engine.Offset        // to be delivered again
		unnoted int                    // acknowledgements since the last note
		failed  error                  // what ended the tail
	}
}

// Open opens the queue in a folder, or makes it. Messages that were not done come again.
func Open(dir string, o Options) (*Queue, error) {
	c := engine.DefaultConfig()
	c.Delete, c.RetentionAge, c.DeleteDelay = false, -1, 0 // messages go when they are done, and only then
	c.SegmentBytes, c.IndexBytes = 16<<20, 64<<10
	if o.SegmentBytes > 0 {
		c.SegmentBytes = o.SegmentBytes
	}
	if o.AckEvery == 0 {
		o.AckEvery = 1000
	}
	o.Log.Config = c
	log, err := engine.OpenLog(dir, o.Log)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	q := &Queue{log: log, ackEvery: o.AckEvery, stop: stop, ready: make(chan Message), again: make(chan struct{}, 1)}
	q.mu.acked, q.mu.done = map[engine.Offset]bool{}, log.Start()
	q.feeding.Go(func() { q.feed(ctx, log.Start()) }) // ends with ctx: Close
	return q, nil
}

// feed hands every message out once.
func (q *Queue) feed(ctx context.Context, from engine.Offset) {
	defer close(q.ready)
	for r, err := range q.log.Tail(ctx, from) {
		if err != nil {
			q.mu.Lock()
			q.mu.failed = err
			q.mu.Unlock()
			return
		}
		select {
		case q.ready <- Message{engine.Offset(r.Offset), r.Clone().Value, q}:
		case <-ctx.Done():
		}
	}
}

// Put appends messages, in this order and with no others between them.
func (q *Queue) Put(values ...[]byte) error {
	records := make([]engine.Record, len(values))
	for i, v := range values {
		records[i].Value = v
	}
	_, err := q.log.AppendRecords(records...)
	return err
}

// Get returns a message that nobody else has, and waits for one.
func (q *Queue) Get(ctx context.Context) (Message, error) {
	for {
		if o, ok := q.takeAgain(); ok {
			r, err := q.log.Get(o)
			return Message{o, r.Value, q}, err
		}
		select {
		case m, ok := <-q.ready:
			if ok {
				return m, nil
			}
			q.mu.Lock()
			defer q.mu.Unlock()
			return Message{}, errors.Join(engine.ErrClosed, q.mu.failed)
		case <-q.again:
		case <-ctx.Done():
			return Message{}, ctx.Err()
		}
	}
}

func (q *Queue) takeAgain() (engine.Offset, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.mu.again) == 0 {
		return 0, false
	}
	o := q.mu.again[0]
	if q.mu.again = q.mu.again[1:]; len(q.mu.again) > 0 {
		q.nudge() // another consumer may wait
	}
	return o, true
}

func (q *Queue) nudge() {
	select {
	case q.again <- struct{}{}:
	default:
	}
}

// Nack gives a message back, to be delivered again before new ones.
func (m Message) Nack() {
	m.queue.mu.Lock()
	defer m.queue.mu.Unlock()
	m.queue.mu.again = append(m.queue.mu.again, m.Offset)
	m.queue.nudge()
}

// Ack says that a message is done. An error means that this could not be noted on disk: some messages will come
// again after a restart.
func (m Message) Ack() error {
	q := m.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mu.acked[m.Offset] = true
	for q.mu.acked[q.mu.done] {
		delete(q.mu.acked, q.mu.done)
		q.mu.done++
	}
	if q.mu.unnoted++; q.mu.unnoted < q.ackEvery {
		return nil
	}
	return q.note()
}

// note makes the acknowledgements durable and deletes whole segments of what is done. Caller holds mu.
func (q *Queue) note() error {
	q.mu.unnoted = 0
	if err := q.log.SetStart(q.mu.done); err != nil {
		return err
	}
	_, err := q.log.Retain(time.Now())
	return err
}

// Len is how many messages are not done.
func (q *Queue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return int(q.log.Metrics().Readable-q.mu.done) - len(q.mu.acked)
}

// Close notes the acknowledgements and closes the log. Consumers that wait get engine.ErrClosed.
func (q *Queue) Close() error {
	q.stop()
	q.feeding.Wait()
	q.mu.Lock()
	defer q.mu.Unlock()
	return errors.Join(q.note(), q.log.Close())
}
