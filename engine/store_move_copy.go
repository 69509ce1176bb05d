package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"

	"millrace/engine/batch"
	"millrace/engine/checkpoint"
	"millrace/engine/producers"
	"millrace/engine/vfs"
)

// copier copies a log into a folder of another data directory, segment by segment
// with new indexes, and follows it: appends, rolls, retention, truncation. It works on
// one goroutine, without the log's lock until the last few bytes (Store.swap).
//
// A cut of the log makes bytes invalid that were copied, or are being copied right
// now. The log notes the lowest offset once the cut is over; the copier takes the note
// before it looks at the list of segments, so whatever it read while the cut went on
// is dropped by its next step.
type copier struct {
	log    *Log
	folder *folder
	list   []*segment // of the log, as last looked at
	parts  []*part    // their copies, ascending
	buf    []byte

	cut   atomic.Int64 // lowest offset that the log was cut at since it was last looked at; noLimit: none
	bytes atomic.Int64 // copied
	end   atomic.Int64 // offset after the last batch copied

	names   bool                    // names in the folder are not synced yet
	history []checkpoint.EpochStart // as last copied
	copied  bool                    // history is
	again   bool                    // after a cut a snapshot may have another content under its name
}

// part is the copy of one segment.
type part struct {
	from     *segment
	source   vfs.File // of our own: a closed segment's file is not kept open for us
	to       *segment
	end      Offset // after its last batch
	unsynced int64  // bytes written since the last sync
	sealed   bool   // whole, synced, and closed
}

func newCopier(l *Log, f *folder) *copier {
	c := &copier{log: l, folder: f, buf: make([]byte, moveChunk)}
	c.cut.Store(noLimit)
	c.end.Store(int64((*l.segments.Load())[0].base))
	return c
}

// noteCut tells the copier, if there is one, that everything at or above o was taken
// back. Caller holds mu, and has ended the cut.
func (l *Log) noteCut(o Offset) {
	if c := l.mu.copier; c != nil && int64(o) < c.cut.Load() {
		c.cut.Store(int64(o)) // raised by the copier only, which loses nothing by the lower one
	}
}

// lag is how many bytes of the log are not copied.
func (c *copier) lag() int64 { return c.log.Size() - c.bytes.Load() }

// step is advance for those who do not hold the log's lock. more says that there is
// more to copy already.
func (c *copier) step(most int64) (n int64, more bool, err error) {
	if n, err = c.advance(most); err == nil {
		return n, n >= most, nil
	}
	// Truncation or retention may have taken away what was being read. Once they are
	// over, either the note or the list says so.
	c.log.mu.Lock()
	overtaken := c.cut.Load() != noLimit || !slices.Equal(c.list, *c.log.segments.Load())
	c.log.mu.Unlock()
	if overtaken {
		return n, true, nil
	}
	return n, false, err
}

