package faultfs

import (
	"bytes"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"millrace/engine/vfs"
)

// shared is the memory of a mapped file. The program stores into buf whenever it
// likes, unseen; the live image holds buf as it was when it was last sampled.
// Every operation on the file samples it first, and so does begin now and then,
// which is the kernel's write-back: states that came and went can be on the disk too.
type shared struct {
	buf  []byte
	uses int
}

// mapping is one Map of a file. Several of one file share the memory.
type mapping struct {
	h      *handle
	shared *shared
	size   int
	closed bool // guarded by Disk.mu
}

// writeBackOneIn: how seldom an operation writes a mapping back unasked.
const writeBackOneIn = 16

func (h *handle) Map(size int) (vfs.Mapping, error) {
	d, n := h.d, h.node
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := h.writable(OpMap); err != nil {
		return nil, err
	}
	if h.flag != os.O_RDWR {
		return nil, named(OpMap, h.name, syscall.EACCES)
	}
	if size <= 0 || int64(size) > n.live.size {
		return nil, named(OpMap, h.name, syscall.EINVAL)
	}
	if err := d.faultFor(OpMap, h.name, false); err != nil {
		return nil, named(OpMap, h.name, d.cutIf(err))
	}
	switch {
	case n.shared == nil:
		n.shared = &shared{buf: make([]byte, size)}
		n.live.read(n.shared.buf, 0)
		d.mapped = append(d.mapped, n)
	case size > len(n.shared.buf):
		panic("faultfs: " + h.name + ": a second mapping longer than the first is not supported")
	}
	n.shared.uses++
	n.handles++
	return &mapping{h: &handle{d: d, node: n, name: h.name, flag: os.O_RDWR, power: d.power}, shared: n.shared, size: size}, nil
}

func (m *mapping) Bytes() []byte {
	if m.closed {
		return nil
	}
	return m.shared.buf[:m.size:m.size]
}

func (m *mapping) Flush() error {
	d := m.h.d
	d.enter(OpFlush, m.h.name)
	defer d.leave()
	if err := m.usable(OpFlush); err != nil {
		return err
	}
	return d.syncFile(OpFlush, m.h.node, m.h.name, false, int64(m.size))
}

func (m *mapping) Close() error {
	d, n := m.h.d, m.h.node
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := m.usable("munmap"); err != nil {
		return err
	}
	d.sample(n)
	m.closed = true
	n.handles--
	if m.shared.uses--; m.shared.uses == 0 {
		n.shared = nil
		d.mapped = slices.DeleteFunc(d.mapped, func(o *node) bool { return o == n })
		for i := range m.shared.buf { // whoever still looks finds this, or the race detector finds him
			m.shared.buf[i] = 0xDB
		}
	}
	d.drop(n)
	return nil
}

func (m *mapping) usable(kind Kind) error {
	if err := m.h.open(kind); err != nil {
		return err
	}
	if m.closed {
		return named(kind, m.h.name, fs.ErrClosed)
	}
	return nil
}

// sample takes what was stored into a file's mapping since the last time as
// unsynced writes, one for each run of changed sectors.
func (d *Disk) sample(n *node) {
	s := n.shared
	if s == nil {
		return
	}
	var now [pageBytes]byte
	end := min(int64(len(s.buf)), n.live.size)
	for off := int64(0); off < end; off += pageBytes {
		part := now[:min(pageBytes, end-off)]
		peek(part, s.buf[off:])
		before := n.live.view(int(off / pageBytes))
		if bytes.Equal(part, before[:len(part)]) {
			continue
		}
		old := *before // put changes the page that before points to
		from := -1
		for at := 0; at < len(part); at += sectorBytes {
			to := min(at+sectorBytes, len(part))
			changed := !bytes.Equal(part[at:to], old[at:to])
			if changed && from < 0 {
				from = at
			}
			if from >= 0 && (!changed || to == len(part)) {
				if changed {
					at = to
				}
				d.found(n, part[from:at], off+int64(from))
				from = -1
			}
		}
	}
}

// found is put without the copy back into the mapping, which may have been
// stored to again meanwhile.
func (d *Disk) found(n *node, p []byte, off int64) {
	s := n.shared
	n.shared = nil
	d.put(n, p, off)
	n.shared = s
}

// sampleAll samples every mapped file.
func (d *Disk) sampleAll() {
	for _, n := range d.mapped {
		d.sample(n)
	}
}

// writeBack now and then samples one mapping.
func (d *Disk) writeBack() {
	if len(d.mapped) > 0 && d.rng.IntN(writeBackOneIn) == 0 {
		d.sample(d.mapped[d.rng.IntN(len(d.mapped))])
	}
}

// store puts what was written to the file into the mapping.
func (s *shared) store(p []byte, off int64) {
	if off < int64(len(s.buf)) {
		peek(s.buf[off:], p)
	}
}

// clearFrom zeros what a truncation cut off.
func (s *shared) clearFrom(size int64) {
	for off := size; off < int64(len(s.buf)); off += pageBytes {
		peek(s.buf[off:], zeroPage[:])
	}
}

// peek copies min(len(dst), len(src)) bytes between a mapping and the disk. The
// program stores into its mapping while the disk reads it, as it does while the
// kernel writes pages back: nothing orders the two, a store may be seen in part,
// and that is what is to be modelled. So the race detector must not watch here; it
// goes on watching the program's own accesses among each other.
//
//go:norace
func peek(dst, src []byte) {
	n := min(len(dst), len(src))
	for i := 0; i < n; i++ {
		dst[i] = src[i]
	}
}
