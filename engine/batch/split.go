package batch

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum is CRC-32C, which the processor computes.
func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// splitHeader is what Split needs: offset, length, four bytes and the magic.
const splitHeader = atMagic + 1

// Split returns the size in bytes of the first entry in b, of any magic, from its
// header alone. ErrShort with size 0 if b does not hold that much, ErrShort with the
// entry's size if b ends before the entry does; a *CorruptError if no entry can look
// like this.
func Split(b []byte) (size int, err error) {
	if len(b) < splitHeader {
		return 0, ErrShort
	}
	magic, least := int8(b[atMagic]), 0
	switch magic {
	case 0:
		least = LogOverhead + messageOverheadV0
	case 1:
		least = LogOverhead + messageOverheadV1
	case 2:
		least = HeaderSize
	default:
		return 0, corrupt("magic 0, 1 or 2", "magic %d", magic)
	}
	size = LogOverhead + int(int32(binary.BigEndian.Uint32(b[atLength:])))
	if size < least {
		return 0, corrupt(fmt.Sprintf("at least %d bytes of magic %d", least, magic), "length %d", size)
	}
	if size > len(b) {
		return size, ErrShort
	}
	return size, nil
}

// CheckStored looks at one stored entry of any magic, as recovery and followers do:
// its length, header and checksum, not its records. b must be exactly that entry. Any
// failure is a *CorruptError, whose place the caller fills in.
func CheckStored(b []byte) (Info, error) {
	size, err := Split(b)
	switch {
	case err == ErrShort:
		return Info{}, corrupt(fmt.Sprintf("%d bytes", max(size, splitHeader)), "%d bytes", len(b))
	case err != nil:
		return Info{}, err
	case size != len(b):
		return Info{}, corrupt(fmt.Sprintf("one entry of %d bytes", size), "%d bytes", len(b))
	}
	if b[atMagic] < 2 {
		return checkStoredMessage(b)
	}
	v := View(b)
	if want, got := v.CRC(), v.crc(); want != got {
		return Info{}, corrupt(fmt.Sprintf("checksum %08x", want), "%08x", got)
	}
	delta, count := v.LastOffsetDelta(), v.Count()
	switch base := v.BaseOffset(); {
	case base < 0 || base > math.MaxInt64-math.MaxInt32:
		return Info{}, corrupt("a base offset of 0 or more", "%d", base)
	case delta < 0:
		return Info{}, corrupt("a last offset delta of 0 or more", "%d", delta)
	case count < 0 || int64(count) > int64(delta)+1:
		return Info{}, corrupt(fmt.Sprintf("0 to %d records", int64(delta)+1), "%d", count)
	}
	return v.info(), nil
}

// Stamp writes the base offset and the leader's epoch into a magic-2 batch. Both stand
// outside the checksum, so nothing else changes.
func Stamp(b []byte, base int64, leaderEpoch int32) {
	binary.BigEndian.PutUint64(b[atBaseOffset:], uint64(base))
	binary.BigEndian.PutUint32(b[atLeaderEpoch:], uint32(leaderEpoch))
}

// StampAppendTime gives a magic-2 batch the timestamp type LogAppendTime and the time
// ms, which is from then on every record's; the checksum is computed anew.
func StampAppendTime(b []byte, ms int64) {
	b[atAttributes+1] |= attrAppendTime
	stampMaxTimestamp(b, ms)
}

func stampMaxTimestamp(b []byte, ms int64) {
	binary.BigEndian.PutUint64(b[atMaxTimestamp:], uint64(ms))
	binary.BigEndian.PutUint32(b[atCRC:], View(b).crc())
}
