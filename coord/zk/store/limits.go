package store

// Every buffer and loop of this package has its bound here.
const (
	// DefaultSnapshotEvery is ZooKeeper's snapCount: at most this many transactions are
	// replayed by a start, about a second's work.
	DefaultSnapshotEvery = 100_000
	// DefaultSnapshotBytes is the same in bytes of transactions.
	DefaultSnapshotBytes = 256 << 20
	// DefaultKeep is how many snapshots are kept: the newest, and those a start falls
	// back to. autopurge keeps three in ZooKeeper.
	DefaultKeep = 3

	// groupBytes and groupTxns bound one batch of the log. Larger ones gain nothing: a
	// round of the commit journal takes several.
	groupBytes = 1 << 20
	groupTxns  = 10_000

	// stepBytes is how much of a snapshot is written out of the tree at a time, while
	// nothing else can be done with it: about half a millisecond. As long as it took, the
	// snapshot then rests: the tree is others' for half of the time, and a processor too.
	stepBytes = 256 << 10
	// frameBytes is the most that one checksum covers.
	frameBytes = 1 << 20
	// outBytes is how much of a snapshot waits in memory for the disk.
	outBytes = 1 << 20
	// readBytes is how much of the log is read at once in a replay.
	readBytes = 1 << 20
)
