package broker

import (
	"slices"
	"time"

	"millrace/replica"
)

// readOrWait reads what there is; if that is too little, it waits for more, at
// most as long as the client says (F041). The connection's goroutine itself
// waits; a partition whose watermark rises wakes it. The results are then those
// of the last reading.
func (c *conn) readOrWait(l fetchLimits) error {
	f := &c.fetch
	if c.readAll(l) || f.request.MaxWaitMs <= 0 {
		return nil
	}
	if err := c.flush(); err != nil { // answers of earlier requests must not wait too
		return err
	}
	deadline := time.Now().Add(time.Duration(f.request.MaxWaitMs) * time.Millisecond)
	f.release()
	c.await()
	defer c.cancelWaits()
	for {
		// After await, so that nothing can have come unseen in between.
		if c.readAll(l) {
			return nil
		}
		expired, err := c.sleep(deadline)
		if err != nil || expired {
			return err
		}
	}
}

// await puts the connection in the list of each partition that it waits for.
func (c *conn) await() {
	f := &c.fetch
	n := 0
	for i := range f.items {
		if f.items[i].partition != nil {
			n++
		}
	}
	// A request that names partitions many times over waits for no more of
	// them than there are.
	n = min(n, c.b.replicas.Count())
	f.waits = slices.Grow(f.waits[:0], n)[:0]
	c.signal.Drain()
	for i := range f.items {
		if p := f.items[i].partition; p != nil && len(f.waits) < n {
			f.waits = append(f.waits, replica.Wait{})
			p.Await(&f.waits[len(f.waits)-1], c.signal)
		}
	}
}

func (c *conn) cancelWaits() {
	f := &c.fetch
	for i := range f.waits {
		f.waits[i].Cancel()
	}
	f.waits = f.waits[:0]
	c.signal.Drain()
}

// sleep waits for a wake-up or for the deadline. Ranges are not pinned
// meanwhile: retention must not wait for us. Nobody reads the socket, so now
// and then we look whether the client is still there.
func (c *conn) sleep(deadline time.Time) (expired bool, err error) {
	f := &c.fetch
	begun := time.Now()
	defer func() { c.waited += time.Since(begun) }()
	defer c.meter.waits(c.meter.m.clock())
	for {
		left := time.Until(deadline)
		if left <= 0 {
			return true, nil
		}
		f.setTimer(min(left, peekEvery))
		select {
		case <-c.signal.C:
			return false, nil
		case <-c.b.stopping:
			return true, nil // what there is, now
		case <-f.timer.C:
			if left > peekEvery && c.gone() {
				return true, errQuiet
			}
		}
	}
}

func (f *fetchCall) setTimer(d time.Duration) {
	if f.timer == nil {
		f.timer = time.NewTimer(d)
		return
	}
	f.timer.Reset(d)
}
