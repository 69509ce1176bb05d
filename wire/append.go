package wire

import "encoding/binary"

// Appending of primitives. The encoder's caller says which generation it is.

func appendInt16(dst []byte, v int16) []byte { return binary.BigEndian.AppendUint16(dst, uint16(v)) }
func appendInt32(dst []byte, v int32) []byte { return binary.BigEndian.AppendUint32(dst, uint32(v)) }
func appendInt64(dst []byte, v int64) []byte { return binary.BigEndian.AppendUint64(dst, uint64(v)) }

func appendUvarint(dst []byte, v uint32) []byte { return binary.AppendUvarint(dst, uint64(v)) }

// appendString is the classic form; strings longer than int16 cannot be said
// in it and are cut: only error messages can be that long.
func appendString(dst []byte, s string) []byte {
	s = s[:min(len(s), 32767)]
	return append(appendInt16(dst, int16(len(s))), s...)
}

func appendStringV(dst []byte, s string, flexible bool) []byte {
	if !flexible {
		return appendString(dst, s)
	}
	return append(appendUvarint(dst, uint32(len(s))+1), s...)
}

func appendNullableV(dst []byte, s *string, flexible bool) []byte {
	switch {
	case s != nil:
		return appendStringV(dst, *s, flexible)
	case flexible:
		return append(dst, 0)
	default:
		return appendInt16(dst, -1)
	}
}

func appendCountV(dst []byte, n int, flexible bool) []byte {
	if flexible {
		return appendUvarint(dst, uint32(n)+1)
	}
	return appendInt32(dst, int32(n))
}

// appendTag appends one tagged field; its size is known from its bytes.
func appendTag(dst []byte, tag uint32, value []byte) []byte {
	dst = appendUvarint(dst, tag)
	dst = appendUvarint(dst, uint32(len(value)))
	return append(dst, value...)
}
