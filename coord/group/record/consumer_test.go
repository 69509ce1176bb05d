package record

import (
	"encoding/hex"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Claim: the records of the next-generation protocol are Kafka's bytes, and
// come back as they were; cut off, they are errors and never a panic.
// Method: bytes written out by hand from Kafka's schema, and a member's as Kafka
// 4.3.1 wrote it; every prefix.
func TestConsumerRecords(t *testing.T) {
	const kafkas = "0000" + "036932" + "00" + "046b676f" + "0b2f3132372e302e302e31" + "020274" + "01" + "00007530" + "00" + "01000100"
	i2 := "i2"
	written := Consumer{Instance: &i2, ClientID: "kgo", ClientHost: "/127.0.0.1", Topics: []string{"t"}, RebalanceMs: 30_000}
	instance, assignor, pattern := "i", "range", "o.*"
	topic := [16]byte{1}
	current := Current{Epoch: 3, Previous: 2, State: 1, Assigned: []Partitions{{topic, []int32{0, 1}, []int32{2, 3}}}, Revoking: []Partitions{{topic, []int32{5}, nil}}}
	consumer := Consumer{Instance: &instance, ClientID: "c", ClientHost: "/h", Topics: []string{"t"}, Pattern: &pattern, RebalanceMs: 300, Assignor: &assignor}
	mixed := Consumer{Instance: &instance, ClientID: "c", ClientHost: "/h", Topics: []string{"t"}, RebalanceMs: 300,
		Classic: &Classic{SessionMs: 400, Protocols: []Protocol{{"p", []byte{7, 8}}, {"q", []byte{}}}}}
	const id = "01000000000000000000000000000000"
	for _, c := range []struct {
		record     Record
		key, value string
		kind       Kind
		want       any
		parse      func([]byte) (any, error)
	}{
		{OfConsumerEpoch("g", Epoch{7, 9}), "0003" + "000167", "0000" + "00000007" + "01" + "00" + "08" + "0000000000000009", OfEpoch, Epoch{7, 9}, as(ParseEpoch)},
		{OfConsumerEpoch("g", Epoch{7, 0}), "0003" + "000167", "0000" + "00000007" + "00", OfEpoch, Epoch{7, 0}, as(ParseEpoch)},
		{OfConsumer("g", "m", &consumer), "0005" + "000167" + "00016d", "0000" + "0269" + "00" + "0263" + "032f68" + "02" + "0274" + "046f2e2a" + "0000012c" + "0672616e6765" + "01" + "00" + "01" + "00", OfMember, consumer, as(ParseConsumer)},
		{OfConsumer("g", "m2", &written), "0005" + "000167" + "00026d32", kafkas, OfMember, written, as(ParseConsumer)},
		{OfConsumer("g", "m", &mixed), "0005" + "000167" + "00016d", "0000" + "0269" + "00" + "0263" + "032f68" + "02" + "0274" + "01" + "0000012c" + "00" +
			"01" + "00" + "11" + "01" + "00000190" + "03" + "0270" + "03" + "0708" + "00" + "0271" + "01" + "00" + "00", OfMember, mixed, as(ParseConsumer)},
		{OfTargetEpoch("g", TargetEpoch{7, 9}), "0006" + "000167", "0000" + "00000007" + "01" + "00" + "08" + "0000000000000009", OfWholeTarget, TargetEpoch{7, 9}, as(ParseTargetEpoch)},
		{OfTarget("g", "m", current.Revoking), "0007" + "000167" + "00016d", "0000" + "02" + id + "02" + "00000005" + "00" + "00", OfMemberTarget, current.Revoking, as(ParseTarget)},
		{OfCurrent("g", "m", &current), "0008" + "000167" + "00016d", "0000" + "00000003" + "00000002" + "01" +
			"02" + id + "03" + "00000000" + "00000001" + "01" + "00" + "09" + "03" + "00000002" + "00000003" + "02" + id + "02" + "00000005" + "00" + "00", OfMemberCurrent, current, as(ParseCurrent)},
		{OfPattern("g", "o.*", &Pattern{[]string{"t"}, 1, 2}), "0010" + "000167" + "00036f2e2a", "0000" + "02" + "0274" + "0000000000000001" + "0000000000000002" + "00", OfTopicPattern, Pattern{[]string{"t"}, 1, 2}, as(ParsePattern)},
	} {
		if k, v := hex.EncodeToString(c.record.Key), hex.EncodeToString(c.record.Value); k != c.key || v != c.value {
			t.Errorf("kind %d is\n%s %s, want\n%s %s", c.kind, k, v, c.key, c.value)
		}
		if k, err := ParseKey(c.record.Key); err != nil || k.Kind != c.kind || k.Group != "g" {
			t.Errorf("key %s: %+v, %v", c.key, k, err)
		}
		got, err := c.parse(c.record.Value)
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("kind %d: %v\n%s", c.kind, err, diff)
		}
		for n := range c.record.Value {
			if _, err := c.parse(c.record.Value[:n]); err == nil {
				t.Errorf("kind %d cut to %d bytes is taken", c.kind, n)
			}
		}
		for n := range c.record.Key {
			if _, err := ParseKey(c.record.Key[:n]); err == nil {
				t.Errorf("key of kind %d cut to %d bytes is taken", c.kind, n)
			}
		}
	}
}

func as[T any](f func([]byte) (T, error)) func([]byte) (any, error) {
	return func(b []byte) (any, error) { return f(b) }
}
