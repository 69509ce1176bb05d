package broker

import (
	"strings"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
)

// metric is a row of the table: a name, what it is, and which labels it has.
type metric struct {
	name   string
	kind   metricKind
	labels []string
	help   string

	desc  *prometheus.Desc
	total *prometheus.Desc // the sum over all topics, which has no labels
}

type metricKind int8

const (
	counter metricKind = iota
	gauge
	histogram
)

func (k metricKind) String() string { return [...]string{"counter", "gauge", "histogram"}[k] }

// metricTable is every metric of ours, in the order of their definition. The
// documentation is made of it, and no other name is served but those of the Go
// runtime and of the process. Names that begin with kafka_ are those that the
// JMX exporter's usual rules give Kafka's own (kafka_consumergroup_: kafka_exporter's).
var metricTable []*metric

func define(kind metricKind, name, help string, labels ...string) *metric {
	m := &metric{name: name, kind: kind, labels: labels, help: help, desc: prometheus.NewDesc(name, help, labels, nil)}
	metricTable = append(metricTable, m)
	return m
}

// perTopic is a counter for each topic, and without label for all of them, also
// those deleted since.
func perTopic(name, help string) *metric {
	m := define(counter, name, help, "topic")
	m.total = prometheus.NewDesc(name, help, nil, nil)
	return m
}

// Traffic by topic.
var (
	metricMessagesIn     = perTopic("kafka_server_brokertopicmetrics_messagesin_total", "Records appended; without topic: of all topics since the start.")
	metricBytesIn        = perTopic("kafka_server_brokertopicmetrics_bytesin_total", "Bytes of batches appended, as stored.")
	metricBytesOut       = perTopic("kafka_server_brokertopicmetrics_bytesout_total", "Bytes of records in answers to Fetch.")
	metricProduces       = perTopic("kafka_server_brokertopicmetrics_totalproducerequests_total", "Partitions in Produce requests; without topic also those of unknown topics.")
	metricFetches        = perTopic("kafka_server_brokertopicmetrics_totalfetchrequests_total", "Partitions in answers to Fetch; what an incremental session leaves out since nothing is new is not counted.")
	metricFailedProduces = perTopic("kafka_server_brokertopicmetrics_failedproducerequests_total", "Of the partitions in Produce requests, those answered with an error.")
	metricFailedFetches  = perTopic("kafka_server_brokertopicmetrics_failedfetchrequests_total", "Of the partitions in answers to Fetch, those with an error.")
)

// Requests.
var (
	metricRequests = define(counter, "kafka_network_requestmetrics_requests_total", "Requests answered.", "request", "version")
	metricErrors   = define(counter, "kafka_network_requestmetrics_errors_total", "Error codes in answers: one for each partition, topic or group that has one.", "request", "error")
	metricTimes    = [phases]*metric{
		phaseTotal:  define(histogram, "kafka_network_requestmetrics_totaltimems", "Time of a request, from the arrival of its last bytes until the system has the answer; in ms, as histogram.", "request", "version"),
		phaseQueue:  define(histogram, "kafka_network_requestmetrics_requestqueuetimems", "Of it, behind earlier requests of the same connection.", "request", "version"),
		phaseLocal:  define(histogram, "kafka_network_requestmetrics_localtimems", "Of it, being worked on: checked, written into logs, read.", "request", "version"),
		phaseRemote: define(histogram, "kafka_network_requestmetrics_remotetimems", "Of it, waiting for a sync, for records to come, or for members of a group.", "request", "version"),
		phaseSend:   define(histogram, "kafka_network_requestmetrics_responsesendtimems", "Of it, from answer to the end of sending; answers of one burst leave together.", "request", "version"),
	}
	metricOldest       = define(gauge, "millrace_client_oldest_version", "Lowest version of an API that a client id has used; at most 1,000 pairs are kept, the longest unheard makes room.", "client_id", "request")
	metricOldestMissed = define(counter, "millrace_client_oldest_version_evicted_total", "Pairs that made room or found none.")
	metricMemory       = define(gauge, "millrace_request_memory_bytes", "Memory that requests hold now (see queued.max.request.bytes).")
	metricMemoryLimit  = define(gauge, "millrace_request_memory_limit_bytes", "The limit on it.")
	metricMemoryWait   = define(gauge, "millrace_request_memory_waiting", "Requests that wait for memory.")
	metricSessions     = define(gauge, "kafka_server_fetchsessioncache_numincrementalfetchsessions", "Fetch sessions kept.")
	metricSessionParts = define(gauge, "kafka_server_fetchsessioncache_numincrementalfetchpartitionscached", "Partitions in them.")
)

