package dump

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// producer is an entry of a producer snapshot.
type producer struct {
	id                    int64
	epoch                 int16
	lastSequence, delta   int32
	lastOffset, timestamp int64
	coordinatorEpoch      int32
	txnFirst              int64
}

const (
	snapshotHead  = 10
	snapshotEntry = 46
)

// readSnapshot reads a producer snapshot: version int16, CRC-32C uint32 of what follows, count int32, entries.
func readSnapshot(path string, b []byte) ([]producer, error) {
	be := binary.BigEndian
	if len(b) < snapshotHead {
		return nil, fmt.Errorf("%s: %d bytes; a snapshot has at least %d", path, len(b), snapshotHead)
	}
	if v := be.Uint16(b); v != 1 {
		return nil, fmt.Errorf("%s: version %d of a snapshot is not known, only 1", path, v)
	}
	if want, got := be.Uint32(b[2:]), crc32.Checksum(b[6:], crc32.MakeTable(crc32.Castagnoli)); want != got {
		return nil, fmt.Errorf("%s: snapshot is corrupt: checksum %08x, computed %08x", path, want, got)
	}
	n := int(int32(be.Uint32(b[6:])))
	if n < 0 || len(b)-snapshotHead != n*snapshotEntry {
		return nil, fmt.Errorf("%s: %d bytes for %d producers", path, len(b), n)
	}
	var list []producer
	for e := b[snapshotHead:]; len(e) > 0; e = e[snapshotEntry:] {
		list = append(list, producer{
			id: int64(be.Uint64(e)), epoch: int16(be.Uint16(e[8:])), lastSequence: int32(be.Uint32(e[10:])), lastOffset: int64(be.Uint64(e[14:])),
			delta: int32(be.Uint32(e[22:])), timestamp: int64(be.Uint64(e[26:])), coordinatorEpoch: int32(be.Uint32(e[34:])), txnFirst: int64(be.Uint64(e[38:])),
		})
	}
	return list, nil
}
