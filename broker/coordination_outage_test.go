//go:build !race

package broker

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/engine/batch"
	"millrace/wire"
)

// Not under the race detector: go-zookeeper 1.0.4 reads its last zxid beside its own receiver when it connects again (sendSetWatches). coord/controller
// reads the tree anew then.

// Claim: zookeeper.connect in place of the built-in service: the same broker, below a chroot. While coordination is away produce and fetch go on, what
// needs it is answered with errors that clients retry, and all of it resumes when it is back.
// Method: a service of its own, stopped and started again at the same address.
func TestAnEnsembleThatGoesAndComes(t *testing.T) {
	tree := t.TempDir()
	s := ensemble(t, tree, "127.0.0.1:0")
	address := s.Addr().String()
	b := startBroker(t, "zookeeper.connect="+address+"/a/b", "zookeeper.session.timeout.ms=20000", withAdmin)
	if at := b.Ready().Coordinator; at != address+"/a/b" || b.built != nil {
		t.Errorf("at %s", at)
	}
	b.topic("t", 1)
	connected := func(want float64) func() bool {
		return func() bool { return b.scrape()["millrace_coordination_session"] == want }
	}
	b.eventually("metrics show the session", connected(1))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	b.eventually("metrics show that it has no connection", connected(0))
	b.mustProduce("t", 0, values(batch.None, "a"))
	c := b.dial()
	if r := c.fetch(b.fetchOf(11, want{topic: "t"}), 11); len(r.Topics[0].Partitions[0].RecordBatches) == 0 {
		t.Errorf("%+v", r)
	}
	create := func() int16 {
		req := kmsg.NewPtrCreateTopicsRequest()
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = "u", 1, 1
		req.Topics, req.TimeoutMillis = append(req.Topics, topic), 5000
		return c.ask(req, 5).(*kmsg.CreateTopicsResponse).Topics[0].ErrorCode
	}
	if code := create(); code != wire.ErrNotController && code != wire.ErrRequestTimedOut {
		t.Errorf("while coordination is away a topic is answered with %s", wire.ErrorName(code))
	}
	ensemble(t, tree, address)
	b.eventually("a topic can be made again", func() bool {
		code := create()
		return code == wire.ErrNone || code == wire.ErrTopicAlreadyExists
	})
	b.mustProduce("u", 0, values(batch.None, "a"))
	b.eventually("metrics show the session again", connected(1))
	b.scrape().expect(t, scraped{"millrace_coordination_znodes": 0})
}