// What clients push of their own metrics (KIP-714).
var (
	metricPushClients = define(gauge, "millrace_telemetry_clients", "Client instances that have asked what to push.")
	metricPushes      = define(counter, "millrace_telemetry_pushes_total", "Pushes of metrics by clients: accepted, throttled (too early), unknown_subscription (the subscriptions have changed), too_large, invalid.", "result")
	metricPushSeries  = define(gauge, "millrace_telemetry_series", "Series kept of what clients have pushed: at most 2,000 of one and 20,000 of all.")
	metricPushLeftOut = define(counter, "millrace_telemetry_left_out_total", "Values that found no room, or had too long a name or too many attributes.")
	metricPushInfo    = define(gauge, "millrace_telemetry_client_info", "1, for each client with values: who it is, and what it says of itself (such as group_id).", "client_instance_id", "client_id", "client_software_name", "client_software_version", "client_source_address", "and its own")
	metricPushValue   = define(gauge, "millrace_telemetry_value", "A client's metric that goes up and down, under its name in OpenTelemetry. The other labels are the client's.", "client_instance_id", "client_id", "metric", "and its own")
	metricPushTotal   = define(counter, "millrace_telemetry_value_total", "A client's metric that only rises.", "client_instance_id", "client_id", "metric", "and its own")
)

// Connections.
var (
	metricConnections = define(gauge, "kafka_server_socket_server_metrics_connection_count", "Connections open.", "listener")
	metricConnected   = define(counter, "kafka_server_socket_server_metrics_connection_creation_total", "Connections made, also those refused at once by a limit.", "listener")
	metricClosed      = define(counter, "millrace_connections_closed_total", "Connections that we closed for what they sent, by reason.", "reason")
)

// Logs and partitions.
var (
	metricLogSize       = define(gauge, "kafka_log_log_size", "Bytes in all segments of a partition.", "topic", "partition")
	metricLogSegments   = define(gauge, "kafka_log_log_numlogsegments", "Segments of a partition.", "topic", "partition")
	metricLogStart      = define(gauge, "kafka_log_log_logstartoffset", "First offset of a partition.", "topic", "partition")
	metricLogEnd        = define(gauge, "kafka_log_log_logendoffset", "End of a partition: the offset to be given out next.", "topic", "partition")
	metricPartitions    = define(gauge, "kafka_server_replicamanager_partitioncount", "Partitions here.")
	metricLeaders       = define(gauge, "kafka_server_replicamanager_leadercount", "Of them, those that this broker leads.")
	metricOffline       = define(gauge, "kafka_server_replicamanager_offlinereplicacount", "Of them, those without a usable log.")
	metricTopics        = define(gauge, "kafka_controller_kafkacontroller_globaltopiccount", "Topics of the cluster.")
	metricAllPartitions = define(gauge, "kafka_controller_kafkacontroller_globalpartitioncount", "Partitions of the cluster.")
	metricOfflineDirs   = define(gauge, "kafka_log_logmanager_offlinelogdirectorycount", "Data directories that failed.")
	metricDirOffline    = define(gauge, "kafka_log_logmanager_logdirectoryoffline", "1 for a data directory that failed, else 0.", "logdirectory")
	metricDamaged       = define(gauge, "millrace_damaged_logs", "Logs that were set aside at the start since they are damaged.")
	metricMoves         = define(gauge, "millrace_log_moves", "Partitions on their way to another data directory.")
	metricMoveLag       = define(gauge, "kafka_server_replicaalterlogdirsmanager_maxlag", "Offsets that the copy furthest behind has still to follow.")
	metricMoved         = define(counter, "millrace_log_moves_total", "Moves between data directories that ended: done, failed.", "result")
	metricMoveBytes     = define(counter, "millrace_log_move_bytes_total", "Bytes copied by them.")
	metricMaxDirty      = define(gauge, "kafka_log_logcleanermanager_max_dirty_percent", "Largest share, in percent, of a compacted log that compaction has not looked at, as of the cleaner's last look.")
	metricUncleanable   = define(gauge, "kafka_log_logcleanermanager_uncleanable_partitions_count", "Compacted logs whose last pass failed; they are tried again.")
	metricCleanerDead   = define(gauge, "kafka_log_logcleaner_deadthreadcount", "Cleaning threads that should run and do not.")
	metricPasses        = define(counter, "millrace_cleaner_passes_total", "Passes of compaction over a log.")
	metricCleanedBytes  = define(counter, "millrace_cleaner_bytes_total", "Bytes of segments that passes read and kept.", "what")
	metricCleanedCount  = define(counter, "millrace_cleaner_records_total", "Records that passes read and kept.", "what")
	metricScrubBytes    = define(counter, "millrace_scrub_bytes_total", "Bytes of closed segments that the scrub has read.")
	metricScrubSegments = define(counter, "millrace_scrub_segments_total", "Closed segments that it has verified.")
	metricScrubPasses   = define(counter, "millrace_scrub_passes_total", "Passes of it over all logs.")
	metricScrubIndexes  = define(counter, "millrace_scrub_indexes_total", "Damaged indexes that it has found and made again.")
	metricScrubDamaged  = define(gauge, "millrace_scrub_damaged_segments", "Closed segments that it has found damaged; the log says where and what to do.", "logdirectory")
	metricPinned        = define(gauge, "millrace_pinned_slices", "Ranges of segments that are being sent or synced now.")
	metricRing          = define(gauge, "millrace_io_ring", "1 if file operations go through io_uring where that pays, 0 if by plain system calls (millrace.io).")
	metricOpenFiles     = define(gauge, "millrace_segment_files_open", "Segment files that are open.")
	metricOpenFilesMax  = define(gauge, "millrace_segment_files_max", "How many are kept open at most; beyond that those not in use are closed for others.")
	metricFilesOpened   = define(counter, "millrace_segment_files_opened_total", "Segment files opened; again: that had been closed for others.", "why")
	metricFilesEvicted  = define(counter, "millrace_segment_files_evicted_total", "Segment files closed for others.")
	metricWrites        = define(counter, "millrace_log_writes_total", "Writes to segment files.")
	metricAppends       = define(counter, "millrace_log_appends_total", "Batches written by them; divided by the writes: how many combine.")
)

