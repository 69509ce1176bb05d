package server

import "time"

// Bounds of this package; those a user may want to set are in Config.
const (
	// maxGroup is how many transactions a commit takes: more than a disk's round needs
	// to be worth while, and few enough that the first does not wait for the last.
	maxGroup = 2000
	// maxQueued is how many wait for the committer, beside those it is at; who submits
	// one more waits.
	maxQueued = 4000
	// budgetBytes is what all requests that are read and not answered may hold together,
	// and at least one of the largest size.
	budgetBytes = 64 << 20
	// maxPending is how many writes of one connection may be unanswered.
	maxPending = 1000
	// softOut is how much may wait to be sent before the connection's next request is
	// read; maxOut how much at all. Between lies room for events: 100,000 of 100 bytes.
	softOut = 1 << 20
	maxOut  = 16 << 20
	// keepFrame is the largest request whose memory a connection keeps for the next one.
	keepFrame = 4096
	// helloWait is how long a connection may take to say what it wants, and writeWait
	// how long to take what is sent to it.
	helloWait = 30 * time.Second
	writeWait = 30 * time.Second
	// reapEvery and reapMost are ZooKeeper's: containers are looked at each minute.
	reapEvery = time.Minute
	reapMost  = 10_000
	// quotaWarnEvery is how often one exceeded soft quota is logged; quotaWarnMost how many
	// are remembered, before all are forgotten and may be logged again.
	quotaWarnEvery = time.Minute
	quotaWarnMost  = 10_000
)

const _ = uint(maxOut - softOut)
