package engine

import (
	"errors"
	"fmt"

	"millrace/engine/batch"
)

// What a caller can do about each error is told in doc.go. Sequence errors of
// idempotent producers are passed through from engine/producers unchanged.
var (
	// ErrClosed: the log was closed, or is being deleted.
	ErrClosed = errors.New("engine: log is closed")
	// ErrPoisoned is matched by every *PoisonedError.
	ErrPoisoned = errors.New("engine: a sync failed; nothing is acknowledged until the directory is opened again")
	// ErrOutOfRange is matched by every *OutOfRangeError.
	ErrOutOfRange = errors.New("engine: offset out of range")
	// ErrTooLarge: the batch does not fit in a segment (Kafka's RECORD_LIST_TOO_LARGE).
	ErrTooLarge = errors.New("engine: batch larger than a segment may be")
	// ErrStaleEpoch: the append carries a lower leader epoch than the log has seen.
	ErrStaleEpoch = errors.New("engine: leader epoch below the log's")
	// ErrOffsetOrder: a follower append starts below the log's end (L1).
	ErrOffsetOrder = errors.New("engine: offset below the end of the log")
	// ErrStorage is matched by every *StorageError.
	ErrStorage = errors.New("engine: storage error")
)

// CorruptError names a file, the position of the damage in it, and what was
// wanted and found there. It is the same type that engine/batch reports.
type CorruptError = batch.CorruptError

// PoisonedError is L4: a sync failed in this directory. Reads go on.
type PoisonedError struct {
	Dir   string
	Cause error
}

func (e *PoisonedError) Error() string {
	return fmt.Sprintf("engine: %s: a sync failed and nothing is acknowledged until it is opened again: %v", e.Dir, e.Cause)
}

func (e *PoisonedError) Is(target error) bool { return target == ErrPoisoned }
func (e *PoisonedError) Unwrap() error        { return e.Cause }

// OutOfRangeError answers a read outside [Start, End].
type OutOfRangeError struct {
	Want, Start, End Offset
}

func (e *OutOfRangeError) Error() string {
	return fmt.Sprintf("engine: offset %d is outside [%d, %d]", e.Want, e.Start, e.End)
}

func (e *OutOfRangeError) Is(target error) bool { return target == ErrOutOfRange }

// StorageError is a failed file operation of an append, a roll or a
// truncation: no space left, an I/O error. Nothing of the append was stored.
type StorageError struct {
	Op    string // what the log was doing
	Dir   string
	Cause error
}

func (e *StorageError) Error() string {
	return fmt.Sprintf("engine: %s: %s: %v", e.Dir, e.Op, e.Cause)
}

func (e *StorageError) Is(target error) bool { return target == ErrStorage }
func (e *StorageError) Unwrap() error        { return e.Cause }
