package znode

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// The nodes that have one place.
const (
	Consumers           = "/consumers"
	BrokerIDs           = "/brokers/ids"
	BrokerSeqID         = "/brokers/seqid"
	Topics              = "/brokers/topics"
	ControllerPath      = "/controller"
	ControllerEpochPath = "/controller_epoch"
	ConfigChanges       = "/config/changes"
	DeleteTopics        = "/admin/delete_topics"
	ReassignPartitions  = "/admin/reassign_partitions"
	PreferredElection   = "/admin/preferred_replica_election"
	ISRChanges          = "/isr_change_notification"
	LogDirEvents        = "/log_dir_event_notification"
	ClusterIDPath       = "/cluster/id"
	ProducerIDBlock     = "/latest_producer_id_block"
	FeaturePath         = "/feature"
	TokenPath           = "/delegation_token/tokens"
	TokenChanges        = "/delegation_token/token_changes"
	ACLLiteral          = "/kafka-acl"
	ACLExtended         = "/kafka-acl-extended"
	ACLChanges          = "/kafka-acl-changes"
	ACLExtendedChanges  = "/kafka-acl-extended-changes"
)

// What Kafka 3.9 has no node for lives under a root of our own, which it neither reads nor writes: settings of groups, of subscriptions to clients'
// metrics (Kafka has a type of entity for them, but in ZooKeeper mode a change of one would stop its reader of changes), and the queue that tells of both.
const (
	OwnRoot    = "/millrace"
	OwnChanges = "/millrace/config/changes"

	FillingPath  = "/millrace/filling"  // there while a new tree is being filled with what a broker has found or saved
	ImportedPath = "/millrace/imported" // says what it was filled with, if that was a file
)

// Entity types below /config and /millrace/config.
const (
	EntityTopics        = "topics"
	EntityBrokers       = "brokers"
	EntityClients       = "clients"
	EntityUsers         = "users"
	EntityIPs           = "ips"
	EntityClientMetrics = "client-metrics" // ours
	EntityGroups        = "groups"         // ours
)

// DefaultEntity is the name that stands for everyone who has no node of their own.
const DefaultEntity = "<default>"

// AlwaysThere are the nodes that every broker makes at its start if they are missing, in Kafka's order, parents first. They hold null.
var AlwaysThere = []string{
	Consumers, "/brokers", BrokerIDs, Topics, "/config", ConfigChanges, "/admin", DeleteTopics, BrokerSeqID, ISRChanges, ProducerIDBlock, LogDirEvents,
	"/config/topics", "/config/clients", "/config/users", "/config/brokers", "/config/ips",
}

// AlwaysOurs are the nodes of our own that every broker makes at its start.
var AlwaysOurs = []string{OwnRoot, "/millrace/config", OwnChanges, "/millrace/config/groups", "/millrace/config/client-metrics"}

// BrokerPath is where a live broker is registered.
func BrokerPath(id int32) string { return BrokerIDs + "/" + strconv.Itoa(int(id)) }

// TopicPath holds a topic's id and assignment.
func TopicPath(topic string) string { return Topics + "/" + topic }

// PartitionsPath is the parent of a topic's partitions.
func PartitionsPath(topic string) string { return Topics + "/" + topic + "/partitions" }

// PartitionPath is the parent of a partition's state.
func PartitionPath(topic string, partition int32) string {
	return PartitionsPath(topic) + "/" + strconv.Itoa(int(partition))
}

// StatePath holds who leads a partition. The node's version is the partition epoch.
func StatePath(topic string, partition int32) string {
	return PartitionPath(topic, partition) + "/state"
}

// DeletePath is the request to delete a topic.
func DeletePath(topic string) string { return DeleteTopics + "/" + topic }

// ConfigPath is where the settings of an entity are, by its path in notifications ("topics/T", "users/U/clients/C").
func ConfigPath(entity string) string {
	if Ours(entity) {
		return OwnRoot + "/config/" + entity
	}
	return "/config/" + entity
}

// ChangesPath is the queue that tells of changes of an entity.
func ChangesPath(entity string) string {
	if Ours(entity) {
		return OwnChanges
	}
	return ConfigChanges
}

// Ours says whether an entity's settings are under our own root.
func Ours(entity string) bool {
	kind, _, _ := strings.Cut(entity, "/")
	return kind == EntityGroups || kind == EntityClientMetrics
}

// ChangePrefix is the path of a notification without its sequence number.
func ChangePrefix(queue string) string { return queue + "/config_change_" }

// Sequence reads the number at the end of a sequential node's name.
func Sequence(name string) (int64, error) {
	if len(name) < 10 {
		return 0, fmt.Errorf("node %q has no sequence number of 10 digits", name)
	}
	return strconv.ParseInt(name[len(name)-10:], 10, 64)
}

// Sanitize writes a name of a user, client or group so that it can be part of a path: as a query of a URL, but with %20 for spaces and %2A for stars.
func Sanitize(name string) string {
	return strings.NewReplacer("+", "%20", "*", "%2A", "~", "%7E").Replace(url.QueryEscape(name))
}

// Desanitize reads what Sanitize has written.
func Desanitize(name string) (string, error) { return url.QueryUnescape(name) }
