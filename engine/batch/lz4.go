package batch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/pierrec/lz4/v4"
)

// The frame is parsed here and only the blocks are the library's: Kafka's readers
// want a narrower format than the library reads (independent blocks, no dictionary),
// magic 0 has its own wrong header checksum, and this way the output goes straight
// into our bounded buffer.
const (
	lz4Magic = 0x184D2204

	lz4Version         = 0b01 << 6
	lz4VersionMask     = 0b11 << 6
	lz4Independent     = 1 << 5
	lz4BlockChecksum   = 1 << 4
	lz4ContentSize     = 1 << 3
	lz4ContentChecksum = 1 << 2
	lz4Reserved        = 0b11 // one reserved bit and "dictionary id", which Kafka's readers refuse

	lz4Stored       = 1 << 31 // in a block's length: not compressed
	lz4Block64K     = 4 << 4  // what Java writes
	lz4BlockBytes   = 64 << 10
	lz4MaxExpansion = 255 // bytes a byte of a block can make, at most
)

// lz4Sum says which header checksum a frame has.
type lz4Sum int8

const (
	lz4Descriptor lz4Sum = iota // right: over the descriptor
	lz4FromMagic                // writing magic 0: over the frame's start too, as old Java clients demand
	lz4Ignored                  // reading magic 0 and 1, whose writers differ
)

var (
	errLZ4Short    = errors.New("lz4: the frame ends too early")
	errLZ4Trailing = errors.New("lz4: bytes follow the end mark")
)

// lz4Frame is what a frame's descriptor says.
type lz4Frame struct {
	flags   byte
	block   int   // most bytes a block makes
	content int64 // bytes the frame makes, -1 not said
}

func parseLZ4(src []byte, sum lz4Sum) (f lz4Frame, rest []byte, err error) {
	const minHeader = 4 + 2 + 1
	if len(src) < minHeader {
		return f, nil, errLZ4Short
	}
	if m := binary.LittleEndian.Uint32(src); m != lz4Magic {
		return f, nil, fmt.Errorf("lz4: magic is %#x", m)
	}
	f.flags = src[4]
	switch {
	case f.flags&lz4VersionMask != lz4Version:
		return f, nil, fmt.Errorf("lz4: version %d", f.flags>>6)
	case f.flags&lz4Independent == 0:
		return f, nil, errors.New("lz4: dependent blocks")
	case f.flags&lz4Reserved != 0:
		return f, nil, errors.New("lz4: reserved bits or a dictionary")
	}
	bd := src[5]
	if bd&0x8f != 0 || bd>>4 < 4 {
		return f, nil, fmt.Errorf("lz4: block descriptor %#x", bd)
	}
	f.block = 1 << (8 + 2*int(bd>>4))
	at := 6
	f.content = -1
	if f.flags&lz4ContentSize != 0 {
		if len(src) < minHeader+8 {
			return f, nil, errLZ4Short
		}
		f.content = int64(binary.LittleEndian.Uint64(src[at:]) &^ (1 << 63))
		at += 8
	}
	if want := byte(xxh32(src[4:at]) >> 8); sum != lz4Ignored && src[at] != want {
		return f, nil, fmt.Errorf("lz4: header checksum is %#x, want %#x", src[at], want)
	}
	return f, src[at+1:], nil
}

func expandLZ4(buf, src []byte, max int, sum lz4Sum) ([]byte, error) {
	f, src, err := parseLZ4(src, sum)
	if err != nil {
		return buf, err
	}
	for {
		if len(src) < 4 {
			return buf, errLZ4Short
		}
		word := binary.LittleEndian.Uint32(src)
		src = src[4:]
		if word == 0 {
			return buf, f.end(buf, src)
		}
		n := int(word &^ lz4Stored)
		if n == 0 {
			return buf, errors.New("lz4: an empty block, which Java takes for the end")
		}
		if n > f.block {
			return buf, fmt.Errorf("lz4: a block of %d bytes, the frame allows %d", n, f.block)
		}
		if n > len(src) {
			return buf, errLZ4Short
		}
		if buf, err = f.expandBlock(buf, src[:n], word&lz4Stored != 0); err != nil {
			return buf, err
		}
		if len(buf) > max {
			return buf, ErrExpansion
		}
		block := src[:n]
		src = src[n:]
		if f.flags&lz4BlockChecksum != 0 {
			if len(src) < 4 {
				return buf, errLZ4Short
			}
			if binary.LittleEndian.Uint32(src) != xxh32(block) {
				return buf, errors.New("lz4: wrong block checksum")
			}
			src = src[4:]
		}
	}
}

