package broker

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/engine/batch"
	"millrace/wire"
)

func (c *adminClient) createPartitions(version int16, dry bool, topic string, count int32, assignment ...[]int32) kmsg.CreatePartitionsResponseTopic {
	c.t.Helper()
	req := kmsg.NewPtrCreatePartitionsRequest()
	req.Version, req.ValidateOnly, req.TimeoutMillis = version, dry, 5000
	t := kmsg.NewCreatePartitionsRequestTopic()
	t.Topic, t.Count = topic, count
	for _, replicas := range assignment {
		t.Assignment = append(t.Assignment, kmsg.CreatePartitionsRequestTopicAssignment{Replicas: replicas})
	}
	req.Topics = append(req.Topics, t)
	return ask[*kmsg.CreatePartitionsResponse](c, req).Topics[0]
}

// Claim: a topic grows in every version, by assignment or without; the new partitions
// take records at once and after a restart; a dry run changes nothing.
// Method: grow by one for each version, produce to the last.
func TestPartitionsAreAdded(t *testing.T) {
	dir := t.TempDir()
	b := startBrokerIn(t, dir)
	c := dialAdmin(t, b.Broker, "")
	c.createTopic("t", 1)
	count := int32(1)
	for version := int16(0); version <= 3; version++ {
		if r := c.createPartitions(version, true, "t", count+1); r.ErrorCode != 0 || len(b.coord.Image().Topic("t").Partitions) != int(count) || b.store.Log("t", count) != nil {
			t.Errorf("v%d dry: %+v", version, r)
		}
		count++
		if r := c.createPartitions(version, false, "t", count); r.ErrorCode != 0 || r.ErrorMessage != nil || r.Topic != "t" {
			t.Errorf("v%d: %s", version, textOf(r.ErrorMessage))
		}
		b.mustProduce("t", count-1, values(batch.None, "v"))
	}
	if r := c.createPartitions(3, false, "t", count+2, []int32{0}, []int32{0}); r.ErrorCode != 0 {
		t.Errorf("assigned: %s", textOf(r.ErrorMessage))
	}
	b.halt()
	b = startBrokerIn(t, dir)
	if n := len(b.coord.Image().Topic("t").Partitions); n != int(count)+2 || b.end("t", count-1) != 1 {
		t.Errorf("%d partitions after a restart, the last but two ends at %d", n, b.end("t", count-1))
	}
	b.mustProduce("t", count+1, values(batch.None, "v"))
}

// Claim: what Kafka refuses is refused, with its code and a message; a topic that is
// in the request twice is refused and told once.
// Method: a table, dry and not.
func TestWrongPartitionCountsAreRefused(t *testing.T) {
	b := adminBroker(t, "")
	c := dialAdmin(t, b, "")
	c.createTopic("t", 3)
	for _, try := range []struct {
		topic      string
		count      int32
		assignment [][]int32
		code       int16
		text       string
	}{
		{"none", 2, nil, wire.ErrUnknownTopicOrPartition, `"none"`},
		{"t", 3, nil, wire.ErrInvalidPartitions, "3 partition(s) already"},
		{"t", 2, nil, wire.ErrInvalidPartitions, "has 3 partition(s), 2 would not"},
		{"t", -1, nil, wire.ErrInvalidPartitions, "-1"},
		{"t", math.MaxInt32, nil, wire.ErrPolicyViolation, "10000"},
		{"t", 4, [][]int32{{0}, {0}}, wire.ErrInvalidReplicaAssignment, "1 partition(s) are to be added, but 2"},
		{"t", 4, [][]int32{{7}}, wire.ErrInvalidReplicaAssignment, "broker 7"},
		{"t", 4, [][]int32{{}}, wire.ErrInvalidReplicaAssignment, "no replicas"},
		{"t", 4, [][]int32{{0, 0}}, wire.ErrInvalidReplicaAssignment, "broker 0 twice"},
	} {
		for _, dry := range []bool{true, false} {
			if r := c.createPartitions(3, dry, try.topic, try.count, try.assignment...); r.ErrorCode != try.code || !strings.Contains(textOf(r.ErrorMessage), try.text) {
				t.Errorf("%v: %s %s", try, wire.ErrorName(r.ErrorCode), textOf(r.ErrorMessage))
			}
		}
	}
	req := kmsg.NewPtrCreatePartitionsRequest()
	req.Version = 3
	req.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: "t", Count: 4}, {Topic: "t", Count: 5}}
	if r := ask[*kmsg.CreatePartitionsResponse](c, req); len(r.Topics) != 1 || r.Topics[0].ErrorCode != wire.ErrInvalidRequest {
		t.Errorf("%+v", r.Topics)
	}
	if n := len(b.coord.Image().Topic("t").Partitions); n != 3 {
		t.Errorf("%d partitions", n)
	}
}

