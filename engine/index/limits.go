package index

// Bounds of this package, with their arithmetic.
const (
	// pageBytes is how much one look-up of a sealed or paged index reads, at most.
	pageBytes = 4096

	// maxFileBytes is the largest index file that is taken seriously: Kafka's own
	// settings (segment.index.bytes) end at 2^31-1.
	maxFileBytes = 1<<31 - 1

	// firstChunk and nextChunk are how many bytes of a mapped index get their disk
	// blocks at a time. Touching a mapped hole of a full disk is a SIGBUS; asking for
	// the blocks first makes it an error. The first chunk serves 512 entries, which
	// is 2 MiB of log: most small logs never ask again.
	firstChunk = 4 << 10
	nextChunk  = 64 << 10

	// mapFrom is the number of entries from which an active index is mapped.
	mapFrom = 2

	// loadBuffer is the unit in which a whole index is read and checked, once.
	loadBuffer = 64 << 10

	// maxSweep bounds the search for an idle index whose file can be taken.
	maxSweep = 64
)
