package index

import (
	"errors"
	"fmt"
	"os"
	"sort"
	"sync"

	"millrace/engine/vfs"
)

type pageBuffer [pageBytes]byte

var pagePool = sync.Pool{New: func() any { return new(pageBuffer) }}

// entry is the bytes of one entry; an offset index uses the first eight. By value: it stays off the heap.
type entry [12]byte

// find returns the largest entry with a key at or below key; ok is false if there is none.
func (t *table) find(key int64) (e entry, ok bool, err error) {
	if !t.used.Load() { // a load first: the line stays shared between readers
		t.used.Store(true)
	}
	t.mu.RLock()
	e, ok, err = t.search(key)
	t.mu.RUnlock()
	if err != errNeedsFile {
		return e, ok, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.load(); err != nil {
		return e, false, err
	}
	kept, err := t.openFile(os.O_RDONLY)
	if err != nil {
		return e, false, err
	}
	e, ok, err = t.search(key)
	if !kept {
		t.closeFile()
	}
	return e, ok, err
}

// errNeedsFile sends find to its second round, with the lock held alone.
var errNeedsFile = errors.New("index: file is not open")

// search is find in what is loaded. Caller holds mu for reading or writing.
func (t *table) search(key int64) (e entry, ok bool, err error) {
	es := t.layout.size
	switch t.state {
	case closed:
		return e, false, ErrClosed
	case deferred:
		return e, false, errNeedsFile
	case mapped:
		e, ok = t.searchBytes(t.m.Bytes()[:t.n*es], key)
		return e, ok, nil
	}
	if t.n == 0 || key < t.keys[0] {
		return e, false, nil
	}
	p := sort.Search(len(t.keys), func(i int) bool { return t.keys[i] > key }) - 1
	if p == len(t.keys)-1 && t.state == paged {
		e, ok = t.searchBytes(t.page, key)
		return e, ok, nil
	}
	if p == len(t.keys)-1 && t.layout.key(t.last[:es]) <= key {
		return t.last, true, nil
	}
	if t.file == nil {
		return e, false, errNeedsFile
	}
	buf := pagePool.Get().(*pageBuffer)
	defer pagePool.Put(buf)
	at := p * t.layout.page()
	b := buf[:min(t.layout.page(), t.n*es-at)]
	if err := readFull(t.file, b, int64(at)); err != nil {
		return e, false, t.corrupt(err.Error())
	}
	e, ok = t.searchBytes(b, key)
	return e, ok, nil
}

// searchBytes is find among whole entries.
func (t *table) searchBytes(b []byte, key int64) (e entry, ok bool) {
	es := t.layout.size
	lo, hi := 0, len(b)/es // entries below lo are at or below key, from hi on above
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if t.layout.key(b[mid*es:]) <= key {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 {
		return e, false
	}
	copy(e[:es], b[(lo-1)*es:])
	return e, true
}

// openFile makes t.file usable. kept tells that the Set lent the descriptor; if
// not, the caller closes it after this one use. Caller holds mu alone.
func (t *table) openFile(flag int) (kept bool, err error) {
	if t.file != nil || t.state == mapped {
		return true, nil
	}
	if t.state == paged {
		flag = os.O_RDWR | os.O_CREATE // the same descriptor serves the next page write
	}
	f, err := t.fs.OpenFile(t.path, flag)
	if err != nil {
		return false, fmt.Errorf("open index: %w", err)
	}
	t.file = f
	return t.set.takeFile(t), nil
}

// keep takes over a file that load opened, or closes it if the Set has no room.
func (t *table) keep(f vfs.File) {
	if t.file == f {
		return
	}
	t.closeFile()
	t.file = f
	if !t.set.takeFile(t) {
		t.closeFile()
	}
}

func (t *table) closeFile() {
	if t.file == nil {
		return
	}
	t.set.dropFile(t)
	t.file.Close() // read, or written and synced where that mattered
	t.file = nil
}

// lastEntry returns the last entry; ok is false if there is none or the file cannot be used.
func (t *table) lastEntry() (e entry, ok bool) {
	t.mu.RLock()
	if t.state == deferred {
		t.mu.RUnlock()
		t.mu.Lock()
		err := t.load()
		e, ok = t.last, err == nil && t.n > 0
		t.mu.Unlock()
		return e, ok
	}
	e, ok = t.last, t.n > 0
	t.mu.RUnlock()
	return e, ok
}

func (t *table) entries() int {
	t.mu.RLock()
	n, ready := t.n, t.state != deferred
	t.mu.RUnlock()
	if ready {
		return n
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = t.load() // a failed one leaves n at 0
	return t.n
}
