package producers

import "fmt"

// Kind tells the two refusals apart.
type Kind int8

const (
	OutOfOrder  Kind = iota // a gap, or an old batch that is no longer known
	FencedEpoch             // a newer incarnation of this producer is known
)

// SequenceError refuses a batch; nothing of it was stored.
type SequenceError struct {
	ProducerID int64
	Epoch      int16 // of the refused batch
	Want, Got  int32 // sequences if OutOfOrder, epochs if FencedEpoch
	Kind       Kind
}

func (e *SequenceError) Error() string {
	if e.Kind == FencedEpoch {
		return fmt.Sprintf("producer %d: epoch %d was replaced by %d", e.ProducerID, e.Got, e.Want)
	}
	return fmt.Sprintf("producer %d epoch %d: sequence %d is out of order, want %d", e.ProducerID, e.Epoch, e.Got, e.Want)
}

// CorruptError says that a snapshot file is not one.
type CorruptError struct {
	File   string // empty if the bytes came from elsewhere
	Reason string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("producer snapshot %s is corrupt: %s", e.File, e.Reason)
}
