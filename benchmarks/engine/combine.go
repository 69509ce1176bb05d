package main

import "sync"

// combiner gives a library that has no group commit of its own what a good program around it would have: the appends that come while one
// is under way go together in the next call. raft does this to its log stores, and etcd's to its wal. With one writer it is not in the way.
type combiner struct {
	alone bool
	flush func(records [][]byte) error // appends them with one call, as safe as they shall be; one at a time

	mu   sync.Mutex
	open *group

	flushing sync.Mutex
}

type group struct {
	records [][]byte
	done    chan struct{}
	err     error
}

// append returns when the records are appended: by the goroutine that opened the group.
func (c *combiner) append(_ int, records [][]byte) error {
	if c.alone {
		return c.flush(records)
	}
	c.mu.Lock()
	g := c.open
	first := g == nil
	if first {
		g = &group{done: make(chan struct{})}
		c.open = g
	}
	g.records = append(g.records, records...)
	c.mu.Unlock()
	if !first {
		<-g.done
		return g.err
	}
	c.flushing.Lock()
	c.mu.Lock()
	c.open = nil
	c.mu.Unlock()
	g.err = c.flush(g.records)
	c.flushing.Unlock()
	close(g.done)
	return g.err
}
