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
)
