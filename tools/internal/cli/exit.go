// Package cli is what the command lines share: exit codes, flag values and the
// one place where an error becomes a message and a status.
package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Exit codes are stable: scripts may rely on them, and ExitHelp documents them.
const (
	ExitOK          = 0 // all of it was done
	ExitFailure     = 1 // something was not done, and repeating the same will not help by itself
	ExitUsage       = 2 // the command line is wrong; nothing was tried
	ExitNotFound    = 3 // what was named does not exist, or exists already where it must not
	ExitUnreachable = 4 // no broker answered, or not in time
)

// ExitHelp is the paragraph that every root command shows.
const ExitHelp = `Exit status:
  0  all of it was done
  1  something failed
  2  the command line is wrong
  3  not found, or exists already
  4  no broker reachable, or not in time`

// Error is an error that knows its exit status. What it wraps is what the user reads.
type Error struct {
	Status int
	Err    error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Usagef reports a wrong command line.
func Usagef(format string, args ...any) error {
	return &Error{ExitUsage, fmt.Errorf(format, args...)}
}

// NotFoundf reports something that does not exist, or that exists already.
func NotFoundf(format string, args ...any) error {
	return &Error{ExitNotFound, fmt.Errorf(format, args...)}
}

// Unreachablef reports a broker that does not answer, or not in time.
func Unreachablef(format string, args ...any) error {
	return &Error{ExitUnreachable, fmt.Errorf(format, args...)}
}

// Status finds the exit status of err: what an Error in its chain says, else
// what the protocol's or the network's own error means.
func Status(err error) int {
	var own *Error
	var network net.Error
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &own):
		return own.Status
	case errors.Is(err, os.ErrNotExist), errors.Is(err, os.ErrExist):
		return ExitFailure // a local file; 3 speaks of topics
	case errors.Is(err, kerr.UnknownTopicOrPartition),
		errors.Is(err, kerr.UnknownTopicID),
		errors.Is(err, kerr.GroupIDNotFound),
		errors.Is(err, kerr.TopicAlreadyExists):
		return ExitNotFound
	case errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, kgo.ErrRecordTimeout),
		errors.Is(err, kerr.RequestTimedOut),
		errors.Is(err, kerr.BrokerNotAvailable),
		errors.As(err, &network):
		return ExitUnreachable
	}
	return ExitFailure
}