// The commit journal.
var (
	metricRounds    = define(counter, "millrace_journal_rounds_total", "Rounds ended.", "dir")
	metricBlocks    = define(counter, "millrace_journal_blocks_total", "Of the rounds, those that wrote a block to the journal.", "dir")
	metricJournal   = define(counter, "millrace_journal_bytes_total", "Bytes of those blocks, padding included.", "dir")
	metricRecords   = define(counter, "millrace_journal_records_total", "Writes of logs gathered by rounds.", "dir")
	metricWaiters   = define(counter, "millrace_journal_waiters_total", "Requests and other waiters that rounds released; divided by the rounds: how many share a sync.", "dir")
	metricSynced    = define(counter, "millrace_journal_synced_logs_total", "Logs whose files were synced by a round.", "dir")
	metricLarge     = define(counter, "millrace_journal_large_total", "Times that a log passed the threshold in a round, so that its file was synced.", "dir")
	metricFallbacks = define(counter, "millrace_journal_fallbacks_total", "Writes that found the round's block full.", "dir")
	metricUnplaced  = define(counter, "millrace_journal_unplaced_total", "Rounds that found no free journal file and synced the logs' files.", "dir")
	metricRecycled  = define(counter, "millrace_journal_recycled_files_total", "Journal files freed for use again.", "dir")
	metricRoundTime = define(histogram, "millrace_journal_round_seconds", "Time of a round.", "dir")
)

