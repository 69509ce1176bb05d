package broker

import "time"

// Every queue, buffer, loop over input and wait of this package has its bound here.
const (
	// A connection reads into a buffer of baseBuffer bytes at first and of up
	// to maxBuffer when it is busy; a frame that fits is parsed where it lies.
	// An idle connection holds none.
	baseBuffer = 4 << 10
	maxBuffer  = 128 << 10

	// Beyond the end of a large frame we read up to readTail bytes, so that
	// the length of the next frame comes with it and its bytes can go where
	// they belong: at most this much is copied.
	readTail = 4 << 10

	// Memory for a frame is reserved in stages: firstStage, or what the same
	// connection has sent before (at most maxTrust), then stageFactor times
	// what has really arrived. Growing copies at most 1/7 of a frame.
	firstStage  = 256 << 10
	maxTrust    = 2 << 20
	stageFactor = 8

	// One connection answers at most maxBurst Produce requests together, takes
	// no more of them once they are maxBurstBytes in all, and
	// holds at most maxConverted bytes of converted batches meanwhile.
	maxBurst      = 256
	maxBurstBytes = 4 << 20
	maxConverted  = 8 << 20

	// keepParts is how many partitions a reused Produce or Fetch call keeps
	// room for; about 300 bytes each.
	keepParts = 1024
	// keepCalls is how many calls a connection keeps for its next burst.
	keepCalls = 16

	// budgetPatience is how long a frame waits for memory before it may go
	// over the budget, one frame at a time: all others may be waiting too.
	budgetPatience = time.Second
	// A frame that holds memory others wait for must arrive at stallRate bytes
	// a second at least, looked at every stallCheck.
	stallCheck = 10 * time.Second
	stallRate  = 1 << 10

	// smallShare of the budget (1/4) is for frames that fit in maxBuffer.
	smallShare = 4

	// The budget's own default, see queued.max.request.bytes.
	defaultBudgetLow  = 64 << 20
	defaultBudgetHigh = 512 << 20

	// maxSweep is the longest time between two looks at idle connections.
	maxSweep = time.Second
	// trimEvery is how often buffers that nobody used go back to the runtime.
	trimEvery = 30 * time.Second
	// peekEvery is how often a waiting fetch looks whether its client is there.
	peekEvery = 2 * time.Second

	// maxQuotaClients is how many clients above their credit are told apart, and how
	// many client ids are looked up only once; about 200 bytes each. Beyond that the
	// list is swept, at most every quotaSweep. A bucket stays for quotaGrace after its
	// last use would be forgotten anyway: far longer than a request takes to pay.
	maxQuotaClients = 20_000
	quotaSweep      = time.Second
	quotaGrace      = 10 * time.Second
	// maxMute is the longest that a quota holds a client back at once, whatever its
	// windows: common clients give a request 20 s or more.
	maxMute = 15 * time.Second
	// maxCredit is the longest time for which a client saves up what it does not use.
	maxCredit = time.Hour
	// mutePeek is how often a muted connection looks whether its client is there.
	mutePeek = 500 * time.Millisecond

	// acceptPause follows an accept that failed (no descriptors left).
	acceptPause = 50 * time.Millisecond
	// drainTime is how long a stop lets connections finish their request;
	// the rest of the stop's 5 s is for the logs.
	drainTime = 2 * time.Second
	// cutOffTime is what they have to end after their sockets were closed.
	cutOffTime = 500 * time.Millisecond

	// groupLoadBytes is how much of __consumer_offsets is read at once; a
	// batch that is larger comes whole. A few partitions load side by side.
	groupLoadBytes = 1 << 20

	// copiedFetch bounds what one Fetch below v10 may carry: its records are
	// looked at or converted in memory. Kafka's own consumers of that age ask
	// for at most 1 MiB a partition.
	copiedFetch = 8 << 20

	// maxSessionPartitions bounds one fetch session (about 200 bytes each);
	// a fetch of more is served without session.
	maxSessionPartitions = 50_000
	// sessionIdle is when another client may take an unused session's slot.
	sessionIdle = 2 * time.Minute

	// maxSideBySide is how many partitions of one admin request are worked on at
	// once, where each waits for the disk.
	maxSideBySide = 16

	// logEvery is the rate of log lines of one kind that clients can provoke.
	logEvery = time.Second
)

const (
	_ = uint(maxBuffer - baseBuffer)
	_ = uint(firstStage - maxBuffer)
	_ = uint(maxTrust - firstStage)
)
