package broker

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"millrace/coord/controller/znode"
	"millrace/engine/batch"
)

// relay passes connections on to an address until it is cut: then it is as if the machine behind it had died, without a word.
type relay struct {
	net.Listener
	to    string
	mu    sync.Mutex
	dead  bool
	conns []net.Conn
}

func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{Listener: l, to: to}
	t.Cleanup(r.cut)
	go func() { // ends with the listener
		for {
			a, err := l.Accept()
			if err != nil {
				return
			}
			b, err := net.Dial("tcp", to)
			if err != nil || !r.keep(a, b) {
				a.Close()
				continue
			}
			go io.Copy(a, b) // both end when either side is closed, by cut at the latest
			go io.Copy(b, a)
		}
	}()
	return r
}

func (r *relay) keep(conns ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conns = append(r.conns, conns...)
	return !r.dead
}

func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dead = true
	r.Close()
	for _, c := range r.conns {
		c.Close()
	}
}

// ownerOf is the session that has registered broker 1; 0: it is not registered.
func ownerOf(t *testing.T, c *zk.Conn) int64 {
	t.Helper()
	there, stat, err := c.Exists(znode.BrokerPath(1))
	if err != nil {
		t.Fatal(err)
	}
	if !there {
		return 0
	}
	return stat.EphemeralOwner
}

func watcherOf(t *testing.T, address string) *zk.Conn {
	t.Helper()
	c, _, err := zk.Connect([]string{address}, 30*time.Second, zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// standsStill looks for so long that any older session would have expired.
func standsStill(t *testing.T, c *zk.Conn, owner int64, long time.Duration) {
	t.Helper()
	for end := time.Now().Add(long); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if now := ownerOf(t, c); now != owner {
			t.Fatalf("the registration is of session 0x%x, and was of 0x%x", now, owner)
		}
	}
}

const shortSession = 1500 * time.Millisecond

// Claim: a broker that was killed and comes back at once serves and stays registered, over coordination of its own and over another's. The node of its
// last life is never taken for its own: from the moment it has started the owner is its new session, without a gap.
// Method: a copy of a running broker's folder as kill -9 leaves it, the old life's network cut; the registration polled for two time-outs of a session.
func TestField_F091_BackBeforeTheSessionEnds(t *testing.T) {
	s := ensemble(t, t.TempDir(), "127.0.0.1:0")
	address := s.Addr().String()
	through := newRelay(t, address)
	dir := t.TempDir()
	settings := []string{"zookeeper.session.timeout.ms=1500", "node.id=1"}
	old := startBrokerIn(t, dir, append(settings, "zookeeper.connect="+through.Addr().String())...)
	old.topic("t", 2)
	old.mustProduce("t", 1, values(batch.None, "a"))
	c := watcherOf(t, address)
	before := ownerOf(t, c)
	killed := asKilled(t, dir)
	through.cut()
	b := startBrokerIn(t, killed, append(settings, "zookeeper.connect="+address)...)
	now := ownerOf(t, c)
	if now == 0 || now == before {
		t.Errorf("started, and registered by session 0x%x; the last life's was 0x%x", now, before)
	}
	b.mustProduce("t", 1, values(batch.None, "b"))
	standsStill(t, c, now, 2*shortSession)
	if end := b.end("t", 1); end != 2 {
		t.Errorf("the log ends at %d", end)
	}
}

// Claim: the same over the built-in coordination, which knows that the last life is over.
func TestField_F093_RegistrationIsOfThisLife(t *testing.T) {
	dir := t.TempDir()
	settings := []string{"zookeeper.session.timeout.ms=1500", "millrace.coordinator.listener=127.0.0.1:0", "node.id=1"}
	b := startBrokerIn(t, dir, settings...)
	before := ownerOf(t, watcherOf(t, b.Ready().Coordinator))
	killed := asKilled(t, dir)
	b.halt()
	b = startBrokerIn(t, killed, settings...)
	c := watcherOf(t, b.Ready().Coordinator)
	now := ownerOf(t, c)
	if now == 0 || now == before {
		t.Errorf("registered by session 0x%x, the last life's was 0x%x", now, before)
	}
	standsStill(t, c, now, 2*shortSession)
}

// Claim: a second broker under the id of one that lives is refused, with words that say so, and harms nothing.
// Method: another folder, the same ensemble.
func TestField_F091_TheIdOfALiveBroker(t *testing.T) {
	s := ensemble(t, t.TempDir(), "127.0.0.1:0")
	address := s.Addr().String()
	settings := []string{"zookeeper.connect=" + address, "zookeeper.session.timeout.ms=1500", "node.id=1"}
	first := startBroker(t, settings...)
	first.topic("t", 1)
	c := watcherOf(t, address)
	owner := ownerOf(t, c)
	second, err := Start(context.Background(), loaded(t, t.TempDir(), settings...))
	if err == nil {
		_ = second.Stop(context.Background())
	}
	if err == nil || !strings.Contains(err.Error(), "another broker has its id") {
		t.Errorf("a second broker 1: %v", err)
	}
	if now := ownerOf(t, c); now != owner {
		t.Errorf("the first one's registration is of session 0x%x, and was of 0x%x", now, owner)
	}
	first.mustProduce("t", 0, values(batch.None, "a"))
	first.topic("u", 1)
}