// Coordination and the controller.
var (
	metricActiveController = define(gauge, "kafka_controller_kafkacontroller_activecontrollercount", "1 if this broker is the controller, else 0; 1 over all brokers of a cluster.")
	metricControllerEpoch  = define(gauge, "millrace_controller_epoch", "Epoch of this broker's office as the controller; 0 if it has none.")
	metricActiveBrokers    = define(gauge, "kafka_controller_kafkacontroller_activebrokercount", "Live brokers; this one and the next four are 0 where another broker is the controller.")
	metricOfflineParts     = define(gauge, "kafka_controller_kafkacontroller_offlinepartitionscount", "Partitions that no live broker leads.")
	metricImbalance        = define(gauge, "kafka_controller_kafkacontroller_preferredreplicaimbalancecount", "Partitions that another than their preferred replica leads.")
	metricDeletingTopics   = define(gauge, "kafka_controller_kafkacontroller_topicstodeletecount", "Topics that are to be deleted.")
	metricMoving           = define(gauge, "kafka_controller_kafkacontroller_reassigningpartitionscount", "Partitions whose replicas are being moved.")
	metricSession          = define(gauge, "millrace_coordination_session", "1 if this broker is connected to coordination with a session, else 0: then what needs the controller waits or fails.")
	metricExpires          = define(counter, "kafka_server_sessionexpirelistener_zookeeperexpires_total", "Sessions with coordination that this broker has lost.")
	metricZnodes           = define(gauge, "millrace_coordination_znodes", "Znodes of the built-in coordination; it and the following are 0 if zookeeper.connect names another.")
	metricEphemerals       = define(gauge, "millrace_coordination_ephemerals", "Of them, those that end with a session.")
	metricZnodeBytes       = define(gauge, "millrace_coordination_data_bytes", "Data of all znodes.")
	metricTreeBytes        = define(gauge, "millrace_coordination_memory_bytes", "Memory that the tree and its watches take, about.")
	metricZkSessions       = define(gauge, "millrace_coordination_sessions", "Sessions.")
	metricWatches          = define(gauge, "millrace_coordination_watches", "Watches set.")
	metricZkConnections    = define(gauge, "millrace_coordination_connections", "Connections, this broker's own among them.")
	metricOutstanding      = define(gauge, "millrace_coordination_outstanding_requests", "Writes that wait to be committed.")
	metricZkRequests       = define(counter, "millrace_coordination_requests_total", "Requests received.")
	metricZkSent           = define(counter, "millrace_coordination_sent_total", "Answers and watch events sent.")
	metricTransactions     = define(counter, "millrace_coordination_transactions_total", "Writes committed, refused ones too; divided by the syncs: how many share one.")
	metricZkSync           = define(histogram, "millrace_coordination_sync_seconds", "Time in which a batch of writes was stored and synced.")
)

// Groups.
var (
	metricGroups         = define(gauge, "kafka_coordinator_group_groupmetadatamanager_numgroups", "Groups that this broker coordinates.")
	metricGroupsEmpty    = define(gauge, "kafka_coordinator_group_groupmetadatamanager_numgroupsempty", "Of them, those without members.")
	metricGroupsJoining  = define(gauge, "kafka_coordinator_group_groupmetadatamanager_numgroupspreparingrebalance", "Of them, those that collect members.")
	metricGroupsSyncing  = define(gauge, "kafka_coordinator_group_groupmetadatamanager_numgroupscompletingrebalance", "Of them, those that wait for an assignment.")
	metricGroupsStable   = define(gauge, "kafka_coordinator_group_groupmetadatamanager_numgroupsstable", "Of them, those at work.")
	metricGroupState     = define(gauge, "millrace_group_state", "1, for each group, with its state.", "consumergroup", "type", "state")
	metricGroupCommitted = define(gauge, "kafka_consumergroup_current_offset", "Offset that a group has committed.", "consumergroup", "topic", "partition")
	metricLag            = define(gauge, "kafka_consumergroup_lag", "Records between a group's commit and what may be read of the partition; never negative, absent where nothing was committed.", "consumergroup", "topic", "partition")
	metricLagSum         = define(gauge, "kafka_consumergroup_lag_sum", "Sum of the lag over a topic's partitions.", "consumergroup", "topic")
	metricLagTime        = define(gauge, "kafka_consumergroup_lag_seconds", "Age of the next record that a group has to read, by the timestamp of its batch; 0 where the lag is 0. Absent where it was not found in time: then a later scrape has it.", "consumergroup", "topic", "partition")
	metricLagLeftOut     = define(gauge, "millrace_group_lag_left_out", "Groups' partitions that this scrape left out, or gave without seconds, since there are too many; sums are whole.")
)

// The process.
var (
	metricState    = define(gauge, "kafka_server_kafkaserver_brokerstate", "1 starting, 3 running, 6 stopping.")
	metricBuild    = define(gauge, "millrace_build_info", "1, with what this program was built of.", "version", "revision", "go_version")
	metricScraping = define(gauge, "millrace_scrape_seconds", "Time that this scrape took to gather what is ours.")
)

// labelText is what a client called something, as a label may have it.
func labelText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
