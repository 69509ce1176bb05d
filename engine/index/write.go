package index

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sort"
)

// append adds one entry of layout.size bytes, checking that it follows the last
// one. With skip, one whose key is not above the last one's is left out silently.
func (t *table) append(new entry, skip bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next = new // a field: handed to the layout's functions it would be allocated
	e := t.next[:t.layout.size]
	if err := t.load(); err != nil {
		return err
	}
	if t.state == sealed {
		return fmt.Errorf("append to sealed index %s", t.path)
	}
	es := t.layout.size
	if t.n > 0 {
		last := t.last[:es]
		if skip && t.layout.key(e) <= t.layout.key(last) {
			return nil
		}
		if t.layout.bad(last, e) != "" {
			return &OrderError{File: t.path, Last: t.layout.off(last, t.base), New: t.layout.off(e, t.base)}
		}
	} else if why := t.layout.bad(nil, e); why != "" {
		return fmt.Errorf("index %s: first entry: %s", t.path, why)
	}
	if t.n >= t.limit {
		return ErrFull
	}
	t.used.Store(true)
	if t.n == mapFrom-1 && t.state == paged {
		t.grow()
	}
	if err := t.put(e); err != nil {
		return err
	}
	t.n++
	copy(t.last[:], e)
	return nil
}

func (t *table) put(e []byte) error {
	es := t.layout.size
	if t.state == mapped {
		at := t.n * es
		if int64(at+es) > t.backed {
			if err := t.backMore(); err != nil {
				return err
			}
		}
		copy(t.m.Bytes()[at:at+es], e)
		return nil
	}
	// A full page is written when the next one begins, so the last entry is always at hand.
	if len(t.page) == t.layout.page() {
		if err := t.writePage(); err != nil {
			return err
		}
		t.page, t.clean = t.page[:0], 0
	}
	if len(t.page) == 0 {
		t.keys = append(t.keys, t.layout.key(e))
	}
	t.page = append(t.page, e...)
	return nil
}

// backMore asks for the disk blocks of the next part of the mapping.
func (t *table) backMore() error {
	f, err := t.fs.OpenFile(t.path, os.O_RDWR)
	if err != nil {
		return fmt.Errorf("open index: %w", err)
	}
	defer f.Close()
	size := int64(len(t.m.Bytes()))
	to := min(size, (t.backed+nextChunk)/nextChunk*nextChunk)
	if err := backBlocks(f, t.backed, to); err != nil {
		return fmt.Errorf("reserve space for index: %w", err)
	}
	t.backed = to
	return nil
}

// writePage writes those entries of the last page that the file does not have.
func (t *table) writePage() error {
	es := t.layout.size
	if t.clean*es == len(t.page) {
		return nil
	}
	kept, err := t.openFile(os.O_RDWR)
	if err != nil {
		return err
	}
	at := (len(t.keys)-1)*t.layout.page() + t.clean*es
	_, err = t.file.WriteAt(t.page[t.clean*es:], int64(at))
	if !kept {
		t.closeFile()
	}
	if err != nil {
		return fmt.Errorf("write index: %w", err)
	}
	t.clean = len(t.page) / es
	return nil
}

// truncate drops the entries from the first on whose offset is at or above off, makes
// the index active, and syncs if anything was dropped: an entry that came back
// after a power cut would point into the middle of other bytes.
func (t *table) truncate(off int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.activate(); err != nil {
		return err
	}
	es := t.layout.size
	if t.n == 0 || t.layout.off(t.last[:es], t.base) < off {
		return nil
	}
	all, err := t.allEntries()
	if err != nil {
		return err
	}
	n := sort.Search(t.n, func(i int) bool { return t.layout.off(all[i*es:], t.base) >= off })
	last := entry{}
	if n > 0 {
		copy(last[:es], all[(n-1)*es:])
	}
	if t.state == mapped {
		clear(t.m.Bytes()[n*es : t.n*es])
		t.n, t.last = n, last
		return t.m.Flush()
	}
	kept, err := t.openFile(os.O_RDWR)
	if err != nil {
		return err
	}
	t.n, t.last, t.long = n, last, false
	t.keys = t.pageKeys(all[:n*es])
	t.page, t.clean = nil, 0
	if n > 0 {
		at := (len(t.keys) - 1) * t.layout.page()
		t.page = append([]byte(nil), all[at:n*es]...)
	}
	if err = t.file.Truncate(int64(n * es)); err == nil {
		err = t.writePage()
	}
	if err == nil {
		err = t.file.Sync()
	}
	if !kept {
		t.closeFile()
	}
	if err != nil {
		return fmt.Errorf("cut index: %w", err)
	}
	return nil
}

