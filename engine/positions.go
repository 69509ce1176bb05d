package engine

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"unicode"

	"millrace/engine/checkpoint"
	"millrace/engine/vfs"
)

// Positions are named offsets in one small file: how far each consumer of a log has
// read, or up to where a snapshot of its state goes. The file is text, may lie in
// the log's own folder, and is replaced as a whole, so a crash leaves the old
// positions or the new ones.
//
// All methods may be called from any goroutine. One process at a time may have the
// file; a log's lock guards a file that lies in its folder.
type Positions struct {
	fs   vfs.FS
	path string

	mu struct {
		sync.Mutex // held across the write
		offsets    checkpoint.Offsets
	}
}

// OpenPositions reads the file; one that is not there yet has no positions. fs nil
// is the operating system. An error names the line that is not a position.
func OpenPositions(fs vfs.FS, path string) (*Positions, error) {
	if fs == nil {
		fs = vfs.OS()
	}
	p := &Positions{fs: fs, path: path}
	var err error
	if p.mu.offsets, err = checkpoint.ReadOffsets(fs, path); err != nil {
		return nil, fmt.Errorf("open positions: %w", err)
	}
	return p, nil
}

// Get returns a position; ok is false if there is none of that name.
func (p *Positions) Get(name string) (o Offset, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, ok := p.mu.offsets[checkpoint.TopicPartition{Topic: name}]
	return Offset(n), ok
}

// Set notes a position and returns when it survives a loss of power: two syncs, so
// it is for every few thousand records rather than for each. It should come after
// what was done with the records below it is safe: after a crash the records from
// it on are met again. A name has no blanks; an offset below 0 removes it. After
// an error the file has the old position or the new one, and Get the old one.
func (p *Positions) Set(name string, o Offset) error {
	if name == "" || strings.ContainsFunc(name, unicode.IsSpace) {
		return fmt.Errorf("engine: %q is no name of a position: it needs a character and may have no blank", name)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	next := maps.Clone(p.mu.offsets)
	key := checkpoint.TopicPartition{Topic: name}
	if next[key] = int64(o); o < 0 {
		delete(next, key)
	}
	if err := next.Write(p.fs, p.path); err != nil {
		return fmt.Errorf("set position %s: %w", name, err)
	}
	p.mu.offsets = next
	return nil
}
