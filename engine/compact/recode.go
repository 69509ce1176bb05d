package compact

import "millrace/engine/batch"

// Recode is how the batches that stay are compressed, for topics whose compression.type names a codec. Kafka's cleaner leaves each batch its own
// codec; here what is rewritten anyway becomes what the topic's settings say, so that a changed setting reaches old records too.
type Recode struct {
	Codec batch.Codec
	Level int
	Most  int // bytes: a batch that would become larger than this, and than it was, stays as it is; 0: no bound
}

// recode gives what Thin has appended to dst behind from its codec. Markers, bare headers and old message sets have none to change.
func (p *Pass) recode(dst []byte, from int) ([]byte, error) {
	r, b := p.o.Recode, dst[from:]
	if r == nil || len(b) < batch.HeaderSize {
		return dst, nil
	}
	if v := batch.View(b); v.Magic() < 2 || v.IsControl() || v.Count() == 0 || v.Codec() == r.Codec {
		return dst, nil
	}
	out, err := batch.Recompress(b, r.Codec, r.Level)
	if err != nil {
		return dst, err
	}
	if r.Most > 0 && len(out) > r.Most && len(out) > len(b) {
		return dst, nil
	}
	return append(dst[:from], out...), nil
}

// thinLevel is the level at which Thin compresses again what has that codec already.
func (r *Recode) thinLevel(c batch.Codec) int {
	if r == nil || c != r.Codec || c == batch.None || c == batch.Snappy {
		return batch.DefaultLevel
	}
	return r.Level
}