// expandBlock appends one block; it may pass the caller's limit by that one block.
func (f *lz4Frame) expandBlock(buf, block []byte, stored bool) ([]byte, error) {
	if stored {
		return append(grow(buf, len(block)), block...), nil
	}
	room := min(f.block, lz4MaxExpansion*len(block))
	buf = grow(buf, room)
	n, err := lz4.UncompressBlock(block, buf[len(buf):len(buf)+room])
	if err != nil {
		return buf, fmt.Errorf("lz4: %w", err)
	}
	return buf[:len(buf)+n], nil
}

// end checks what follows the end mark.
func (f *lz4Frame) end(out, rest []byte) error {
	if f.flags&lz4ContentChecksum != 0 {
		if len(rest) < 4 {
			return errLZ4Short
		}
		if binary.LittleEndian.Uint32(rest) != xxh32(out) {
			return errors.New("lz4: wrong content checksum")
		}
		rest = rest[4:]
	}
	if f.content >= 0 && f.content != int64(len(out)) {
		return fmt.Errorf("lz4: the frame says %d bytes and has %d", f.content, len(out))
	}
	if len(rest) > 0 {
		return errLZ4Trailing
	}
	return nil
}

var (
	lz4Compressors = sync.Pool{New: func() any { return new(lz4.Compressor) }}
	lz4Searchers   = sync.Pool{New: func() any { return new(lz4.CompressorHC) }}
)

// appendLZ4 writes what Java writes: independent 64 KiB blocks, no checksums but the
// header's. As there, every level but the default searches longer.
func appendLZ4(dst, src []byte, level int, sum lz4Sum) []byte {
	start := len(dst)
	dst = binary.LittleEndian.AppendUint32(dst, lz4Magic)
	dst = append(dst, lz4Version|lz4Independent, lz4Block64K)
	if sum == lz4FromMagic {
		dst = append(dst, byte(xxh32(dst[start:])>>8))
	} else {
		dst = append(dst, byte(xxh32(dst[start+4:])>>8))
	}
	encode, done := lz4Encoder(level)
	defer done()
	for len(src) > 0 {
		n := min(len(src), lz4BlockBytes)
		at := len(dst)
		dst = slices.Grow(dst, 4+lz4.CompressBlockBound(n))
		body := dst[at+4 : at+4+lz4.CompressBlockBound(n)]
		size, err := encode(src[:n], body)
		word := uint32(size)
		if err != nil || size == 0 || size >= n {
			size = copy(body, src[:n])
			word = uint32(n) | lz4Stored
		}
		dst = dst[:at+4+size]
		binary.LittleEndian.PutUint32(dst[at:], word)
		src = src[n:]
	}
	return binary.LittleEndian.AppendUint32(dst, 0)
}

// lz4Encoder returns a block encoder for the level and what returns it to its pool.
func lz4Encoder(level int) (encode func(src, dst []byte) (int, error), done func()) {
	const javaDefault = 9 // which stands for "fast" there
	if level == DefaultLevel || level == javaDefault {
		c := lz4Compressors.Get().(*lz4.Compressor)
		return c.CompressBlock, func() { lz4Compressors.Put(c) }
	}
	c := lz4Searchers.Get().(*lz4.CompressorHC)
	c.Level = lz4.CompressionLevel(1 << (7 + min(level, 10))) // search depth, doubling with each level
	return c.CompressBlock, func() { lz4Searchers.Put(c) }
}
