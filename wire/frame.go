package wire

import "encoding/binary"

// BeginFrame reserves the four length bytes of a frame. Give the returned mark
// to EndFrame when the frame is complete.
func BeginFrame(dst []byte) (_ []byte, mark int) {
	return append(dst, 0, 0, 0, 0), len(dst)
}

// EndFrame fills in the length of the frame begun at mark.
func EndFrame(dst []byte, mark int) []byte { return EndFrameWith(dst, mark, 0) }

// EndFrameWith is EndFrame for a frame of which extra bytes are not in dst but
// will be sent in between by their owners (see FetchResponse.Send).
func EndFrameWith(dst []byte, mark, extra int) []byte {
	binary.BigEndian.PutUint32(dst[mark:], uint32(len(dst)-mark-4+extra))
	return dst
}