// allEntries returns the bytes of every entry; aliases the mapping of a mapped index.
func (t *table) allEntries() ([]byte, error) {
	es := t.layout.size
	if t.state == mapped {
		return t.m.Bytes()[:t.n*es], nil
	}
	all := make([]byte, t.n*es)
	head := len(all) - len(t.page)
	if head > 0 {
		kept, err := t.openFile(os.O_RDWR)
		if err != nil {
			return nil, err
		}
		err = readFull(t.file, all[:head], 0)
		if !kept {
			t.closeFile()
		}
		if err != nil {
			return nil, t.corrupt(err.Error())
		}
	}
	copy(all[head:], t.page)
	return all, nil
}

// activate ends the deferred and the sealed state in favour of an active one.
func (t *table) activate() error {
	switch t.state {
	case closed:
		return ErrClosed
	case deferred:
		t.active = true
		return t.load()
	case sealed:
		t.closeFile()
		t.state, t.active = deferred, true
		return t.load()
	}
	return nil
}

// reset empties the file whatever it holds.
func (t *table) reset() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state == closed {
		return ErrClosed
	}
	if t.state == mapped {
		if err := t.unmap(); err != nil {
			return err
		}
	}
	t.closeFile()
	t.n, t.last, t.keys, t.page, t.clean, t.active = 0, entry{}, nil, nil, 0, true
	f, err := t.fs.OpenFile(t.path, os.O_RDWR|os.O_CREATE)
	t.state = deferred
	if err != nil {
		return fmt.Errorf("open index: %w", err)
	}
	size, err := f.Size()
	if err != nil {
		f.Close()
		return fmt.Errorf("index size: %w", err)
	}
	return t.begin(f, size)
}

// unmap leaves a mapped table paged. Never shrink a file while it is mapped: the
// next touch of the cut page would be a SIGBUS.
func (t *table) unmap() error {
	t.set.dropMap(t)
	if err := t.demote(); err != nil {
		return fmt.Errorf("unmap index: %w", err)
	}
	return nil
}

// trim makes file and entries agree in length. Afterwards the table is paged, with a clean page.
func (t *table) trim() error {
	if t.state == mapped {
		if err := t.unmap(); err != nil {
			return err
		}
	}
	if err := t.writePage(); err != nil {
		return err
	}
	if !t.long {
		return nil
	}
	kept, err := t.openFile(os.O_RDWR)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	err = t.file.Truncate(int64(t.n * t.layout.size))
	if !kept {
		t.closeFile()
	}
	if err != nil {
		return fmt.Errorf("trim index: %w", err)
	}
	t.long = false
	return nil
}

func (t *table) seal() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.load(); err != nil {
		return err
	}
	if t.state == sealed {
		return nil
	}
	if err := t.trim(); err != nil {
		return err
	}
	t.state, t.active, t.page = sealed, false, nil
	return nil
}

func (t *table) write() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state != paged {
		return nil
	}
	return t.writePage()
}

func (t *table) flush() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch t.state {
	case closed:
		return ErrClosed
	case deferred:
		return nil
	case mapped:
		return failedSync(t.m.Flush())
	}
	kept, err := t.openFile(os.O_RDWR)
	if err != nil {
		return err
	}
	if t.state == paged {
		err = t.writePage()
	}
	if err == nil && t.file != nil {
		err = failedSync(t.file.Sync())
	}
	if !kept {
		t.closeFile()
	}
	return err
}

func failedSync(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrSync, err)
}

func (t *table) close(trim bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var err error
	switch t.state {
	case closed:
		return nil
	case mapped, paged:
		if trim {
			err = t.trim()
		}
		if t.state == mapped {
			t.set.dropMap(t)
			err = errors.Join(err, t.m.Close())
		}
	}
	t.closeFile()
	t.state, t.m, t.page, t.keys = closed, nil, nil, nil
	return err
}

func (t *table) setPath(path string) {
	t.mu.Lock()
	t.path = path
	t.mu.Unlock()
}

func (t *table) getPath() string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.path
}
