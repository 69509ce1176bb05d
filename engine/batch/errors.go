package batch

import (
	"errors"
	"fmt"
	"strings"
)

// Reason is what the sender of a refused batch can do something about. The broker
// turns each into one protocol code.
type Reason int8

// The reasons, in the order Check finds them.
const (
	TooLarge         Reason = iota + 1 // the batch, or what it expands to, is over a limit
	Corrupt                            // length or checksum: damaged on the way, sending again may help
	InvalidRecord                      // whole, but not a batch we can store; sending again is useless
	InvalidTimestamp                   // a record's time is outside the topic's bounds
	UnsupportedCodec                   // a codec we do not know, or one this format cannot have
)

func (r Reason) String() string {
	switch r {
	case TooLarge:
		return "too large"
	case Corrupt:
		return "corrupt"
	case InvalidRecord:
		return "invalid record"
	case InvalidTimestamp:
		return "invalid timestamp"
	case UnsupportedCodec:
		return "unsupported codec"
	}
	return fmt.Sprintf("reason %d", int8(r))
}

// Error says why a batch was refused. Nothing of the batch may be stored.
type Error struct {
	Reason  Reason
	Records []RecordError // the records at fault, by index; at most maxRecordErrors; empty if it is the batch's own fault
	Message string        // for the person at the other end; names field, want and got
}

// RecordError names one record of a refused batch.
type RecordError struct {
	Index   int // from 0, within the batch
	Message string
}

// Error tells reason, message and the first few records.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Reason.String())
	b.WriteString(": ")
	b.WriteString(e.Message)
	for i, r := range e.Records {
		if i == shownRecordErrors {
			fmt.Fprintf(&b, "; and %d more", len(e.Records)-i)
			break
		}
		fmt.Fprintf(&b, "; record %d: %s", r.Index, r.Message)
	}
	return b.String()
}

// shownRecordErrors keeps a log line short; the answer to the client has them all.
const shownRecordErrors = 3

func refuse(reason Reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func refuseRecord(reason Reason, index int, format string, args ...any) *Error {
	m := fmt.Sprintf(format, args...)
	return &Error{Reason: reason, Message: "a record was refused", Records: []RecordError{{Index: index, Message: m}}}
}

// CorruptError says that stored bytes are not what was once written. Who knows the
// file fills File and Position.
type CorruptError struct {
	File      string
	Position  int64 // byte in File where the entry starts
	Want, Got string
}

// Error names the place as far as known.
func (e *CorruptError) Error() string {
	if e.File == "" {
		return fmt.Sprintf("corrupt entry: want %s, got %s", e.Want, e.Got)
	}
	return fmt.Sprintf("%s: corrupt entry at position %d: want %s, got %s", e.File, e.Position, e.Want, e.Got)
}

func corrupt(want string, format string, args ...any) *CorruptError {
	return &CorruptError{Want: want, Got: fmt.Sprintf(format, args...)}
}

// ErrShort says that the bytes end before the entry does; more may follow.
var ErrShort = errors.New("batch: the bytes end before the entry does")

// ErrExpansion says that a compressed payload would expand beyond its limit. It was
// not expanded further than that.
var ErrExpansion = errors.New("compressed payload expands beyond the limit")

// ErrFull says that a Builder holds as much as one batch can.
var ErrFull = errors.New("batch: the builder holds as much as one batch can")
