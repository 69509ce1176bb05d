package batch

import (
	"encoding/binary"
	"fmt"
	"math"
)

// DownConvert appends, for a fetcher of before 0.11 (magic 1) or 0.10 (magic 0), the
// message sets of whole stored batches to dst. Headers and, for magic 0, timestamps
// are lost; control batches are left out, since old clients would show them to users.
// A batch that is cut at the end of batches is left out too. Entries that are old
// enough already are copied as they stand.
//
// Records below from are left out of uncompressed batches; a compressed batch is
// converted whole, and clients skip what they did not ask for, as they always did.
// An *Error with UnsupportedCodec on zstd, which the old formats do not have (F047), a
// *CorruptError on what cannot be read; dst then comes back as it was.
func DownConvert(dst []byte, batches []byte, magic int8, from int64) ([]byte, error) {
	if magic != 0 && magic != 1 {
		panic(fmt.Sprintf("batch: down-conversion to magic %d", magic))
	}
	s := borrow()
	defer s.giveBack()
	d := downConverter{scratch: s, magic: magic, from: from}
	out := dst
	for len(batches) > 0 {
		size, err := Split(batches)
		if err == ErrShort {
			break
		}
		if err == nil {
			out, err = d.entry(out, batches[:size])
		}
		if err != nil {
			return dst, err
		}
		batches = batches[size:]
	}
	return out, nil
}

// downConverter is one call of DownConvert.
type downConverter struct {
	*scratch
	magic int8
	from  int64
}

func (d *downConverter) entry(dst, b []byte) ([]byte, error) {
	codec := Codec(b[atMessageAttributes] & attrCodec)
	appendTime := false
	switch magic := int8(b[atMagic]); {
	case magic <= d.magic:
		return append(dst, b...), nil
	case magic == 2:
		v := View(b)
		if v.IsControl() {
			return dst, nil
		}
		codec, appendTime = v.Codec(), v.AppendTime()
	}
	if codec == Zstd {
		return dst, refuse(UnsupportedCodec, "%v in magic %d", codec, d.magic)
	}
	m := message{magic: d.magic}
	if appendTime && d.magic == 1 {
		m.attributes = attrAppendTime
	}
	if codec != None {
		return d.wrapper(dst, b, codec, m)
	}
	var r Record
	err := d.visit(b, &r, func() bool {
		if r.Offset >= d.from {
			m.set(&r)
			dst = appendMessage(dst, &m)
		}
		return true
	})
	return dst, err
}

// set makes m the message of r.
func (m *message) set(r *Record) {
	m.offset, m.key, m.value = r.Offset, r.Key, r.Value
	m.timestamp = noTimestamp
	if m.magic == 1 {
		m.timestamp = r.Timestamp
	}
}

// wrapper converts a compressed batch to one compressed message. Its offset is the
// last one inside; with magic 1 the inner ones count from the first.
func (d *downConverter) wrapper(dst, b []byte, codec Codec, outer message) ([]byte, error) {
	var (
		r      Record
		inner  = outer
		set    = d.set[:0]
		first  int64
		last   int64
		newest = int64(math.MinInt64)
	)
	err := d.visit(b, &r, func() bool {
		if len(set) == 0 {
			first = r.Offset
		}
		last, newest = r.Offset, max(newest, r.Timestamp)
		inner.set(&r)
		if d.magic == 1 {
			inner.offset -= first
		}
		set = appendMessage(set, &inner)
		return true
	})
	d.set = set[:0]
	if err != nil || len(set) == 0 {
		return dst, err
	}
	outer.set(&Record{Offset: last, Timestamp: newest})
	outer.attributes |= byte(codec)
	sum := lz4Descriptor
	if d.magic == 0 {
		sum = lz4FromMagic
	}
	start := len(dst)
	out := appendMessageHead(dst, &outer)
	sizeAt := len(out)
	out = append(out, 0, 0, 0, 0)
	out, err = compress(codec, DefaultLevel, out, set, sum)
	if err != nil {
		return dst, err
	}
	binary.BigEndian.PutUint32(out[sizeAt:], uint32(len(out)-sizeAt-4))
	return sealMessage(out, start), nil
}
