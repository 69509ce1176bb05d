package faultfs

import (
	"bytes"
	"io"
	"io/fs"
	"net"
	"os"
	"syscall"
	"unsafe"

	"millrace/engine/vfs"
)

// handle is an open file.
type handle struct {
	d      *Disk
	node   *node
	name   string
	flag   int // access mode
	power  int
	direct bool
	closed bool // guarded by Disk.mu
}

func (d *Disk) handle(n *node, name string, flag int) *handle {
	n.handles++
	return &handle{d: d, node: n, name: name, flag: flag & (os.O_RDONLY | os.O_WRONLY | os.O_RDWR), power: d.power}
}

// open says whether the handle's machine runs and the handle has not been closed.
func (h *handle) open(kind Kind) error {
	switch {
	case h.d.off || h.power != h.d.power:
		return named(kind, h.name, ErrPowerCut)
	case h.closed:
		return named(kind, h.name, fs.ErrClosed)
	}
	return nil
}

func (h *handle) readable(kind Kind) error {
	if err := h.open(kind); err != nil || h.flag != os.O_WRONLY {
		return err
	}
	return named(kind, h.name, syscall.EBADF)
}

func (h *handle) writable(kind Kind) error {
	if err := h.open(kind); err != nil || h.flag != os.O_RDONLY {
		return err
	}
	return named(kind, h.name, syscall.EBADF)
}

func (h *handle) Name() string { return h.name }

func (h *handle) Close() error {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if err := h.open("close"); err != nil {
		return err
	}
	h.closed = true
	h.node.handles--
	h.d.drop(h.node)
	return nil
}

