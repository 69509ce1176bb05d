package wire

// hole is a place in the outgoing buffer at which a payload is sent.
type hole struct {
	at      int // bytes of the buffer that come before it
	payload Payload
}

// Send appends the whole frame of the answer to w. Payloads below threshold
// bytes are copied into the buffer, until MaxBuffered of them are; the others
// are sent by their owners with the headers before them, and what follows the
// last of them stays buffered for Flush. All payloads are released, whatever
// happens.
//
// A payload that cannot be read into the buffer answers its partition alone
// with a storage error (see ReadError). One that cannot be sent breaks the
// frame: the error is returned, and the connection must be closed.
func (r *FetchResponse) Send(w *Writer, h Header, threshold int) error {
	defer r.Release()
	if w.err != nil {
		return w.err
	}
	copied, extra := 0, 0
	r.holes = r.holes[:0]
	dst, mark := BeginFrame(w.buf)
	dst = AppendResponseHeader(dst, h)
	dst = r.append(dst, h.Version, func(dst []byte, p *FetchPartitionResult) ([]byte, error) {
		if size := p.size(); p.Payload != nil && size > 0 && (size >= threshold || copied+size > MaxBuffered) {
			extra += size
			r.holes = append(r.holes, hole{at: len(dst), payload: p.Payload})
			return dst, nil
		}
		copied += p.size()
		return p.appendRecords(dst)
	})
	w.buf = EndFrameWith(dst, mark, extra)
	err := w.sendHoles(r.holes)
	clear(r.holes) // keep no payload alive
	return err
}

// sendHoles sends the buffer up to each hole, then the hole's payload; what
// comes after the last hole stays buffered.
func (w *Writer) sendHoles(holes []hole) error {
	if len(holes) == 0 {
		return nil
	}
	sent := 0
	for _, h := range holes {
		if err := w.flushMore(w.buf[sent:h.at]); err != nil {
			return err
		}
		sent = h.at
		if err := w.sendPayload(h.payload); err != nil {
			return err
		}
	}
	w.buf = w.buf[:copy(w.buf, w.buf[sent:])]
	return nil
}
