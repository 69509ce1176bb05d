package batch

import (
	"fmt"
	"math"
	"slices"
)

// Codec is how a batch's records are compressed; the numbers are the format's.
type Codec int8

// The codecs. Zstd exists in magic 2 only.
const (
	None Codec = iota
	Gzip
	Snappy
	LZ4
	Zstd
)

var codecNames = []string{None: "none", Gzip: "gzip", Snappy: "snappy", LZ4: "lz4", Zstd: "zstd"}

// String is the name Kafka's settings use.
func (c Codec) String() string {
	if c.known() {
		return codecNames[c]
	}
	return fmt.Sprintf("codec %d", int8(c))
}

func (c Codec) known() bool { return c >= None && c <= Zstd }

// ParseCodec reads a name as in compression.type; "uncompressed" is none.
func ParseCodec(name string) (Codec, error) {
	if name == "uncompressed" {
		return None, nil
	}
	if i := slices.Index(codecNames, name); i >= 0 {
		return Codec(i), nil
	}
	return None, fmt.Errorf("unknown codec %q: want one of %v", name, codecNames)
}

// Levels each codec's setting may have, as in Kafka; DefaultLevel is always fine.
const (
	DefaultLevel = 0

	minGzip, maxGzip = 1, 9 // and -1, the codec's own default
	minLZ4, maxLZ4   = 1, 17
	minZstd, maxZstd = -131072, 22
)

// CheckLevel refuses a level that c's setting in Kafka cannot have.
func CheckLevel(c Codec, level int) error {
	low, high := 0, 0
	switch c {
	case None, Snappy: // have none
	case Gzip:
		low, high = minGzip, maxGzip
		if level == -1 {
			return nil
		}
	case LZ4:
		low, high = minLZ4, maxLZ4
	case Zstd:
		low, high = minZstd, maxZstd
	}
	if level != DefaultLevel && (level < low || level > high) {
		return fmt.Errorf("%v: level %d is outside %d..%d", c, level, low, high)
	}
	return nil
}

// Compress appends src, compressed as Kafka's consumers expect it, to dst. It fails
// only on a codec or level that does not exist. dst and src may not overlap.
func Compress(c Codec, level int, dst, src []byte) ([]byte, error) {
	return compress(c, level, dst, src, lz4Descriptor)
}

func compress(c Codec, level int, dst, src []byte, sum lz4Sum) ([]byte, error) {
	if !c.known() {
		return dst, refuse(UnsupportedCodec, "%v", c)
	}
	if err := CheckLevel(c, level); err != nil {
		return dst, err
	}
	switch c {
	case Gzip:
		return appendGzip(dst, src, level), nil
	case Snappy:
		return appendXerial(dst, src), nil
	case LZ4:
		return appendLZ4(dst, src, level, sum), nil
	case Zstd:
		return appendZstd(dst, src, level), nil
	}
	return append(dst, src...), nil
}

// Decompress appends what src expands to, at most max bytes, to dst. src must be
// one whole payload with nothing behind it. errors.Is(err, ErrExpansion) if it would
// be more than max; memory used is bounded by max plus one block in any case.
func Decompress(c Codec, dst, src []byte, max int) ([]byte, error) {
	tail := dst[len(dst):]
	out, err := expand(c, tail, src, max, lz4Descriptor)
	if err != nil {
		return dst, err
	}
	if cap(tail) > 0 && cap(out) > 0 && &out[:1][0] == &tail[:1][0] {
		return dst[:len(dst)+len(out)], nil
	}
	return append(dst, out...), nil
}

// expand decompresses src into buf, from buf's start, and returns what it used: buf
// itself, or a larger one if need be. On an error the buffer comes back as well,
// with unspecified contents, so that a pool keeps what was grown.
func expand(c Codec, buf, src []byte, limit int, sum lz4Sum) ([]byte, error) {
	buf = buf[:0]
	limit = min(max(limit, 0), math.MaxInt32) // the format's lengths end there, and our sums stay far from overflow
	switch c {
	case None:
		if len(src) > limit {
			return buf, ErrExpansion
		}
		return append(buf, src...), nil
	case Gzip:
		return expandGzip(buf, src, limit)
	case Snappy:
		return expandSnappy(buf, src, limit)
	case LZ4:
		return expandLZ4(buf, src, limit, sum)
	case Zstd:
		return expandZstd(buf, src, limit)
	}
	return buf, refuse(UnsupportedCodec, "%v", c)
}
