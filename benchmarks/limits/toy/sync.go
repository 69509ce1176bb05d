package main

import (
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	journalSize = 64 << 20 // written round and round
	skipAbove   = 256 << 10
	page        = 4096
)

// syncer makes rounds of what all connections wrote: everything gathered while one round ran goes to the disk in the
// next, run by whichever connection finds none running. Batches above skipAbove, and all in files mode, are
// synced where they are.
type syncer struct {
	journal bool
	fd      int
	pos     int64

	mu      sync.Mutex
	cond    *sync.Cond
	running bool
	next    uint64 // the round that is being gathered
	done    uint64 // rounds below this are on disk
	err     error
	buf     []byte
	spare   []byte
	files   map[*partition]bool
}

// wanted is the newest round that a connection's answers need.
type wanted struct{ round uint64 }

func newSyncer(path string, journal bool) (*syncer, error) {
	s := &syncer{journal: journal, next: 1, done: 1, files: map[*partition]bool{}}
	s.cond = sync.NewCond(&s.mu)
	if !journal {
		return s, nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	zero := make([]byte, 1<<20)
	for at := int64(0); at < journalSize; at += int64(len(zero)) {
		if _, err := f.WriteAt(zero, at); err != nil {
			return nil, err
		}
	}
	if err := f.Sync(); err != nil {
		return nil, err
	}
	f.Close()
	if s.fd, err = unix.Open(path, unix.O_WRONLY|unix.O_DIRECT|unix.O_DSYNC, 0); err != nil {
		return nil, err
	}
	s.buf, s.spare = aligned(8<<20), aligned(8<<20)
	return s, nil
}

// aligned returns an empty buffer with page-aligned memory of n bytes behind it.
func aligned(n int) []byte {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		panic(err)
	}
	return b[:0]
}

func (s *syncer) add(w *wanted, p *partition, b []byte) {
	s.mu.Lock()
	if s.journal && len(b) <= skipAbove && len(s.buf)+len(b)+page <= cap(s.buf) {
		s.buf = append(s.buf, b...)
	} else {
		s.files[p] = true
	}
	w.round = s.next
	s.mu.Unlock()
}

func (s *syncer) wait(w *wanted) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.done <= w.round && s.err == nil {
		if s.running {
			s.cond.Wait()
			continue
		}
		s.run()
	}
	return s.err
}

// run ends one round; called and returning with mu held.
func (s *syncer) run() {
	s.running = true
	buf, files, round := s.buf, s.files, s.next
	s.buf, s.spare, s.files = s.spare[:0], nil, map[*partition]bool{}
	s.next++
	s.mu.Unlock()
	err := s.write(buf)
	for p := range files {
		err = errors.Join(err, p.sync())
	}
	s.mu.Lock()
	s.spare, s.done, s.running = buf, round+1, false
	if err != nil {
		s.err = err
	}
	s.cond.Broadcast()
}

func (s *syncer) write(buf []byte) error {
	if len(buf) == 0 {
		return nil
	}
	n := (len(buf) + page - 1) / page * page
	if s.pos+int64(n) > journalSize {
		s.pos = 0
	}
	_, err := unix.Pwrite(s.fd, buf[:n], s.pos)
	s.pos += int64(n)
	return err
}
