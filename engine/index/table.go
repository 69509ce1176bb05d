package index

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"

	"millrace/engine/vfs"
)

// layout is what differs between the two kinds of entries.
type layout struct {
	size int                              // bytes of an entry
	key  func(e []byte) int64             // ascends strictly within a file
	bad  func(prev, cur []byte) string    // why cur cannot follow prev (nil for the first); "" if it can
	off  func(e []byte, base int64) int64 // the offset in it
}

func (l *layout) perPage() int { return pageBytes / l.size }
func (l *layout) page() int    { return l.perPage() * l.size } // bytes of a whole page: 4096 or 4092

type state int8

const (
	deferred state = iota // nothing read yet
	mapped
	paged
	sealed
	closed
)

// table is a file of ascending fixed-size entries: what both indexes are. It
// knows bytes and order; what an entry means is Offset's and Time's.
//
// Lock order: the mu of one table, then Set.mu, then (only ever tried) the mu of
// the table that must give up its file.
type table struct {
	fs     vfs.FS
	set    *Set
	layout *layout
	base   int64
	limit  int // entries the file may hold

	used     atomic.Bool // since the Set's hand last passed
	hasMap   bool        // one of the Set's; guarded by Set.mu
	fileSlot int         // place in the Set, -1 none; guarded by Set.mu

	mu     sync.RWMutex
	path   string
	state  state
	active bool // what deferred becomes
	n      int  // entries
	last   entry
	next   entry       // what append is about to add
	m      vfs.Mapping // mapped
	backed int64       // mapped: bytes that have disk blocks
	page   []byte      // paged: the entries of the last page
	clean  int         // paged: entries of page that the file has
	keys   []int64     // paged, sealed: first key of each page
	file   vfs.File    // paged, sealed: borrowed from the Set, or nil
	long   bool        // paged: the file is longer than its entries
}

func newTable(s *Set, l *layout, fsys vfs.FS, path string, base int64, maxBytes int, active bool) table {
	return table{
		fs: fsys, set: s, layout: l, base: base, limit: maxBytes / l.size,
		path: path, active: active, fileSlot: -1,
	}
}

// load ends the deferred state. Caller holds mu.
func (t *table) load() error {
	switch t.state {
	case closed:
		return ErrClosed
	case deferred:
	default:
		return nil
	}
	flag := os.O_RDONLY
	if t.active {
		flag = os.O_RDWR | os.O_CREATE
	}
	f, err := t.fs.OpenFile(t.path, flag)
	if !t.active && errors.Is(err, fs.ErrNotExist) {
		return t.corrupt("there is no such file")
	}
	if err != nil {
		return fmt.Errorf("open index: %w", err)
	}
	size, err := t.readAll(f)
	if err != nil {
		t.n = 0
		f.Close()
		return err
	}
	if !t.active {
		t.state, t.page = sealed, nil
		t.keep(f)
		return nil
	}
	return t.begin(f, size)
}

// begin makes a table active whose entries are known and whose file is f, size bytes long.
// What lies behind the entries is stale: it is cut, and reads as zeros when the file grows again.
func (t *table) begin(f vfs.File, size int64) error {
	if want := int64(t.n) * int64(t.layout.size); size > want {
		if err := f.Truncate(want); err != nil {
			f.Close()
			return fmt.Errorf("cut index: %w", err)
		}
	}
	t.state, t.active, t.long = paged, true, false
	if t.n < mapFrom {
		f.Close() // the page has all
		return nil
	}
	t.carry(f)
	return nil
}

// carry has f, the file of a paged table, mapped or kept open.
func (t *table) carry(f vfs.File) {
	if !t.promote(f) {
		t.keep(f)
	}
}

// grow has a table mapped that is to have a second entry. Most segments of many small logs end without one: what a closing segment adds is one
// entry. Without a map entries stay in memory, and who writes them down meets the error.
func (t *table) grow() {
	if !t.set.mapsLeft() || t.writePage() != nil {
		return
	}
	if f, err := t.fs.OpenFile(t.path, os.O_RDWR); err == nil {
		t.carry(f)
	}
}

// readAll reads and checks every entry of f, filling n, last, keys and page; it returns the file's size.
func (t *table) readAll(f vfs.File) (int64, error) {
	es := int64(t.layout.size)
	size, err := f.Size()
	if err != nil {
		return 0, fmt.Errorf("index size: %w", err)
	}
	if size%es != 0 {
		return 0, t.corrupt(fmt.Sprintf("%d bytes are no whole number of %d-byte entries", size, es))
	}
	if size > maxFileBytes {
		return 0, t.corrupt(fmt.Sprintf("%d bytes are more than an index can have", size))
	}
	n, err := t.findEnd(f, int(size/es))
	if err != nil {
		return 0, err
	}
	if n == 0 && size > 0 && !t.active {
		return 0, &CorruptError{File: t.path, Reason: "only zeros", Unwritten: true}
	}
	t.n, t.keys, t.page, t.clean, t.last = n, nil, nil, 0, entry{}
	if n == 0 {
		return size, nil
	}
	return size, t.checkEntries(f)
}

