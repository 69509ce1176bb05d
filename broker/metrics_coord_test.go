package broker

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Claim: metrics tell what the built-in coordination holds and does, and who is the controller.
// Method: a topic made and deleted between scrapes.
func TestCoordinationIsMeasured(t *testing.T) {
	b := startBroker(t, withAdmin)
	before := b.scrape()
	b.eventually("the start is over", func() bool {
		last := before
		before = b.scrape()
		return before["kafka_controller_kafkacontroller_activecontrollercount"] == 1 && before["millrace_coordination_watches"] == last["millrace_coordination_watches"]
	})
	before.expect(t, scraped{
		"kafka_controller_kafkacontroller_activecontrollercount": 1, "millrace_controller_epoch": 1, "kafka_controller_kafkacontroller_activebrokercount": 1,
		"kafka_controller_kafkacontroller_offlinepartitionscount": 0, "kafka_controller_kafkacontroller_topicstodeletecount": 0,
		"millrace_coordination_session": 1, "kafka_server_sessionexpirelistener_zookeeperexpires_total": 0,
		"millrace_coordination_sessions": 1, "millrace_coordination_connections": 1, "millrace_coordination_ephemerals": 2, // broker and controller
	})
	b.topic("t", 3)
	b.eventually("the topic's nodes are counted", func() bool {
		now := b.scrape()
		// Settings, the topic, its partitions, and two nodes for each of the three.
		return now["millrace_coordination_znodes"] == before["millrace_coordination_znodes"]+9 && now["millrace_coordination_watches"] == before["millrace_coordination_watches"]+1
	})
	after := b.scrape()
	for _, name := range []string{"data_bytes", "requests_total", "sent_total", "transactions_total", "sync_seconds_count", "sync_seconds_sum"} {
		if name = "millrace_coordination_" + name; after[name] <= before[name] {
			t.Errorf("%s was %v and is %v", name, before[name], after[name])
		}
	}
	if syncs, transactions := after["millrace_coordination_sync_seconds_count"], after["millrace_coordination_transactions_total"]; syncs > transactions {
		t.Errorf("%v syncs of %v transactions", syncs, transactions)
	}
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.TopicNames, req.TimeoutMillis = []string{"t"}, 5000
	b.dial().ask(req, 3)
	b.eventually("they are gone", func() bool {
		return b.scrape()["millrace_coordination_znodes"] == before["millrace_coordination_znodes"]
	})
}
