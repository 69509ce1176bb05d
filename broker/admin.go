package broker

// adminState is what the admin handlers (metadata.go, create_topics.go,
// delete_topics.go, describe_configs.go, init_producer_id.go) keep for
// themselves; Broker embeds it. Beside it they use Broker's config, its coord
// (the coord.Service) and node (the broker's own id).
type adminState struct {
	producerIDs   producerIDs
	createRefused logLimit // topics not made on first use
	txnRefused    logLimit // transactional producers refused
	deleteRefused logLimit // records not deleted
	moveRefused   logLimit // partitions not moved to another data directory
}