// Claim: partitions whose logs cannot be made are refused and leave the topic as it
// was: it is whole, takes records, and can be tried again.
// Method: a file stands where the new log's folder has to be.
func TestPartitionsWithoutRoomAreRefused(t *testing.T) {
	dir := t.TempDir()
	b := startBrokerIn(t, dir)
	c := dialAdmin(t, b.Broker, "")
	c.createTopic("t", 1)
	blocker := filepath.Join(dir, "t-2")
	if err := os.WriteFile(blocker, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := c.createPartitions(3, false, "t", 3); r.ErrorCode != wire.ErrKafkaStorageError || !strings.Contains(textOf(r.ErrorMessage), "t-2") {
		t.Errorf("%s %s", wire.ErrorName(r.ErrorCode), textOf(r.ErrorMessage))
	}
	if n := len(b.coord.Image().Topic("t").Partitions); n != 1 || b.store.Log("t", 1) != nil {
		t.Errorf("%d partitions, log of the second: %v", n, b.store.Log("t", 1))
	}
	b.mustProduce("t", 0, values(batch.None, "v"))
	_ = os.Remove(blocker)
	if r := c.createPartitions(3, false, "t", 3); r.ErrorCode != 0 {
		t.Errorf("%s", textOf(r.ErrorMessage))
	}
	b.mustProduce("t", 2, values(batch.None, "v"))
}

// Claim: logs that were made for partitions that never came are taken by the next
// try, and go with the topic, so that another topic of the name finds no stranger.
// Method: make such logs, as a crash would leave them; restart; grow; and delete.
func TestLeftoverLogsOfAGrowthAreUsedOrDeleted(t *testing.T) {
	dir := t.TempDir()
	b := startBrokerIn(t, dir)
	c := dialAdmin(t, b.Broker, "")
	for _, name := range []string{"grows", "goes"} {
		c.createTopic(name, 1)
		next := *b.coord.Image().Topic(name)
		next.Partitions = append(next.Partitions[:1:1], next.Partitions[0], next.Partitions[0])
		if err := b.makeNewLogs(&next); err != nil {
			t.Fatal(err)
		}
	}
	b.halt()
	b = startBrokerIn(t, dir)
	c = dialAdmin(t, b.Broker, "")
	if r := c.createPartitions(3, false, "grows", 3); r.ErrorCode != 0 {
		t.Errorf("%s", textOf(r.ErrorMessage))
	}
	b.mustProduce("grows", 2, values(batch.None, "v"))
	b.delete("goes")
	for i := range int32(3) {
		if b.store.Log("goes", i) != nil {
			t.Errorf("partition %d is still there", i)
		}
	}
	if r := c.createTopic("goes", 3); r.ErrorCode != 0 {
		t.Errorf("%s", textOf(r.ErrorMessage))
	}
	for i := range int32(3) {
		b.mustProduce("goes", i, values(batch.None, fmt.Sprint(i)))
	}
}
