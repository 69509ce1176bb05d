package batch

// Record is one message. Key and Value alias what they were read from; nil is
// Kafka's null, which an empty non-nil slice is not.
type Record struct {
	Offset    int64
	Timestamp int64 // ms, -1 none
	Key       []byte
	Value     []byte
	Headers   []Header
}

// Header is a named value beside the record's own; magic 2 only.
type Header struct {
	Key   string
	Value []byte
}
