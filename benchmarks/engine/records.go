package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
)

// A record is 8 bytes that say who wrote it and which of this writer's records in that log it is, then bytes that no library can guess.
const idBytes = 8

var pattern = func() []byte {
	r := rand.NewChaCha8([32]byte{1})
	b := make([]byte, 1<<10)
	r.Read(b)
	return b
}()

// recordMaker makes one writer's records; it owns the memory.
type recordMaker struct {
	writer int
	next   map[int]uint64 // by log: this writer's next record
	batch  [][]byte
}

func newRecordMaker(writer, count, size int) *recordMaker {
	m := &recordMaker{writer: writer, next: map[int]uint64{}, batch: make([][]byte, count)}
	whole := make([]byte, count*size)
	for i := range m.batch {
		m.batch[i] = whole[i*size : (i+1)*size : (i+1)*size]
		copy(m.batch[i], pattern)
	}
	return m
}

// make returns the next batch for a log, in memory that is used again.
func (m *recordMaker) make(log int) [][]byte {
	n := m.next[log]
	for i, r := range m.batch {
		binary.LittleEndian.PutUint64(r, uint64(m.writer)<<40|n+uint64(i))
	}
	m.next[log] = n + uint64(len(m.batch))
	return m.batch
}

// checker holds what comes out of a log against what went in: every record whole, and each writer's in the order written.
type checker struct {
	size  int
	next  map[uint64]uint64
	count int64
}

func newChecker(size int) *checker { return &checker{size: size, next: map[uint64]uint64{}} }

func (c *checker) add(record []byte) error {
	if err := whole(record, c.size); err != nil {
		return fmt.Errorf("record %d: %w", c.count, err)
	}
	id := binary.LittleEndian.Uint64(record)
	writer, n := id>>40, id&(1<<40-1)
	if want := c.next[writer]; n != want {
		return fmt.Errorf("record %d: number %d of writer %d, want %d", c.count, n, writer, want)
	}
	c.next[writer] = n + 1
	c.count++
	return nil
}

func whole(record []byte, size int) error {
	if len(record) != size || !bytes.Equal(record[idBytes:], pattern[idBytes:size]) {
		return fmt.Errorf("%d bytes, want the %d that were written", len(record), size)
	}
	return nil
}
