package batch

import (
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

const (
	// zstdMaxWindow is what the reference decoder accepts by default (2^27); a frame
	// beyond it no consumer would open. DecodeAll uses the output as its window, so
	// the number costs no memory.
	zstdMaxWindow = 128 << 20

	// zstdSlack is the room behind the limit that lets the block which crosses it be
	// decoded: then "too much" is always told from "corrupt".
	zstdSlack = zstdBlock + 64
	zstdBlock = 128 << 10

	zstdFirstGuess = 4       // expanded size over compressed, for frames that do not say
	zstdWindow     = 8 << 20 // bytes; decoders without memory to spare may refuse more
)

// zstdDecoder decodes whole payloads only, into the capacity it is given: it starts
// no goroutine and needs no closing.
var zstdDecoder = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(maxExpanding),
		zstd.WithDecoderMaxWindow(zstdMaxWindow),
		zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic(fmt.Sprintf("batch: our own zstd options were refused: %v", err))
	}
	return d
})

// expandZstd gives the decoder a buffer that is large enough by what the frame says,
// or by a guess, and a larger one when that was too small; the last one ends a slack
// behind max.
func expandZstd(buf, src []byte, max int) ([]byte, error) {
	limit := max + zstdSlack
	room, err := zstdRoom(src, max)
	if err != nil {
		return buf, err
	}
	for {
		room = min(room, limit)
		buf = grow(buf[:0], room)
		room = min(cap(buf), limit)
		out, err := zstdDecoder().DecodeAll(src, buf[:0:room])
		switch {
		case len(out) > max:
			return buf, ErrExpansion
		case err == nil:
			return out, nil
		case room < limit && (errors.Is(err, zstd.ErrDecoderSizeExceeded) || len(out)+zstdSlack > room):
			room *= 4 // the buffer's end may have been the reason
		case errors.Is(err, zstd.ErrDecoderSizeExceeded):
			return buf, ErrExpansion
		default:
			return buf, fmt.Errorf("zstd: %w", err)
		}
	}
}

// zstdRoom is the size of the first buffer to try.
func zstdRoom(src []byte, limit int) (int, error) {
	var h zstd.Header
	if err := h.Decode(src); err != nil {
		return 0, fmt.Errorf("zstd: %w", unexpected(err))
	}
	if !h.HasFCS {
		return zstdFirstGuess*len(src) + zstdSlack, nil
	}
	if h.FrameContentSize > uint64(limit) {
		return 0, ErrExpansion
	}
	// A block has at least 4 bytes, so a claim beyond this is a lie.
	return int(min(h.FrameContentSize, uint64(len(src))*(zstdBlock/4))) + zstdSlack, nil
}

// zstdEncoders has one encoder for each speed the library knows.
var zstdEncoders [zstd.SpeedBestCompression + 1]struct {
	once sync.Once
	enc  *zstd.Encoder
}

func appendZstd(dst, src []byte, level int) []byte {
	speed := zstd.SpeedFastest // the default: measured faster and no larger than "default" on logs
	if level != DefaultLevel {
		speed = zstd.EncoderLevelFromZstd(level)
	}
	e := &zstdEncoders[speed]
	e.once.Do(func() {
		var err error
		e.enc, err = zstd.NewWriter(nil,
			zstd.WithEncoderLevel(speed),
			zstd.WithEncoderConcurrency(maxExpanding),
			zstd.WithWindowSize(zstdWindow),
			zstd.WithLowerEncoderMem(true),
			zstd.WithZeroFrames(true),
			zstd.WithEncoderCRC(false)) // the batch has its own
		if err != nil {
			panic(fmt.Sprintf("batch: our own zstd options were refused: %v", err))
		}
	})
	return e.enc.EncodeAll(src, dst)
}