// checkEntries streams the n entries through one buffer.
func (t *table) checkEntries(f vfs.File) error {
	page := t.layout.page()
	pages := (t.n*t.layout.size + page - 1) / page
	t.keys = make([]int64, 0, pages)
	buf := make([]byte, min(pages, loadBuffer/pageBytes)*page)
	var prev []byte
	var held entry
	for at, total := 0, t.n*t.layout.size; at < total; {
		b := buf[:min(len(buf), total-at)]
		if err := readFull(f, b, int64(at)); err != nil {
			return err
		}
		for i := 0; i < len(b); i += t.layout.size {
			cur := b[i : i+t.layout.size]
			if why := t.layout.bad(prev, cur); why != "" {
				return t.corrupt(fmt.Sprintf("entry %d: %s", (at+i)/t.layout.size, why))
			}
			if (at+i)%page == 0 {
				t.keys = append(t.keys, t.layout.key(cur))
				t.page = b[i:min(len(b), i+page)]
			}
			prev = cur
		}
		copy(held[:], prev) // the buffer is about to be reused
		prev = held[:t.layout.size]
		at += len(b)
	}
	t.last = held
	t.page = append([]byte(nil), t.page...)
	t.clean = len(t.page) / t.layout.size
	return nil
}

// findEnd returns how many of the file's count entries are in use: a preallocated
// file ends in zeros. No entry is all zeros except possibly the first of a time index.
func (t *table) findEnd(f vfs.File, count int) (int, error) {
	var e entry
	b := e[:t.layout.size]
	zero := func(i int) (bool, error) {
		err := readFull(f, b, int64(i)*int64(t.layout.size))
		return e == entry{}, err
	}
	lo, hi := -1, count // entry lo is used, entry hi is not
	for probe := count - 1; hi-lo > 1; probe = lo + (hi-lo)/2 {
		z, err := zero(probe)
		if err != nil {
			return 0, err
		}
		if z {
			hi = probe
		} else {
			lo = probe
		}
	}
	return hi, nil
}

// promote maps a paged table if the Set has room; f is then closed. Any failure leaves it paged, which always works.
func (t *table) promote(f vfs.File) bool {
	if t.n > 0 && t.n >= t.limit { // made under a larger segment.index.bytes: there must be room for the entry of the roll
		t.limit = t.n + 1
		return false
	}
	if t.limit == 0 || !t.set.takeMap(t) {
		return false
	}
	size := int64(t.limit) * int64(t.layout.size)
	used := int64(t.n) * int64(t.layout.size)
	back := min(size, max(firstChunk, (used+nextChunk)/nextChunk*nextChunk))
	if used < firstChunk {
		back = min(size, firstChunk)
	}
	err := backBlocks(f, 0, back)
	if err == nil {
		t.long = true
		err = f.Truncate(size)
	}
	if err == nil {
		t.m, err = f.Map(int(size))
	}
	if err != nil {
		t.set.dropMap(t)
		return false
	}
	t.closeFile()
	f.Close()
	t.state, t.backed, t.page, t.keys, t.long = mapped, back, nil, nil, false
	return true
}

// demote turns a mapped table into a paged one. Caller holds mu.
func (t *table) demote() error {
	b := t.m.Bytes()
	page := t.layout.page()
	used := t.n * t.layout.size
	t.keys = t.pageKeys(b[:used])
	t.page, t.clean = nil, 0
	if t.n > 0 {
		at := (used - 1) / page * page
		t.page = append([]byte(nil), b[at:used]...)
		t.clean = len(t.page) / t.layout.size // the file and the map are one
	}
	err := t.m.Close()
	t.m, t.state, t.long = nil, paged, true
	return err
}

func (t *table) pageKeys(b []byte) []int64 {
	keys := make([]int64, 0, len(b)/pageBytes+1)
	for at := 0; at < len(b); at += t.layout.page() {
		keys = append(keys, t.layout.key(b[at:]))
	}
	return keys
}

// backBlocks gives [from, to) of f disk blocks, by writing where the file system
// cannot do it otherwise: what is there is written again, the rest is zeros.
func backBlocks(f vfs.File, from, to int64) error {
	err := f.Preallocate(from, to-from)
	if !errors.Is(err, vfs.ErrUnsupported) {
		return err
	}
	size, err := f.Size()
	if err != nil {
		return err
	}
	buf := make([]byte, min(to-from, nextChunk))
	for at := from; at < to; {
		b := buf[:min(int64(len(buf)), to-at)]
		if at < size {
			b = b[:min(int64(len(b)), size-at)]
			err = readFull(f, b, at)
		} else {
			clear(b)
		}
		if err == nil {
			_, err = f.WriteAt(b, at)
		}
		if err != nil {
			return err
		}
		at += int64(len(b))
	}
	return nil
}

func (t *table) corrupt(reason string) error { return &CorruptError{File: t.path, Reason: reason} }

func readFull(f io.ReaderAt, b []byte, at int64) error {
	n, err := f.ReadAt(b, at)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read index at %d: %w", at, err)
}
