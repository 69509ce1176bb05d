package compact

import (
	"crypto/sha256"
	"encoding/binary"
)

// Bytes of one entry: 16 of the key's hash, 8 of the offset.
const (
	entryBytes = 24
	hashBytes  = 16
)

// maxLoad is how full the table may get: beyond it probing gets long.
const maxLoad = 0.9

// Map remembers the newest offset of each key in memory of a fixed size. Keys are known by 16 bytes of their SHA-256: two keys
// that agree in them are not to be found. A Map has one owner at a time.
type Map struct {
	slots []byte // entryBytes each; an offset of 0 is a free slot, so offsets are kept plus one
	used  int
	limit int
	end   int64 // one above the newest offset put in; 0 none
}

// NewMap returns an empty map of at most size bytes, at least one entry.
func NewMap(size int64) *Map {
	n := max(size/entryBytes, 2)
	return &Map{slots: make([]byte, n*entryBytes), limit: max(int(float64(n)*maxLoad), 1)}
}

// Clear empties the map and keeps its memory.
func (m *Map) Clear() {
	clear(m.slots)
	m.used, m.end = 0, 0
}

// Len is the number of keys.
func (m *Map) Len() int { return m.used }

// End is one above the largest offset in the map: what lies at or above it was not looked at. 0 when empty.
func (m *Map) End() int64 { return m.end }

// Put notes that key was written at offset, which is above all before. False: the map is full and key is not in it; nothing changed.
func (m *Map) Put(key []byte, offset int64) bool {
	slot, found := m.find(key)
	if !found {
		if m.used >= m.limit {
			return false
		}
		m.used++
		h := sha256.Sum256(key)
		copy(slot, h[:hashBytes])
	}
	binary.LittleEndian.PutUint64(slot[hashBytes:], uint64(offset)+1)
	m.end = max(m.end, offset+1)
	return true
}

// Newest is the offset of the key's newest record, if it is in the map.
func (m *Map) Newest(key []byte) (offset int64, ok bool) {
	slot, found := m.find(key)
	if !found {
		return 0, false
	}
	return int64(binary.LittleEndian.Uint64(slot[hashBytes:])) - 1, true
}

// find is the key's slot or the free one where it would go.
func (m *Map) find(key []byte) (slot []byte, found bool) {
	h := sha256.Sum256(key)
	n := len(m.slots) / entryBytes
	for i := int(binary.LittleEndian.Uint64(h[:]) % uint64(n)); ; i++ {
		if i == n {
			i = 0
		}
		slot = m.slots[i*entryBytes:][:entryBytes]
		if binary.LittleEndian.Uint64(slot[hashBytes:]) == 0 {
			return slot, false
		}
		if string(slot[:hashBytes]) == string(h[:hashBytes]) {
			return slot, true
		}
	}
}
