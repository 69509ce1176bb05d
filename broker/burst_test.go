package broker

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Claim: requests too large to lie in a connection's buffer together share a journal round all the same: while an answer would have to wait for the
// disk, what the client has sent meanwhile is taken into the same burst (D3, D4), and the answers come in order (W3).
// Method: one connection sends many large synced requests at once; there are fewer rounds than requests.
func TestLargeRequestsInFlightShareRounds(t *testing.T) {
	b := startBroker(t)
	b.topic("big", 1)
	c := b.dial()
	const n = 40
	rounds := func() (sum uint64) {
		for _, s := range b.store.JournalStats() {
			sum += s.Rounds
		}
		return sum
	}
	before := rounds()
	var frames []byte
	for range n {
		frames = append(frames, c.frame(b.produceTo(9, -1, "big", 0, sized(150_000)), 9)...)
	}
	go c.write(frames) // ends when the broker has read all; the test waits for its answers
	for i := range n {
		_, rest := c.read()
		resp := c.decode(kmsg.NewPtrProduceRequest(), 9, rest).(*kmsg.ProduceResponse)
		p := resp.Topics[0].Partitions[0]
		if resp.Topics[0].Topic != "big" || p.ErrorCode != 0 || p.BaseOffset != int64(i) {
			t.Fatalf("answer %d: topic %q, error %d, offset %d", i, resp.Topics[0].Topic, p.ErrorCode, p.BaseOffset)
		}
	}
	if got := rounds() - before; got > n*3/4 {
		t.Errorf("%d requests took %d rounds", n, got)
	} else {
		t.Logf("%d requests took %d rounds", n, got)
	}
}
