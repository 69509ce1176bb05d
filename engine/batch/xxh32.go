package batch

import (
	"encoding/binary"
	"math/bits"
)

// xxHash 32 with seed 0, the checksum of the lz4 frame; the library keeps its own
// to itself. Source: the xxHash specification.
const (
	prime1 uint32 = 2654435761
	prime2 uint32 = 2246822519
	prime3 uint32 = 3266489917
	prime4 uint32 = 668265263
	prime5 uint32 = 374761393
)

func xxh32(b []byte) uint32 {
	size := uint32(len(b))
	h := prime5
	if len(b) >= 16 {
		var zero uint32
		v1, v2, v3, v4 := zero+prime1+prime2, zero+prime2, zero, zero-prime1
		for len(b) >= 16 {
			v1 = xxhRound(v1, binary.LittleEndian.Uint32(b))
			v2 = xxhRound(v2, binary.LittleEndian.Uint32(b[4:]))
			v3 = xxhRound(v3, binary.LittleEndian.Uint32(b[8:]))
			v4 = xxhRound(v4, binary.LittleEndian.Uint32(b[12:]))
			b = b[16:]
		}
		h = bits.RotateLeft32(v1, 1) + bits.RotateLeft32(v2, 7) + bits.RotateLeft32(v3, 12) + bits.RotateLeft32(v4, 18)
	}
	h += size
	for ; len(b) >= 4; b = b[4:] {
		h = bits.RotateLeft32(h+binary.LittleEndian.Uint32(b)*prime3, 17) * prime4
	}
	for _, c := range b {
		h = bits.RotateLeft32(h+uint32(c)*prime5, 11) * prime1
	}
	h = (h ^ h>>15) * prime2
	h = (h ^ h>>13) * prime3
	return h ^ h>>16
}

func xxhRound(v, word uint32) uint32 {
	return bits.RotateLeft32(v+word*prime2, 13) * prime1
}
