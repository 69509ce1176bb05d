package group

import "time"

const (
	// newMemberTimeout is how long a member that has never been answered may be
	// parked: it cannot send heartbeats, having no id yet, and a client that
	// gives up and joins anew would otherwise leave its old self behind.
	newMemberTimeout = 5 * time.Minute

	// maxPending bounds the member ids of one group that were handed out and
	// not used yet (about 200 bytes each). They live for a session time-out.
	maxPending = 20_000

	// maxStep is the size at which a step of a modern group takes in no more
	// ops, in bytes of records: a batch of __consumer_offsets may have 1 MiB.
	maxStep = 256 << 10

	// maxOwns partitions is all that a member may say it owns: a cluster's limit.
	maxOwns = 1 << 20

	// maxInterval is the longest wait for an assignor, so that a clock that was
	// set back does not hold it up.
	maxInterval = 15 * time.Second
)
