package journal

import (
	"errors"
	"fmt"
)

// ErrPoisoned matches, with errors.Is, what every Wait returns after the first failed write or sync (L4).
// The error itself is a *PoisonedError.
var ErrPoisoned = errors.New("journal poisoned by an earlier failure")

// ErrClosed is returned by Wait for what was added after Close.
var ErrClosed = errors.New("journal closed")

// ErrNotStarted is returned by Wait before Start.
var ErrNotStarted = errors.New("journal not started")

// PoisonedError says which write or sync failed first. Nothing in this data directory is acknowledged until it is opened anew.
type PoisonedError struct {
	Dir   string // the data directory
	Cause error
}

func (e *PoisonedError) Error() string {
	return fmt.Sprintf("data directory %s takes no more writes until reopened: %v", e.Dir, e.Cause)
}

func (e *PoisonedError) Unwrap() []error { return []error{ErrPoisoned, e.Cause} }
