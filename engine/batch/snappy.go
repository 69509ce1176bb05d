package batch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/s2"
)

// Snappy has two framings among Kafka's clients: Java's library writes a header and
// then blocks with their lengths ("xerial"), most others one bare block. Readers take
// both; we write the first, which every reader knows.
var xerialMagic = []byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0}

// xerialHeader is magic, version and oldest compatible version.
var xerialHeader = []byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1}

const xerialBlock = 32 << 10 // bytes of input in each block, as Java's default

var errXerial = errors.New("snappy: a block's length runs past the end")

// expandSnappy decodes blocks with golang/snappy and not with the faster s2 on
// purpose: s2 also accepts its own extensions (repeated offsets), and a block that
// uses them is unreadable to every other client. What we let in must be plain snappy.
func expandSnappy(buf, src []byte, max int) ([]byte, error) {
	if len(src) < len(xerialHeader) || !bytes.HasPrefix(src, xerialMagic) {
		return expandSnappyBlock(buf, src, max)
	}
	for len(src) > 0 {
		// The first stream, or a further one behind it: Java's reader takes both.
		if bytes.HasPrefix(src, xerialMagic) && len(src) >= len(xerialHeader) {
			if v := int32(binary.BigEndian.Uint32(src[len(xerialMagic):])); v < 1 {
				return buf, fmt.Errorf("snappy: version %d", v)
			}
			src = src[len(xerialHeader):]
			continue
		}
		if len(src) < 4 {
			return buf, errXerial
		}
		n := int64(int32(binary.BigEndian.Uint32(src)))
		if src = src[4:]; n < 0 || n > int64(len(src)) {
			return buf, errXerial
		}
		var err error
		if buf, err = expandSnappyBlock(buf, src[:n], max); err != nil {
			return buf, err
		}
		src = src[n:]
	}
	return buf, nil
}

// expandSnappyBlock appends one block to buf.
func expandSnappyBlock(buf, src []byte, max int) ([]byte, error) {
	n, err := snappy.DecodedLen(src)
	if err != nil {
		return buf, fmt.Errorf("snappy: %w", err)
	}
	if n > max-len(buf) {
		return buf, ErrExpansion
	}
	// The format cannot expand more than 64 bytes from 3, so a longer claim is a lie
	// that must not make us allocate.
	if int64(n) > maxSnappyRatio*int64(len(src)) {
		return buf, fmt.Errorf("snappy: %w", snappy.ErrCorrupt)
	}
	buf = grow(buf, n)
	if _, err := snappy.Decode(buf[len(buf):len(buf)+n], src); err != nil {
		return buf, fmt.Errorf("snappy: %w", err)
	}
	return buf[:len(buf)+n], nil
}

// maxSnappyRatio: a copy element of 3 bytes makes at most 64 (64/3 rounded up).
const maxSnappyRatio = 22

func appendXerial(dst, src []byte) []byte {
	dst = append(dst, xerialHeader...)
	for len(src) > 0 {
		n := min(len(src), xerialBlock)
		dst = slices.Grow(dst, 4+s2.MaxEncodedLen(n))
		at := len(dst)
		block := s2.EncodeSnappy(dst[at+4:at+4:cap(dst)], src[:n])
		dst = dst[:at+4+len(block)]
		binary.BigEndian.PutUint32(dst[at:], uint32(len(block)))
		src = src[n:]
	}
	return dst
}
