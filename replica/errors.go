package replica

import (
	"errors"
	"fmt"
)

// ErrNotLeader says that this broker does not lead the partition: it never did,
// or leadership moved. The client looks for the leader and tries again.
var ErrNotLeader = errors.New("replica: not the leader of this partition")

// ErrGone says that the partition was deleted while the caller held it.
var ErrGone = errors.New("replica: the partition was deleted")

// ErrOffline says that the partition's log could not be opened, or that its
// data directory failed. Other partitions are not affected.
var ErrOffline = errors.New("replica: the partition's log is offline")

// NotEnoughError says that fewer replicas are in sync than the topic asks for.
// Appended tells whether the batch is in the leader's log nevertheless.
type NotEnoughError struct {
	InSync, Minimum int
	Appended        bool
}

func (e *NotEnoughError) Error() string {
	return fmt.Sprintf("%d replicas are in sync, min.insync.replicas asks for %d", e.InSync, e.Minimum)
}

// EpochError says that a client knows an older or newer leader epoch than ours.
type EpochError struct {
	Want, Have int32 // what the client said, what we have
}

// Fenced reports that the client's epoch is the older one.
func (e *EpochError) Fenced() bool { return e.Want < e.Have }

func (e *EpochError) Error() string {
	return fmt.Sprintf("leader epoch %d was asked for, the partition is in epoch %d", e.Want, e.Have)
}
