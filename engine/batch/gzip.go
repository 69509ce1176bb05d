package batch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// gunzipper is a decoder with the reader it needs; about 45 KB.
type gunzipper struct {
	src bytes.Reader
	gz  gzip.Reader
}

var gunzippers = sync.Pool{New: func() any { return new(gunzipper) }}

// expandGzip checks the format's own checksum and size. Several members in a row are
// one payload, as in Java; anything else behind the last one is refused.
func expandGzip(buf, src []byte, max int) ([]byte, error) {
	g := gunzippers.Get().(*gunzipper)
	defer func() {
		g.src.Reset(nil)
		gunzippers.Put(g)
	}()
	g.src.Reset(src)
	if err := g.gz.Reset(&g.src); err != nil {
		return buf, fmt.Errorf("gzip: %w", unexpected(err))
	}
	for {
		buf = grow(buf, 1)
		// One byte more than allowed tells "exactly max" from "more than max".
		room := buf[len(buf):min(cap(buf), max+1)]
		n, err := g.gz.Read(room)
		buf = buf[:len(buf)+n]
		switch {
		case len(buf) > max:
			return buf, ErrExpansion
		case errors.Is(err, io.EOF):
			return buf, nil
		case err != nil:
			return buf, fmt.Errorf("gzip: %w", err)
		}
	}
}

// unexpected keeps a payload that ends inside its header from looking like a clean end.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// appender is the io.Writer side of append.
type appender struct{ b []byte }

func (a *appender) Write(p []byte) (int, error) {
	a.b = append(a.b, p...)
	return len(p), nil
}

type gzipper struct {
	dst appender
	gz  *gzip.Writer
}

// gzippers has a pool for each level: a writer cannot change its own. About 300 KB each.
var gzippers [maxGzip + 1]sync.Pool

func appendGzip(dst, src []byte, level int) []byte {
	pool := &gzippers[max(level, DefaultLevel)]
	g, _ := pool.Get().(*gzipper)
	if g == nil {
		g = new(gzipper)
		if level == DefaultLevel {
			level = gzip.DefaultCompression
		}
		g.gz, _ = gzip.NewWriterLevel(&g.dst, level) // fails on levels CheckLevel refused
	}
	g.dst.b = dst
	g.gz.Reset(&g.dst)
	_, _ = g.gz.Write(src) // an appender never fails
	_ = g.gz.Close()
	dst, g.dst.b = g.dst.b, nil
	pool.Put(g)
	return dst
}
