package coord

// Saved is what is kept of a cluster of one broker apart from a Service: what a Service takes over when it begins.
type Saved struct {
	ClusterID      string
	NextProducerID int64 // the first id that was never handed out
	Topics         []SavedTopic

	Defaults      map[string]string           // settings of all brokers
	Brokers       map[int32]map[string]string // of single ones
	Groups        NamedConfigs
	ClientMetrics NamedConfigs
	Quotas        map[QuotaEntity]map[string]float64
}

// SavedTopic is a topic whose one replica of each partition is the broker's.
type SavedTopic struct {
	Name   string
	ID     ID      // zero: to be given one
	Epochs []int32 // leader epochs, one for each partition
	Config map[string]string
}
