package coordinator

import "time"

const (
	// maxLoads partitions are read side by side at start: reading is bound by
	// the disk, decoding by the processor.
	maxLoads = 4

	// maxSleep is the longest time between two looks at the alarms, so that a
	// clock that was set does not silence them.
	maxSleep = time.Minute
)