// advance copies about most bytes, from the front.
func (c *copier) advance(most int64) (n int64, err error) {
	list, err := c.follow()
	if err != nil {
		return 0, err
	}
	for i, s := range list {
		if i == len(c.parts) {
			if err := c.addPart(s); err != nil {
				return n, err
			}
		}
		p := c.parts[i]
		if p.sealed {
			continue
		}
		for size := s.size.Load(); p.to.size.Load() < size; {
			if n >= most {
				return n, nil
			}
			took, err := c.copyChunk(p, size)
			n += took
			if err != nil {
				return n, err
			}
		}
		if i < len(list)-1 {
			if err := c.finish(p); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// follow brings the parts in line with the log's segments, which it returns.
func (c *copier) follow() ([]*segment, error) {
	cut := Offset(c.cut.Swap(noLimit)) // before the list: see copier
	list := *c.log.segments.Load()
	c.list = list
	c.again = c.again || cut < noLimit
	gone := 0
	for gone < len(c.parts) && c.parts[gone].from.base < list[0].base {
		gone++ // retention
	}
	keep := gone
	for i := 0; i < len(list) && keep < len(c.parts) && c.parts[keep].from == list[i]; i++ {
		end := Offset(noLimit)
		if i+1 < len(list) {
			end = list[i+1].base
		}
		if cut < noLimit && end > cut {
			break
		}
		keep++
	}
	doomed := slices.Concat(c.parts[:gone], c.parts[keep:])
	c.parts = slices.Clone(c.parts[gone:keep])
	for _, p := range doomed {
		p.close()
		p.to.abandon()
		c.names = true
	}
	c.count()
	return list, nil
}

// count publishes how far the copy is.
func (c *copier) count() {
	bytes := int64(0)
	end := (*c.log.segments.Load())[0].base
	for _, p := range c.parts {
		bytes += p.to.size.Load()
		end = p.end
	}
	c.bytes.Store(bytes)
	c.end.Store(int64(end))
}

func (c *copier) addPart(s *segment) error {
	source, err := s.folder.fs.OpenFile(s.path(logSuffix), os.O_RDONLY)
	if err != nil {
		return fmt.Errorf("read segment: %w", err)
	}
	to, err := createSegment(s.base, c.folder, c.log.indexes, c.log.config.Load())
	if err != nil {
		source.Close()
		return err
	}
	c.parts = append(c.parts, &part{from: s, source: source, to: to, end: s.base})
	c.names = true
	c.count()
	return nil
}

// copyChunk copies whole batches of at most a chunk, or one batch that is larger, and
// enters them in the indexes. size is how far the source is known to reach (L3).
func (c *copier) copyChunk(p *part, size int64) (int64, error) {
	pos := p.to.size.Load()
	b := c.buf[:min(int64(len(c.buf)), size-pos)]
	if err := readFull(p.source, b, pos); err != nil {
		return 0, fmt.Errorf("%s: read at %d: %w", p.from.path(logSuffix), pos, err)
	}
	whole := int64(0)
	for whole < int64(len(b)) {
		rest := b[whole:]
		if len(rest) < shortestHeader || len(rest) < batch.HeaderSize && pos+int64(len(b)) < size {
			break // the header is cut off by the end of the chunk
		}
		e, ok := parseEntry(rest[:min(len(rest), batch.HeaderSize)], pos+whole)
		if !ok || e.base < p.end || int64(e.size) > size-pos-whole {
			return 0, &CorruptError{File: p.from.path(logSuffix), Position: pos + whole, Want: "a whole batch", Got: fmt.Sprintf("offset %d, size %d, magic %d", e.base, e.size, e.magic)}
		}
		if int64(e.size) > int64(len(rest)) && whole > 0 {
			break
		}
		if err := p.to.noteBatch(e.pos, e.size, e.last, e.maxTs, c.log.config.Load().IndexInterval); err != nil {
			return 0, err
		}
		p.end = e.last + 1
		whole += int64(e.size)
	}
	if whole == 0 {
		return 0, &CorruptError{File: p.from.path(logSuffix), Position: pos, Want: "a whole batch", Got: fmt.Sprintf("%d bytes", len(b))}
	}
	return whole, c.put(p, b[:min(whole, int64(len(b)))], pos, pos+whole)
}

// put writes b at pos, and what the source has behind it up to end.
func (c *copier) put(p *part, b []byte, pos, end int64) error {
	f, err := p.to.file()
	if err != nil {
		return err
	}
	for from := pos; ; {
		if _, err := f.WriteAt(b, from); err != nil {
			return fmt.Errorf("write segment: %w", err)
		}
		if from += int64(len(b)); from == end {
			break
		}
		b = c.buf[:min(int64(len(c.buf)), end-from)]
		if err := readFull(p.source, b, from); err != nil {
			return fmt.Errorf("%s: read at %d: %w", p.from.path(logSuffix), from, err)
		}
	}
	p.to.size.Store(end)
	p.unsynced += end - pos
	c.bytes.Add(end - pos)
	c.end.Store(int64(p.end))
	if p.unsynced >= moveSyncBytes { // never much at once: appends of others wait for the same device
		return p.sync()
	}
	return nil
}

// sync makes the part's bytes durable.
func (p *part) sync() error {
	if p.unsynced == 0 {
		return nil
	}
	f, err := p.to.file()
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return &failedSyncError{err}
	}
	p.unsynced = 0
	return nil
}

// failedSyncError tells a failed sync (L4) from other failures of a move.
type failedSyncError struct{ error }

func (e *failedSyncError) Unwrap() error { return e.error }

// finish ends a part of which the segment is closed.
func (c *copier) finish(p *part) error {
	if err := p.to.seal(c.log.config.Load().Preallocate); err != nil {
		return err
	}
	if err := errors.Join(p.sync(), p.to.syncIndexes()); err != nil {
		return err
	}
	p.sealed = true
	p.close()
	p.to.closeFile() // reopened when somebody reads it
	return nil
}

func (p *part) close() {
	if p.source != nil {
		p.source.Close()
		p.source = nil
	}
}

// sync makes all that is copied durable, names too.
func (c *copier) sync() error {
	for _, p := range c.parts {
		if err := p.sync(); err != nil {
			return err
		}
	}
	if !c.names {
		return nil
	}
	if err := c.folder.fs.SyncDir(c.folder.dir()); err != nil {
		return &failedSyncError{err}
	}
	c.names = false
	return nil
}

// copyRest brings what else the folder holds up to date: the leader epochs, the
// producers' snapshots, the transaction indexes that another program has written, and
// segments that recovery has put aside for a person.
func (c *copier) copyRest() error {
	if now := c.log.epochs.All(); !c.copied || !slices.Equal(now, c.history) {
		if err := c.log.epochs.WriteCopy(c.folder.dir()); err != nil {
			return err
		}
		c.history, c.copied = now, true
	}
	theirs, err := restOf(c.folder.fs, c.log.Dir())
	if err != nil {
		return err
	}
	ours, err := restOf(c.folder.fs, c.folder.dir())
	if err != nil {
		return err
	}
	for _, name := range ours {
		if !c.again && slices.Contains(theirs, name) {
			continue
		}
		if err := c.folder.fs.Remove(c.folder.file(name)); err != nil {
			return err
		}
		c.names = true
	}
	if c.again {
		c.again, ours = false, nil
	}
	for _, name := range theirs {
		if slices.Contains(ours, name) {
			continue
		}
		if err := c.copyFile(name); err != nil {
			return err
		}
		c.names = true
	}
	return nil
}

// restOf lists the files of copyRest that are written once and then only removed.
func restOf(fsys vfs.FS, dir string) ([]string, error) {
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if _, ok := producers.ParseSnapshotName(e.Name); ok || filepath.Ext(e.Name) == cutSuffix || filepath.Ext(e.Name) == txnSuffix {
			names = append(names, e.Name)
		}
	}
	return names, nil
}

// copyFile copies one file whole, synced.
func (c *copier) copyFile(name string) error {
	from, err := c.folder.fs.OpenFile(c.log.file(name), os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // an old snapshot that was dropped meanwhile
	}
	if err != nil {
		return err
	}
	defer from.Close()
	size, err := from.Size()
	if err != nil {
		return err
	}
	to, err := c.folder.open(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	defer to.Close()
	for pos := int64(0); pos < size; {
		b := c.buf[:min(int64(len(c.buf)), size-pos)]
		if err := readFull(from, b, pos); err != nil {
			return err
		}
		if _, err := to.WriteAt(b, pos); err != nil {
			return err
		}
		pos += int64(len(b))
	}
	if err := to.Sync(); err != nil {
		return &failedSyncError{err}
	}
	return nil
}

// close ends the use of the copy, which is left as it is.
func (c *copier) close() {
	for _, p := range c.parts {
		p.close()
		p.to.index.Discard()
		p.to.times.Discard()
		p.to.letGo()
	}
	c.parts = nil
}
