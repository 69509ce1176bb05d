package coord

import (
	"slices"
	"testing"
)

func topicOf(name string, id byte, partitions int) Topic {
	t := Topic{Name: name, ID: ID{id}}
	for range partitions {
		t.Partitions = append(t.Partitions, Partition{Leader: 1, Replicas: []int32{1}, ISR: []int32{1}})
	}
	return t
}

// Claim: an image never changes after it is published (C4): changes make new
// images, and both have their own topics, ids and counts.
// Method: put and drop topics, look at both.
func TestImagesNeverChange(t *testing.T) {
	first := NewImage("cluster", 1, []Broker{{ID: 2}, {ID: 1}}, []Topic{topicOf("b", 1, 2), topicOf("a", 2, 1)})
	second := first.With([]Topic{topicOf("c", 3, 4), topicOf("b", 4, 1)}, []string{"a"})
	third := second.WithBrokers(-1, nil)

	if got := first.Names(); !slices.Equal(got, []string{"a", "b"}) || first.Partitions() != 3 {
		t.Errorf("first: %v, %d partitions", got, first.Partitions())
	}
	if got := second.Names(); !slices.Equal(got, []string{"b", "c"}) || second.Partitions() != 5 {
		t.Errorf("second: %v, %d partitions", got, second.Partitions())
	}
	if first.TopicByID(ID{1}) == nil || first.TopicByID(ID{3}) != nil || second.TopicByID(ID{1}) != nil || second.TopicByID(ID{4}) != second.Topic("b") {
		t.Error("ids are mixed up")
	}
	if first.Broker(1) == nil || first.Broker(3) != nil || first.Brokers()[0].ID != 1 || third.Broker(1) != nil || third.ControllerID() != -1 || second.ControllerID() != 1 {
		t.Error("brokers are mixed up")
	}
}

// Claim: the text of an id is 22 letters and reads back; nothing else is an id.
// Method: a table.
func TestIDsAsText(t *testing.T) {
	id := ID{0xfb, 0xff, 1}
	text := IDText(id)
	if back, ok := ParseID(text); len(text) != 22 || !ok || back != id {
		t.Errorf("%q reads back as %v, %v", text, back, ok)
	}
	for _, bad := range []string{"", "abc", text + "A", "*" + text[1:], text[:21]} {
		if _, ok := ParseID(bad); ok {
			t.Errorf("%q is taken for an id", bad)
		}
	}
}
