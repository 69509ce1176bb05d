package batch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// Message sets, magic 0 and 1: entries of offset, size and one message, which is
//
//	crc uint32 | magic int8 | attributes int8 | [timestamp int64, magic 1] |
//	key length int32, key | value length int32, value
//
// A compressed message is a wrapper: its value is a message set of the same magic.
const (
	messageOverheadV0 = 14 // bytes of a message with neither key nor value
	messageOverheadV1 = 22

	atMessageCRC        = 12
	atMessageAttributes = 17
	atMessageTimestamp  = 18 // magic 1
	atMessageKeyV0      = 18
	atMessageKeyV1      = 26
)

// message is one entry of magic 0 or 1. Key and value alias the bytes.
type message struct {
	offset     int64
	timestamp  int64 // -1 for magic 0
	magic      int8
	attributes byte
	key, value []byte // nil is null
}

func (m *message) codec() Codec     { return Codec(m.attributes & attrCodec) }
func (m *message) appendTime() bool { return m.magic == 1 && m.attributes&attrAppendTime != 0 }

// parseMessage reads one entry, which Split has found to be exactly b. It does not
// look at the checksum.
func parseMessage(b []byte) (m message, err error) {
	m.offset = int64(binary.BigEndian.Uint64(b))
	m.magic = int8(b[atMagic])
	m.attributes = b[atMessageAttributes]
	m.timestamp = noTimestamp
	p := atMessageKeyV0
	if m.magic == 1 {
		m.timestamp = int64(binary.BigEndian.Uint64(b[atMessageTimestamp:]))
		p = atMessageKeyV1
	}
	if m.key, p = sizedBytes(b, p); p < 0 {
		return m, corrupt("a key inside the message", "a length that runs past its end or is below -1")
	}
	if m.value, p = sizedBytes(b, p); p < 0 {
		return m, corrupt("a value inside the message", "a length that runs past its end or is below -1")
	}
	if p != len(b) {
		return m, corrupt("a message that ends with its value", "%d bytes more", len(b)-p)
	}
	return m, nil
}

// sizedBytes reads an int32 length and that many bytes; next is -1 if they are not there.
func sizedBytes(b []byte, p int) (s []byte, next int) {
	if len(b)-p < 4 {
		return nil, -1
	}
	n := int(int32(binary.BigEndian.Uint32(b[p:])))
	p += 4
	if n == -1 {
		return nil, p
	}
	if n < 0 || n > len(b)-p {
		return nil, -1
	}
	return b[p : p+n : p+n], p + n
}

// messageSums returns the stored and the real CRC-32 (IEEE, unlike magic 2's) of an entry.
func messageSums(b []byte) (stored, real uint32) {
	return binary.BigEndian.Uint32(b[atMessageCRC:]), crc32.ChecksumIEEE(b[atMagic:])
}

func checkStoredMessage(b []byte) (Info, error) {
	if want, got := messageSums(b); want != got {
		return Info{}, corrupt(fmt.Sprintf("checksum %08x", want), "%08x", got)
	}
	m, err := parseMessage(b)
	if err != nil {
		return Info{}, err
	}
	if m.offset < 0 {
		return Info{}, corrupt("an offset of 0 or more", "%d", m.offset)
	}
	i := Info{
		Size: len(b), BaseOffset: m.offset, Count: 1,
		BaseTimestamp: m.timestamp, MaxTimestamp: m.timestamp,
		ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1, LeaderEpoch: -1,
		Attributes: int16(m.attributes), Magic: m.magic,
	}
	if m.codec() != None {
		i.Count = CountUnknown
	}
	return i, nil
}

// appendMessage appends one entry, checksum included.
func appendMessage(dst []byte, m *message) []byte {
	start := len(dst)
	dst = appendMessageHead(dst, m)
	dst = appendSized(dst, m.value)
	return sealMessage(dst, start)
}

// appendMessageHead appends everything before the value; sealMessage completes it.
func appendMessageHead(dst []byte, m *message) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(m.offset))
	dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0, byte(m.magic), m.attributes)
	if m.magic == 1 {
		dst = binary.BigEndian.AppendUint64(dst, uint64(m.timestamp))
	}
	return appendSized(dst, m.key)
}

func appendSized(dst, s []byte) []byte {
	if s == nil {
		return append(dst, 0xff, 0xff, 0xff, 0xff)
	}
	return append(binary.BigEndian.AppendUint32(dst, uint32(len(s))), s...)
}

// sealMessage fills in size and checksum of the entry that starts at start.
func sealMessage(dst []byte, start int) []byte {
	e := dst[start:]
	binary.BigEndian.PutUint32(e[atLength:], uint32(len(e)-LogOverhead))
	binary.BigEndian.PutUint32(e[atMessageCRC:], crc32.ChecksumIEEE(e[atMagic:]))
	return dst
}

var errNoMessages = errors.New("a compressed message without messages in it")

// innerSet walks the entries of a wrapper's expanded value. It returns the offset of the last.
func innerSet(set []byte, magic int8, each func(entry []byte) error) (last int64, err error) {
	if len(set) == 0 {
		return 0, errNoMessages
	}
	for len(set) > 0 {
		size, err := Split(set)
		if err != nil {
			return 0, err
		}
		if inner := int8(set[atMagic]); inner != magic {
			return 0, fmt.Errorf("a message of magic %d inside one of magic %d", inner, magic)
		}
		if each != nil {
			if err := each(set[:size]); err != nil {
				return 0, err
			}
		}
		last = int64(binary.BigEndian.Uint64(set))
		set = set[size:]
	}
	return last, nil
}
