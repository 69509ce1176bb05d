package batch

import "fmt"

// Recompress returns, in memory of its own, the batch b (magic 2, checked) with its
// records compressed by c at level; nothing else changes but length and checksum. It
// is for topics whose compression.type is not what the producer used.
func Recompress(b []byte, c Codec, level int) ([]byte, error) {
	if size, err := Split(b); err != nil || size != len(b) || b[atMagic] != 2 {
		return nil, corrupt("one whole batch of magic 2", "%d bytes (%v)", len(b), err)
	}
	v := View(b)
	payload := v.Payload()
	if from := v.Codec(); from != None && !v.emptied() {
		s := borrow()
		defer s.giveBack()
		var err error
		if payload, err = s.expand(from, payload, maxStoredExpanded, lz4Descriptor); err != nil {
			return nil, unreadable(err)
		}
	}
	out := append(make([]byte, 0, len(b)), b[:HeaderSize]...)
	out[atAttributes+1] = out[atAttributes+1]&^attrCodec | byte(c)
	out, err := Compress(c, level, out, payload)
	if err != nil {
		return nil, fmt.Errorf("recompress: %w", err)
	}
	return seal(out), nil
}
