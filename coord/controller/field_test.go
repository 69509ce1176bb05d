package controller

import (
	"context"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"

	"millrace/coord"
	"millrace/coord/controller/znode"
)

// Claim (C5): coordination that has lost its data, or is another cluster's, is not written to by brokers that run, and takes no topic from them: they go on with
// what they know until the right tree is back.
// Method: the tree is wiped, then another's, under a broker whose session expires with it; then it is itself again.
func TestField_F097_AnotherTreeIsLeftAlone(t *testing.T) {
	for what, other := range map[string]func() map[string]*fakeNode{
		"empty": func() map[string]*fakeNode { return map[string]*fakeNode{"/": {}} },
		"of another cluster": func() map[string]*fakeNode {
			other := newTree()
			s := start(t, optionsOf(other, 1, nil))
			_ = s.Close()
			return other.copy()
		},
	} {
		t.Run(what, func(t *testing.T) {
			tr := newTree()
			o := optionsOf(tr, 1, nil)
			dial, counted := o.Dial, countedConn{mu: &sync.Mutex{}, reads: map[string]int{}}
			o.Dial = func(ctx context.Context, events func(zk.Event)) (Conn, error) {
				conn, err := dial(ctx, events)
				return countedConn{conn, counted.mu, counted.reads}, err
			}
			s := start(t, o)
			if r := s.CreateTopics(t.Context(), []coord.NewTopic{newTopic("a", 2)}, false)[0]; r.Code != 0 {
				t.Fatalf("%+v", r)
			}
			s.settle(t)
			known := s.Image().Topic("a")
			nodes := other()
			tr.mu.Lock()
			right := tr.nodes
			tr.nodes = nodes
			tr.mu.Unlock()
			tr.expireAll()
			looks := func() int {
				counted.mu.Lock()
				defer counted.mu.Unlock()
				return counted.reads[znode.ClusterIDPath]
			}
			before := looks()
			within(t, "it has looked at the other tree", func() bool { return looks() >= before+5 })
			if r := s.CreateTopics(t.Context(), []coord.NewTopic{newTopic("b", 1)}, false)[0]; r.Code == 0 {
				t.Error("a topic was made in the other tree")
			}
			if s.Image().Topic("a") != known {
				t.Errorf("the topic became %+v", s.Image().Topic("a"))
			}
			tr.mu.Lock()
			for path, node := range tr.nodes {
				if nodes[path] != node {
					t.Errorf("%s was written", path)
				}
			}
			tr.nodes = right
			for path, node := range right { // sessions have ended meanwhile
				if node.stat.EphemeralOwner != 0 {
					delete(right, path)
				}
			}
			tr.mu.Unlock()
			within(t, "controller again", func() bool { _, ok := s.Controller(); return ok })
			s.settle(t)
			if r := s.CreateTopics(t.Context(), []coord.NewTopic{newTopic("b", 1)}, false)[0]; r.Code != 0 {
				t.Errorf("%+v", r)
			}
			requireWhole(t, tr, s.Image())
		})
	}
}
