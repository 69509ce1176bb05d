package coord

// Found is a log that is in a data directory.
type Found struct {
	Topic     string
	ID        ID // zero: the folder has none (Kafka before 2.8)
	Partition int32
	Epoch     int32 // latest leader epoch in the log; -1 or 0 if none
}

// Adoption says what became of the logs found.
type Adoption struct {
	Adopted   []string // topics taken into a fresh state, sorted
	Leftovers []Found  // of topics whose deletion was cut off: delete them
	Strays    []Found  // of no topic we know: leave them, tell the operator
}
