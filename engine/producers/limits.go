package producers

// keptBatches is how many batches of a producer are known again: a client may have
// that many in flight at once (max.in.flight.requests.per.connection with idempotence).
// A producer so costs about 200 bytes, whatever it sends.
const keptBatches = 5

// maxSnapshotBytes is the largest snapshot that is read: 46 bytes for each of 2.9
// million producers. A longer file is taken for damaged.
const maxSnapshotBytes = 128 << 20