func (h *handle) ReadAt(p []byte, off int64) (int, error) {
	if h.d.beforeRead != nil {
		h.d.beforeRead(h.name)
	}
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if err := h.readable(OpRead); err != nil {
		return 0, err
	}
	if off < 0 || h.misaligned(p, off) {
		return 0, named(OpRead, h.name, syscall.EINVAL)
	}
	if err := h.d.faultFor(OpRead, h.name, false); err != nil {
		return 0, named(OpRead, h.name, h.d.cutIf(err))
	}
	h.d.sample(h.node)
	n := h.node.live.read(p, off)
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// misaligned: a direct file takes nothing that some disk would refuse.
func (h *handle) misaligned(p []byte, off int64) bool {
	if !h.direct || len(p) == 0 {
		return false
	}
	address := uintptr(unsafe.Pointer(unsafe.SliceData(p)))
	return address%vfs.DirectAlign != 0 || off%vfs.DirectAlign != 0 || len(p)%vfs.DirectAlign != 0
}

func (h *handle) WriteAt(p []byte, off int64) (int, error) {
	kind := OpWrite
	if h.direct {
		kind = OpDirectWrite
	}
	h.d.enter(kind, h.name)
	defer h.d.leave()
	if err := h.writable(kind); err != nil {
		return 0, err
	}
	if off < 0 || h.misaligned(p, off) {
		return 0, named(kind, h.name, syscall.EINVAL)
	}
	if len(p) == 0 {
		return 0, nil
	}
	err := h.d.begin(Op{Kind: kind, Name: h.name, Off: off, Size: int64(len(p))})
	h.d.sample(h.node)
	if h.direct {
		return h.writeDirect(p, off, err)
	}
	return h.writeCached(p, off, err)
}

func (h *handle) WriteVAt(bufs [][]byte, off int64) (int, error) {
	if h.direct {
		return h.gatherDirect(bufs, off)
	}
	return h.WriteAt(bytes.Join(bufs, nil), off)
}

func (h *handle) gatherDirect(bufs [][]byte, off int64) (int, error) {
	size := 0
	for _, b := range bufs {
		if h.misaligned(b, off) {
			return 0, named(OpDirectWrite, h.name, syscall.EINVAL)
		}
		size += len(b)
	}
	if size == 0 {
		return h.WriteAt(nil, off)
	}
	all := vfs.AlignedBuffer(size)
	defer vfs.FreeBuffer(all)
	n := 0
	for _, b := range bufs {
		n += copy(all[n:], b)
	}
	return h.WriteAt(all, off)
}

// writeCached carries out a write to the page cache that must end with fault.
func (h *handle) writeCached(p []byte, off int64, fault error) (int, error) {
	d, n := h.d, h.node
	err := fault
	fits := d.room(n, off, int64(len(p)))
	switch {
	case fault != nil && !isCut(fault): // some of it was written before the failure
		p = p[:d.rng.Int64N(min(int64(len(p)), fits)+1)]
	case fits < int64(len(p)):
		p = p[:fits]
		err = named(OpWrite, h.name, syscall.ENOSPC)
	}
	before := n.allocated()
	d.put(n, p, off)
	d.account(n, before)
	if isCut(fault) {
		return 0, d.cutIf(fault)
	}
	return len(p), err
}

// writeDirect carries out a write past the page cache. Like the kernel's, it first
// sees to it that older cached writes of that range cannot come over it later.
func (h *handle) writeDirect(p []byte, off int64, fault error) (int, error) {
	d, n := h.d, h.node
	end := off + int64(len(p))
	if isCut(fault) { // under way; the cut tears it
		d.put(n, p, off)
		return 0, d.cutIf(fault)
	}
	if fault != nil { // any sectors may have got through
		for at := off; at < end; at += sectorBytes {
			if d.chance(50) && d.room(n, at, sectorBytes) == sectorBytes {
				h.landDirect(p[at-off:at-off+sectorBytes], at)
			}
		}
		return 0, fault
	}
	fits := d.room(n, off, int64(len(p))) / sectorBytes * sectorBytes
	h.landDirect(p[:fits], off)
	if fits < int64(len(p)) {
		return int(fits), named(OpDirectWrite, h.name, syscall.ENOSPC)
	}
	return len(p), nil
}

func (h *handle) landDirect(p []byte, off int64) {
	before := h.node.allocated()
	h.d.put(h.node, p, off)
	h.node.syncRange(off, off+int64(len(p)))
	h.d.account(h.node, before)
}

func (h *handle) Size() (int64, error) {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if err := h.open("stat"); err != nil {
		return 0, err
	}
	return h.node.live.size, nil
}

func (h *handle) Truncate(size int64) error {
	h.d.enter(OpTruncate, h.name)
	defer h.d.leave()
	if err := h.writable(OpTruncate); err != nil {
		return err
	}
	if size < 0 {
		return named(OpTruncate, h.name, syscall.EINVAL)
	}
	return h.d.truncate(h.node, h.name, size)
}

func (d *Disk) truncate(n *node, name string, size int64) error {
	err := d.begin(Op{Kind: OpTruncate, Name: name, Size: size})
	if err != nil && !isCut(err) {
		return err
	}
	d.sample(n)
	if err == nil && size > n.live.size && d.room(n, 0, size) < size {
		return named(OpTruncate, name, syscall.ENOSPC)
	}
	before := n.allocated()
	n.reserve = 0
	d.cut(n, size)
	d.account(n, before)
	return d.cutIf(err)
}

func (h *handle) Sync() error {
	h.d.enter(OpSync, h.name)
	defer h.d.leave()
	if err := h.open(OpSync); err != nil {
		return err
	}
	return h.d.syncFile(OpSync, h.node, h.name, true, 0)
}

func (h *handle) Preallocate(off, n int64) error {
	d := h.d
	d.enter(OpPreallocate, h.name)
	defer d.leave()
	if err := h.writable(OpPreallocate); err != nil {
		return err
	}
	switch {
	case off < 0 || n <= 0:
		return named(OpPreallocate, h.name, syscall.EINVAL)
	case d.preallocateRefused:
		return named(OpPreallocate, h.name, vfs.ErrUnsupported)
	}
	if err := d.begin(Op{Kind: OpPreallocate, Name: h.name, Off: off, Size: n}); err != nil {
		return d.cutIf(err)
	}
	if d.room(h.node, off, n) < n {
		return named(OpPreallocate, h.name, syscall.ENOSPC)
	}
	before := h.node.allocated()
	h.node.reserve = max(h.node.reserve, off+n)
	d.account(h.node, before)
	return nil
}

func (h *handle) Advise(off, n int64, a vfs.Advice) error {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if a < vfs.AdviseWillNeed || a > vfs.AdviseSequential {
		return named("fadvise", h.name, syscall.EINVAL)
	}
	return h.open("fadvise")
}

// Dirty is all of a file that has anything unsynced.
func (h *handle) Dirty() (int64, error) {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if err := h.open("cachestat"); err != nil || len(h.node.changes) == 0 {
		return 0, err
	}
	return h.node.live.size, nil
}

// WriteOut changes nothing that a test could see: what is unsynced stays so, and may be on the disk or not.
func (h *handle) WriteOut(off, n int64, _ bool) error {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if err := h.open(OpWriteOut); err != nil {
		return err
	}
	if off < 0 || n < 0 {
		return named(OpWriteOut, h.name, syscall.EINVAL)
	}
	err := h.d.faultFor(OpWriteOut, h.name, false)
	if err != nil && !isCut(err) {
		h.d.sample(h.node)
		h.d.loseContents(h.node) // the system has told of it, and will not again
	}
	return named(OpWriteOut, h.name, h.d.cutIf(err))
}

// ReadCold is ReadAt: nothing here takes long but what BeforeRead does.
func (h *handle) ReadCold(p []byte, off int64) (int, error) { return h.ReadAt(p, off) }

// SendTo copies: there is no descriptor to send from.
func (h *handle) SendTo(c net.Conn, off, n int64) (int64, error) {
	if off < 0 || n < 0 {
		return 0, named(OpRead, h.name, syscall.EINVAL)
	}
	if n == 0 {
		return 0, nil
	}
	if h.direct {
		return 0, named(OpRead, h.name, syscall.EINVAL) // the copy's offsets need not be aligned
	}
	return vfs.CopyTo(c, h, off, n)
}
