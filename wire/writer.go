package wire

import (
	"fmt"
	"net"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Writer is a connection's outgoing buffer. Answers are appended in request
// order and leave in that order (W3), together, in one write per Flush.
// One goroutine owns it. After an error the connection is not in step with its
// client any more: every later call returns the same error.
type Writer struct {
	conn net.Conn
	more func(b []byte) error // a write that tells the kernel that more follows; nil if the connection cannot
	buf  []byte
	sent int64
	err  error
}

// NewWriter makes the writer of a connection.
func NewWriter(conn net.Conn) *Writer {
	return &Writer{conn: conn, more: moreWriter(conn)}
}

// Buffered is how many bytes wait for Flush.
func (w *Writer) Buffered() int { return len(w.buf) }

// Sent is how many bytes have been handed to the connection.
func (w *Writer) Sent() int64 { return w.sent }

// Err is the first error, after which nothing is sent.
func (w *Writer) Err() error { return w.err }

// Append lends the buffer to add, which returns it with whole frames appended.
func (w *Writer) Append(add func(dst []byte) []byte) { w.buf = add(w.buf) }

// Respond appends the whole frame of an answer that goes through kmsg.
func (w *Writer) Respond(h Header, resp kmsg.Response) { w.buf = AppendResponse(w.buf, h, resp) }

// RespondProduce appends the whole frame of a Produce answer.
func (w *Writer) RespondProduce(h Header, resp *ProduceResponse) {
	dst, mark := BeginFrame(w.buf)
	dst = AppendResponseHeader(dst, h)
	dst = resp.AppendTo(dst, h.Version)
	w.buf = EndFrame(dst, mark)
}

// Flush sends all that is buffered in one write.
func (w *Writer) Flush() error {
	if w.err != nil || len(w.buf) == 0 {
		return w.err
	}
	_, err := w.conn.Write(w.buf)
	w.finish(err)
	return w.err
}

// flushMore sends b, a front part of the buffer, and lets the kernel hold back the last part
// of a packet for the file bytes that follow at once.
func (w *Writer) flushMore(b []byte) error {
	if w.err != nil || len(b) == 0 {
		return w.err
	}
	var err error
	if w.more != nil {
		err = w.more(b)
	} else {
		_, err = w.conn.Write(b)
	}
	if err != nil {
		w.err = err
	} else {
		w.sent += int64(len(b))
	}
	return w.err
}

func (w *Writer) finish(err error) {
	if err != nil {
		w.err = err
	} else {
		w.sent += int64(len(w.buf))
	}
	if w.buf = w.buf[:0]; cap(w.buf) > keepBuffer {
		w.buf = nil // a giant answer must not pin its memory to the connection
	}
}

// sendPayload hands the connection to the payload's owner.
func (w *Writer) sendPayload(p Payload) error {
	if w.err != nil {
		return w.err
	}
	n, err := p.SendTo(w.conn)
	w.sent += n
	if err == nil && n != int64(p.Size()) {
		err = fmt.Errorf("payload sent %d of its %d bytes", n, p.Size())
	}
	if err != nil {
		w.err = err
	}
	return w.err
}
