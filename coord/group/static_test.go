package group

import (
	"testing"
	"time"

	"millrace/wire"
)

// F061: two processes with one group.instance.id both think they own the slot.
// Claim: the newer wins and the older is fenced in every request; a restart
// within the session changes neither generation nor shares, also after the
// broker was killed in between.
// Method: three static members; one comes back without its id.
func TestField_F061_StaticMembers(t *testing.T) {
	s := newStory(t)
	a, b, c := s.static("g", "a"), s.static("g", "b"), s.static("g", "c")
	s.gather(a, b, c)

	again := s.static("g", "b")
	s.want("restart", again.joined(again.join()), 0)
	s.want("restart", again.synced(again.sync()), 0)
	if again.id == b.id || again.generation != 1 || again.share != b.share || s.state("g") != "Stable" {
		t.Fatalf("before %+v, after %+v, %s", b, again, s.state("g"))
	}
	s.want("heartbeat of others", a.heartbeat(), 0)
	s.want("heartbeat of the old", b.heartbeat(), wire.ErrFencedInstanceID)
	s.want("sync of the old", b.synced(b.sync()), wire.ErrFencedInstanceID)
	s.want("commit of the old", s.commitCode(b.commit(9, 1)), wire.ErrFencedInstanceID)
	s.want("join of the old", b.joined(b.join()), wire.ErrFencedInstanceID)
	stranger := *a
	stranger.instance = "nobody"
	s.want("heartbeat of an unknown instance", stranger.heartbeat(), wire.ErrUnknownMemberID)

	s.restart() // the broker's
	s.want("heartbeat of the new, after a crash", again.heartbeat(), 0)
	s.want("heartbeat of the old, after a crash", b.heartbeat(), wire.ErrFencedInstanceID)

	leader := s.static("g", "a")
	s.want("restart of the leader", leader.joined(leader.join()), 0)
	if !leader.skip || leader.leader != leader.id || len(leader.members) != 3 {
		t.Errorf("a leader that comes back: %+v", leader)
	}
	old := s.static("g", "a")
	old.version = 8
	s.want("restart of an older client", old.joined(old.join()), 0)
	if old.leader == old.id || len(old.members) != 0 {
		t.Errorf("an older client would assign: %+v", old)
	}
}

// Claim: a static member that comes back while others rebalance takes its own
// place; its old self's parked requests are answered.
func TestStaticMemberComesBackInARebalance(t *testing.T) {
	s := newStory(t)
	a, b := s.static("g", "a"), s.static("g", "b")
	s.gather(a, b)
	ja := a.join() // the leader asks for a rebalance
	twin := s.static("g", "a")
	jt := twin.join()
	s.want("the parked old self", a.joined(ja), wire.ErrFencedInstanceID)
	jb := b.join()
	s.assign(map[*client]Call{twin: jt, b: jb})

	jb = func() Call { b.topics = []string{"x"}; return b.join() }()
	jt = twin.join()
	s.want("join", b.joined(jb), 0)
	s.want("join", twin.joined(jt), 0)
	sb := b.sync() // waits for the leader
	again := s.static("g", "b")
	j := again.join()
	s.want("the parked old self", b.synced(sb), wire.ErrFencedInstanceID)
	s.want("sync of the leader", twin.synced(twin.sync()), wire.ErrRebalanceInProgress)
	s.assign(map[*client]Call{again: j, twin: twin.join()})
}

// Claim: a static member that is away keeps its place until its session ends,
// whatever the others do meanwhile; then it goes.
func TestStaticMemberThatIsAway(t *testing.T) {
	s := newStory(t)
	a, b := s.client("g"), s.static("g", "b")
	a.session, b.session, b.rebalance = 10*time.Minute, 10*time.Minute, 5*time.Second
	s.gather(a, b)
	ja := a.join()
	s.pass(6 * time.Second)
	s.assign(map[*client]Call{a: ja})
	if len(a.members) != 2 {
		t.Fatalf("members %v", a.members)
	}
	s.pass(time.Minute)
	if n := len(s.g.groups["g"].members); n != 2 || s.state("g") != "Stable" {
		t.Fatalf("%v", s.states())
	}
	for range 9 {
		s.pass(time.Minute)
		a.heartbeat()
	}
	if len(s.g.groups["g"].members) != 1 {
		t.Errorf("%v", s.states())
	}
}

// Claim: when the new place of a static member cannot be written, the answer is
// an error, and trying again works.
func TestStaticRejoinThatIsNotWritten(t *testing.T) {
	s := newStory(t)
	a := s.static("g", "a")
	s.gather(a)
	s.fail = wire.ErrKafkaStorageError
	again := s.static("g", "a")
	s.want("rejoin", again.joined(again.join()), wire.ErrNotCoordinator)
	s.fail = 0
	s.want("rejoin", again.joined(again.join()), 0)
	s.want("heartbeat", again.heartbeat(), 0)
	s.want("heartbeat of the old", a.heartbeat(), wire.ErrFencedInstanceID)
}
