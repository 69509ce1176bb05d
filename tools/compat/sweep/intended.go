package sweep

import (
	"regexp"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/wire"
)

// Intended is a difference from Apache Kafka's answer that is wanted.
type Intended struct {
	API   int16
	Step  string // "story: step"; a regular expression over the whole
	Path  string // field; a regular expression over the whole path, or "outcome"
	Ours  string // regular expressions over the values; "": any
	Kafka string
	Why   string

	step, path, ours, kafka *regexp.Regexp
}

// NotBuilt says why an API that Kafka 4.3 advertises to clients is not served.
var NotBuilt = map[int16]string{
	17: sasl, 36: sasl, 50: sasl, 51: sasl, 38: sasl, 39: sasl, 40: sasl, 41: sasl,
	24: transactions, 25: transactions, 26: transactions, 27: transactions, 28: transactions, 65: transactions, 66: transactions,
	29: acls, 30: acls, 31: acls,
	55: raft, 57: raft, 64: raft, 80: raft, 81: raft,
	76: share, 77: share, 78: share, 79: share, 83: share, 84: share, 85: share, 86: share, 87: share, 90: share, 91: share, 92: share,
	88: streams, 89: streams,
}

const (
	sasl         = "authentication (SASL, SCRAM credentials, delegation tokens) is not built yet"
	transactions = "transactions are not built yet"
	acls         = "authorization is not built yet"
	raft         = "it manages a KRaft quorum or its feature levels, and Millrace has none"
	share        = "share groups are not built yet"
	streams      = "streams groups (KIP-1071) are not built; Kafka Streams runs on classic groups"
)

