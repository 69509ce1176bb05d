//go:build linux && (amd64 || arm64)

package vfs

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// AlignedBuffer returns n zero bytes at an address that is a multiple of
// DirectAlign, fit for a file from OpenDirect. n must be a positive multiple of
// DirectAlign. The memory lies outside the Go heap and is the caller's until it
// gives it to FreeBuffer; it is never collected, so keep such buffers and use
// them again. When the kernel has no memory to map, the buffer comes from the heap.
func AlignedBuffer(n int) []byte {
	if n <= 0 || n%DirectAlign != 0 {
		panic(fmt.Sprintf("vfs: AlignedBuffer(%d): not a positive multiple of %d", n, DirectAlign))
	}
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err == nil {
		return b
	}
	b = make([]byte, n+DirectAlign)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(b))) % DirectAlign
	return b[skip : int(skip)+n : int(skip)+n]
}

// FreeBuffer gives back a buffer as AlignedBuffer returned it; a part of one, or
// one from the heap, is left to the collector. b must not be used afterwards.
func FreeBuffer(b []byte) {
	if cap(b) > 0 {
		_ = unix.Munmap(b[:cap(b)]) // EINVAL: not one of ours, nothing was unmapped
	}
}
