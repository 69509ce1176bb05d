package wire

// Limits of this room. Each bounds a loop or an allocation over input.
const (
	// MaxElements bounds how many array elements one request may hold in all.
	// 200,000 is ten times the partitions one broker is built for. A decoded
	// element takes at most about 120 bytes, so a request costs at most
	// 24 MB beside its own frame.
	MaxElements = 200_000

	// MaxUnknownTags bounds the tagged fields that we skip in one request.
	// No client sends any; kmsg would keep each in a map of about 100 bytes.
	MaxUnknownTags = 1_000

	// MaxPlainBody bounds the body of every request that carries no records:
	// 40,000 topic names of the greatest length (249 bytes) fit with room.
	MaxPlainBody = 16 << 20

	// keepElements is how many elements a reused request keeps room for: one
	// giant request must not pin its memory to a connection for ever.
	keepElements = 4_096

	// maxClientIDs bounds the interned client ids (longest kept: maxInternedID
	// bytes), so about 128 KiB in all. Further ids are copied per request.
	maxClientIDs  = 1_024
	maxInternedID = 128

	// MaxBuffered is how many payload bytes one Fetch answer may copy into the
	// outgoing buffer. Beyond it even small payloads are sent by their owner,
	// so a buffer stays near 1 MiB whatever fetch.max.bytes says.
	MaxBuffered = 1 << 20

	// keepBuffer is the largest outgoing buffer kept between answers.
	keepBuffer = 2 * MaxBuffered
)

// A kept buffer must have room for one full answer's copied payloads.
const _ = uint(keepBuffer - MaxBuffered)
