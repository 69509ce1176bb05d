package producers

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"testing"
	"time"
)

// Claim: no bytes make the reader of snapshots panic; what it takes it writes again, and reads back the same; all else is a *CorruptError
// and leaves an empty table.
// Method: bytes as they are, and with the checksum made right.
func FuzzLoad(f *testing.F) {
	table := New(time.Hour)
	for id := range int64(3) {
		table.Update(info(id, 1, 5, 2), id*10, noon.UnixMilli())
	}
	whole := table.Snapshot()
	f.Add(whole)
	f.Add(whole[:headerSize])
	f.Add(whole[:headerSize+entrySize+7])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		sum := bytes.Clone(b)
		if len(sum) >= headerSize {
			binary.BigEndian.PutUint32(sum[2:], crc32.Checksum(sum[6:], castagnoli))
		}
		for _, b := range [][]byte{b, sum} {
			table := New(time.Hour)
			err := table.Load(b, noon)
			var damaged *CorruptError
			if err != nil {
				if !errors.As(err, &damaged) || table.Len() != 0 {
					t.Fatalf("%v, %d producers", err, table.Len())
				}
				continue
			}
			again := New(time.Hour)
			if err := again.Load(table.Snapshot(), noon); err != nil || again.Len() != table.Len() || !bytes.Equal(again.Snapshot(), table.Snapshot()) {
				t.Fatalf("%v: %d producers, then %d", err, table.Len(), again.Len())
			}
		}
	})
}
