package coord

import (
	"strings"
	"testing"

	"millrace/wire"
)

// Claim: names that cannot be folders, or would collide, are refused with code
// 17 and the reason; all others are taken (F051).
// Method: the table of the field case.
func TestField_F051_TopicNames(t *testing.T) {
	img := NewImage("c", 1, []Broker{{ID: 1}}, []Topic{topicOf("a.b", 1, 1)})
	for name, want := range map[string]string{
		strings.Repeat("x", 249): "",
		strings.Repeat("x", 250): "at most 249",
		"":                       "empty",
		".":                      "folder",
		"..":                     "folder",
		"...":                    "",
		"a b":                    "' '",
		"a/b":                    "'/'",
		"t\u00e9":                "'é'",
		"t\x00":                  `'\x00'`,
		"a_b":                    `"a.b"`,
		"a-b":                    "",
		"A.b":                    "",
	} {
		topics := []NewTopic{{Name: name, Partitions: 1, Factor: 1}}
		r := NewPlanner(img, topics).Plan(topics[0])
		if want == "" && (r.Code != 0 || r.Topic == nil) {
			t.Errorf("%q: %d %s", name, r.Code, r.Message)
		}
		if want != "" && (r.Code != wire.ErrInvalidTopic || !strings.Contains(r.Message, want) || r.Topic != nil) {
			t.Errorf("%q: %d %s, want 17 with %q", name, r.Code, r.Message, want)
		}
	}
}

// Claim: every other rule answers with Kafka's code and says the value and the
// limit.
// Method: a table of single topics.
func TestCreationRules(t *testing.T) {
	img := NewImage("c", 1, []Broker{{ID: 1}, {ID: 2}}, []Topic{topicOf("there", 1, 1)})
	for _, c := range []struct {
		topic NewTopic
		code  int16
		says  string
	}{
		{NewTopic{Name: "t", Partitions: 3, Factor: 2}, 0, ""},
		{NewTopic{Name: "there", Partitions: 1, Factor: 1}, wire.ErrTopicAlreadyExists, `"there"`},
		{NewTopic{Name: "t", Partitions: 0, Factor: 1}, wire.ErrInvalidPartitions, "is 0"},
		{NewTopic{Name: "t", Partitions: -2, Factor: 1}, wire.ErrInvalidPartitions, "is -2"},
		{NewTopic{Name: "t", Partitions: 1, Factor: 0}, wire.ErrInvalidReplicationFactor, "is 0"},
		{NewTopic{Name: "t", Partitions: 1, Factor: 3}, wire.ErrInvalidReplicationFactor, "only 2 broker(s)"},
		{NewTopic{Name: "t", Partitions: 1 << 30, Factor: 1}, wire.ErrPolicyViolation, "10000"},
		{NewTopic{Name: "t", Assignment: [][]int32{{1, 2}, {2, 1}}}, 0, ""},
		{NewTopic{Name: "t", Assignment: [][]int32{}}, wire.ErrInvalidReplicaAssignment, "empty"},
		{NewTopic{Name: "t", Assignment: [][]int32{{1}, {}}}, wire.ErrInvalidReplicaAssignment, "partition 1 has no"},
		{NewTopic{Name: "t", Assignment: [][]int32{{1}, {1, 2}}}, wire.ErrInvalidReplicaAssignment, "has 2 replicas"},
		{NewTopic{Name: "t", Assignment: [][]int32{{1, 1}}}, wire.ErrInvalidReplicaAssignment, "broker 1 twice"},
		{NewTopic{Name: "t", Assignment: [][]int32{{7}}}, wire.ErrInvalidReplicaAssignment, "broker 7"},
	} {
		r := NewPlanner(img, []NewTopic{c.topic}).Plan(c.topic)
		if r.Code != c.code || !strings.Contains(r.Message, c.says) || (r.Code == 0) != (r.Topic != nil) {
			t.Errorf("%+v: %d %q, want %d with %q", c.topic, r.Code, r.Message, c.code, c.says)
		}
	}
}

// Claim: the topics of one request are checked against each other: the same
// name twice refuses both, colliding names the second, and together they may
// make no more partitions than one request may.
// Method: requests of several topics.
func TestTopicsOfOneRequestAreCheckedTogether(t *testing.T) {
	img := NewImage("c", 1, []Broker{{ID: 1}}, nil)
	for _, c := range []struct {
		names      []string
		partitions int32
		codes      []int16
	}{
		{[]string{"a", "a", "b", "a"}, 1, []int16{42, 42, 0, 42}},
		{[]string{"x.y", "x_y"}, 1, []int16{0, 17}},
		{[]string{"a", "b", "c"}, 4000, []int16{0, 0, 44}},
	} {
		var topics []NewTopic
		for _, name := range c.names {
			topics = append(topics, NewTopic{Name: name, Partitions: c.partitions, Factor: 1})
		}
		p := NewPlanner(img, topics)
		for i, topic := range topics {
			if r := p.Plan(topic); r.Code != c.codes[i] {
				t.Errorf("%v: %s is %d %q, want %d", c.names, topic.Name, r.Code, r.Message, c.codes[i])
			}
		}
	}
}

// Claim: without a manual assignment leaders and replicas are spread evenly.
// Method: count them.
func TestReplicasAreSpread(t *testing.T) {
	img := NewImage("c", 1, []Broker{{ID: 1}, {ID: 2}, {ID: 5}}, nil)
	topic := NewTopic{Name: "t", Partitions: 6, Factor: 2}
	leaders, replicas := map[int32]int{}, map[int32]int{}
	for _, p := range NewPlanner(img, []NewTopic{topic}).Plan(topic).Topic.Partitions {
		leaders[p.Leader]++
		for _, id := range p.Replicas {
			replicas[id]++
		}
	}
	for _, id := range []int32{1, 2, 5} {
		if leaders[id] != 2 || replicas[id] != 4 {
			t.Errorf("broker %d leads %d and holds %d", id, leaders[id], replicas[id])
		}
	}
}