// intended is the table. An entry that no answer needs any more fails the sweep.
var intended = compile([]Intended{
	{API: wire.KeyAPIVersions, Step: `versions: plain`, Path: `ApiKeys.*`, Why: "the tables of requests differ; newest versions must be equal, and what is missing is listed as not built"},
	{API: wire.KeyAPIVersions, Step: `versions: plain`, Path: `(Supported|Finalized)Features.*`, Ours: `none|absent|-1`, Why: "feature levels belong to a KRaft quorum; without them clients use what the versions offer"},

	{API: wire.KeyProduce, Step: `produce: no records`, Path: `.*ErrorCode`, Ours: `0`, Kafka: `87`, Why: "an empty message set of before 0.11 is nothing to write, as it was for the Kafka that served these versions"},
	{API: wire.KeyProduce, Step: `produce: magic 9`, Path: `.*ErrorCode`, Ours: `87`, Kafka: `2`, Why: "CORRUPT_MESSAGE makes producers send again what can never be accepted; INVALID_RECORD is final"},
	{API: wire.KeyProduce, Step: `produce: unknown codec`, Path: `.*ErrorCode`, Ours: `76`, Kafka: `-1`, Why: "UNSUPPORTED_COMPRESSION_TYPE says what is wrong; Kafka fails inside"},
	{API: wire.KeyProduce, Step: `produce: sequence 0 again`, Path: `.*LogAppendTime`, Ours: `-1`, Why: "a duplicate's answer has no append time where the topic keeps the producer's time, like the first answer"},
	{API: wire.KeyProduce, Step: `produce: .*`, Path: `.*LogStartOffset`, Ours: `-1`, Kafka: `0`, Why: "a refused batch's answer has no log start: nothing was appended that it could belong to"},
	{API: wire.KeyProduce, Step: `produce: null records`, Path: `outcome`, Ours: `answered.*`, Kafka: `no answer`, Why: "null records are refused; Kafka never answers"},

	{API: wire.KeyFetch, Step: `fetch: .*`, Path: `.*AbortedTransactions\.length`, Ours: `none`, Kafka: `0`, Why: "where there is an error both say that there are no aborted transactions, we by null"},
	{API: wire.KeyFetch, Step: `fetch: a last fetched epoch that is later`, Path: `.*(ErrorCode|HighWatermark|Offset)`, Ours: `0|5`, Kafka: `1|-1`, Why: "a last epoch that this leader never had does not make the client's offset wrong; Kafka lets it start over at auto.offset.reset"},
	{API: wire.KeyFetch, Step: `fetch: as a follower that is none`, Path: `outcome|Brokers.*`, Why: "who fetches as a replica that is none is told so in every version, with the leader's address; Kafka closes versions 12 to 14"},
	{API: wire.KeyListOffsets, Step: `list offsets: one partition twice`, Path: `.*Partitions(\.length|\[0#2\])`, Why: "each mention of a partition gets its own answer"},

	{API: wire.KeyMetadata, Step: `metadata: an unknown topic to be made`, Path: `Topics\[made-\d+\]\.(ErrorCode|TopicID|Partitions.*)`, Ours: `0|1|an id|present`, Why: "the topic is made before the answer, not after it, so that the client need not ask again"},
	{API: wire.KeyMetadata, Step: `metadata: by (.*)`, Path: `Brokers.*|ClusterID|ControllerID`, Why: "brokers and cluster are told although the topics asked for are refused"},
	{API: wire.KeyMetadata, Step: `metadata: by neither`, Path: `.*ErrorCode`, Kafka: `-1`, Why: "a topic with neither name nor id has an invalid name; Kafka fails inside"},

	{API: wire.KeyCreateTopics, Step: `.*`, Path: `.*Configs(\.length|\[millrace\..*\])`, Ours: `35|present`, Kafka: `33|absent`, Why: "the topic settings of our own, millrace.durability and millrace.validate"},
	{API: wire.KeyCreateTopics, Step: `.*`, Path: `.*Configs\[min\.insync\.replicas\]\.Source`, Ours: `5`, Kafka: `3`, Why: "Kafka sets min.insync.replicas for the whole cluster when eligible leader replicas are on; here it is the default"},
	{API: wire.KeyCreateTopics, Step: `create topics: only checked`, Path: `.*TopicID`, Ours: `none`, Why: "no topic was made, so there is no id"},
	{API: wire.KeyDeleteTopics, Step: `delete topics: twice in one request`, Path: `Topics(\.length|\[d3-\d+#2\].*|\[d3-\d+\]\.TopicID)`, Why: "each mention of a topic gets its own answer"},
	{API: wire.KeyDescribeConfigs, Step: `.*`, Path: `.*Configs(\.length|\[millrace\..*\])`, Ours: `35|present`, Kafka: `33|absent`, Why: "the topic settings of our own, millrace.durability and millrace.validate"},
	{API: wire.KeyDescribeConfigs, Step: `.*`, Path: `.*Configs\[min\.insync\.replicas\].*|.*Configs\.length`, Ours: `DEFAULT_CONFIG|none|absent`, Why: "Kafka sets min.insync.replicas for the whole cluster when eligible leader replicas are on; here it is the default"},
	{API: wire.KeyAlterConfigs, Step: `alter configs: one twice`, Path: `outcome`, Ours: `answered.*`, Kafka: `no answer`, Why: "a resource named twice is refused; Kafka never answers"},
	{API: wire.KeyIncrementalAlterConfigs, Step: `change configs: an unknown operation`, Path: `.*ErrorCode`, Ours: `42`, Kafka: `-1`, Why: "INVALID_REQUEST says what is wrong; Kafka fails inside"},

	{API: wire.KeyDescribeGroups, Step: `classic group: describing groups that are not there`, Path: `Groups\[\].*`, Why: "the empty group id is refused (INVALID_GROUP_ID)"},
	{API: wire.KeyDeleteGroups, Step: `classic group: delete`, Path: `Groups(\.length|\[cg-\d+#2\])`, Why: "each mention of a group gets its own answer"},
	{API: wire.KeyDeleteGroups, Step: `classic group: delete again`, Path: `Groups\[\].ErrorCode`, Ours: `24`, Kafka: `69`, Why: "the empty group id is refused (INVALID_GROUP_ID)"},
	{API: wire.KeyOffsetCommit, Step: `offsets: no group`, Path: `.*ErrorCode`, Ours: `24`, Kafka: `0`, Why: "the empty group id, deprecated by KIP-289, is refused (INVALID_GROUP_ID)"},
	{API: wire.KeyOffsetFetch, Step: `offsets: no group`, Path: `.*(ErrorCode|Offset|Metadata|Topics.*)`, Why: "the empty group id, deprecated by KIP-289, is refused (INVALID_GROUP_ID)"},
	{API: wire.KeyDescribeGroups, Step: `two members: rebalancing`, Path: `.*Members.*`, Why: "while the group rebalances no assignment holds, so none is shown; Kafka shows the last"},
	{API: wire.KeyOffsetDelete, Step: `offsets: delete (one that is not there|of an unknown topic)`, Path: `.*ErrorCode`, Ours: `0`, Kafka: `3`, Why: "offsets of a topic that is gone can be deleted too, and deleting what is not there is done"},
	{API: wire.KeyOffsetDelete, Step: `offsets: delete nothing`, Path: `Topics.*`, Why: "a topic without partitions is answered as such"},
	{API: wire.KeyConsumerGroupDescribe, Step: `.*`, Path: `.*SubscribedTopicRegex`, Ours: `null`, Kafka: ``, Why: "no regular expression is null"},

	{API: kmsg.AlterReplicaLogDirs.Int16(), Step: `moves: no partitions`, Path: `Topics.*`, Why: "a topic without partitions is answered as such"},
	{API: wire.KeyAlterClientQuotas, Step: `quotas: a kind twice`, Path: `Entries.*`, Why: "an entity of two users is refused; Kafka takes the last"},
})

func compile(all []Intended) []Intended {
	whole := func(s string) *regexp.Regexp {
		if s == "" {
			s = ".*"
		}
		return regexp.MustCompile(`^(?s:` + s + `)$`)
	}
	for i := range all {
		a := &all[i]
		a.step, a.path, a.ours, a.kafka = whole(a.Step), whole(a.Path), whole(a.Ours), whole(a.Kafka)
	}
	return all
}

func (in Intended) covers(o outcome, d difference) bool {
	return in.API == o.key && in.step.MatchString(o.story+": "+o.step) && in.path.MatchString(d.path) && in.ours.MatchString(d.ours) && in.kafka.MatchString(d.kafka)
}

// kafkaName is the name of an API as Kafka spells it.
func kafkaName(key int16) string {
	return strings.NewReplacer("SASL", "Sasl", "SCRAM", "Scram", "ACL", "Acl").Replace(kmsg.NameForKey(key))
}
