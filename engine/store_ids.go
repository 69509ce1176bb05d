package engine

import (
	"sync"

	"millrace/engine/checkpoint"
)

// topicIDs gives an id to logs that have none: folders of Kafka before 2.8. The
// commit journal names logs by topic id, so two topics may never share one, and
// zero is shared by all that have none.
type topicIDs struct {
	logs []found // every folder found at the start

	mu    sync.Mutex
	given map[string][16]byte // by topic
}

// idOf reads the id of a log's folder. If it has none, it gets the one that
// another partition of its topic has, or a new one, and keeps it: the file is
// durable before the log is opened, since the journal will go by it.
func (t *topicIDs) idOf(f found) ([16]byte, error) {
	id, ok, err := checkpoint.ReadTopicID(f.dir.fs, f.path)
	if ok || err != nil {
		return id, err
	}
	id = t.give(f.key.Topic)
	return id, checkpoint.WriteTopicID(f.dir.fs, f.path, id, false)
}

// give is the id for the partitions of a topic that have none.
func (t *topicIDs) give(topic string) [16]byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	if id, ok := t.given[topic]; ok {
		return id
	}
	id := newID()
	for _, f := range t.logs {
		if f.key.Topic != topic {
			continue
		}
		known, ok, err := checkpoint.ReadTopicID(f.dir.fs, f.path)
		if err != nil {
			continue // its own opening says so
		}
		if ok {
			id = known
			break
		}
	}
	if t.given == nil {
		t.given = map[string][16]byte{}
	}
	t.given[topic] = id
	return id
}
