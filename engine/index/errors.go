package index

import (
	"errors"
	"fmt"
)

// ErrCorrupt says that an index file is not one: the owner Resets and rebuilds it.
var ErrCorrupt = errors.New("index is corrupt")

// ErrFull says that the index holds as many entries as it may: the segment must roll.
var ErrFull = errors.New("index is full")

// ErrSync is matched by the error of Flush for a sync that failed: what the file holds is not known any more.
var ErrSync = errors.New("index not synced")

// ErrClosed is returned by every method after Close or Discard.
var ErrClosed = errors.New("index is closed")

// CorruptError is the detail behind ErrCorrupt.
type CorruptError struct {
	File   string
	Reason string

	// Unwritten: there is room for entries and not one of them. That is how a crash leaves
	// an index that was active and had none yet; of another it is damage.
	Unwritten bool
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("index %s is corrupt: %s", e.File, e.Reason)
}

// Is makes errors.Is(err, ErrCorrupt) true.
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }

// OrderError says that an entry would not lie above the last one: a bug of the caller.
type OrderError struct {
	File      string
	Last, New int64
}

func (e *OrderError) Error() string {
	return fmt.Sprintf("index %s: entry for %d does not follow the last one, %d", e.File, e.New, e.Last)
}
