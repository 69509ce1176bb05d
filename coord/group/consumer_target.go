package group

import (
	"encoding/binary"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/coord/group/assign"
)

// look begins a new epoch if there is a reason: the one that the caller has, or
// that the topics which members read are not what they were.
func (m *Groups) look(now time.Time, s *step, reason bool) {
	n := s.g.modern
	reason = reason || n.epoch == 0
	if !reason && n.seen == m.topicsSeen {
		return
	}
	s.dropPatterns()
	if topics := m.topics(); topics != nil {
		for _, name := range slices.Sorted(maps.Keys(n.patterns)) {
			if matched := match(name, topics); !slices.Equal(matched, n.patterns[name].topics) {
				s.setPattern(now, name, matched)
			}
		}
	}
	seen := n.seen
	n.seen = m.topicsSeen
	s.undo = append(s.undo, func() { n.seen = seen })
	if hash := m.topicsHash(n); reason || hash != n.hash {
		s.setEpoch(hash)
	}
}

// match lists the topics whose whole name fits a pattern, in order. Internal
// topics fit too, as in Kafka.
func match(name string, topics Topics) []string {
	p, err := compile(name)
	if err != nil { // of the log of a broker that takes what we do not
		return nil
	}
	var out []string
	for _, t := range topics.Names() {
		if p.MatchString(t) {
			out = append(out, t)
		}
	}
	slices.Sort(out)
	return out
}

// reads lists all topics that members read and that exist.
func (m *Groups) reads(n *modern) map[string]Topic {
	out := map[string]Topic{}
	known := m.topics()
	if known == nil {
		return out
	}
	note := func(names []string) {
		for _, name := range names {
			if _, done := out[name]; !done {
				if t, ok := known.Topic(name); ok {
					out[name] = t
				}
			}
		}
	}
	for _, x := range n.members {
		note(x.said.Topics)
	}
	for _, p := range n.patterns {
		note(p.topics)
	}
	return out
}

// topicsHash tells whether what members read has changed. Never 0.
func (m *Groups) topicsHash(n *modern) int64 {
	topics := m.reads(n)
	h := fnv.New64a()
	for _, name := range slices.Sorted(maps.Keys(topics)) {
		t := topics[name]
		_, _ = h.Write(t.ID[:])
		_, _ = h.Write(binary.BigEndian.AppendUint32([]byte(name), uint32(t.Partitions)))
	}
	return int64(h.Sum64() | 1)
}

// target makes a target for the group's epoch, now or when an assignor may run
// again.
func (m *Groups) target(now time.Time, s *step) {
	n := s.g.modern
	if n.epoch <= n.targetEpoch || len(n.members) == 0 {
		return
	}
	if n.assignedAt > 0 {
		if next := time.UnixMilli(n.assignedAt).Add(m.settings.Consumer.times(s.g.id).Interval); next.After(now) && !next.After(now.Add(maxInterval)) {
			m.timers.set(&n.assign, next)
			return
		}
	}
	m.timers.stop(&n.assign)
	topics := m.reads(n)
	counts := make(map[[16]byte]int, len(topics))
	for _, t := range topics {
		counts[t.ID] = t.Partitions
	}
	ordered := n.ordered()
	members := make([]assign.Member, len(ordered))
	for i, x := range ordered {
		members[i] = assign.Member{ID: x.id, Had: n.target[x.id]}
		if x.said.Instance != nil {
			members[i].Instance = *x.said.Instance
		}
		for _, name := range n.topicsOf(x) {
			if t, ok := topics[name]; ok {
				members[i].Topics = append(members[i].Topics, t.ID)
			}
		}
	}
	shares := assign.ByName(m.assignorOf(n))(members, counts)
	for i, x := range ordered {
		if had, ok := n.target[x.id]; !ok || !slices.Equal(had, shares[i]) {
			s.setTarget(x.id, shares[i])
		}
	}
	s.setTargetEpoch(now)
}

// assignorOf is the assignor that most members wish for.
func (m *Groups) assignorOf(n *modern) string {
	allowed := m.settings.Consumer.Assignors
	votes := map[string]int{}
	for _, x := range n.members {
		if x.said.Assignor != nil {
			votes[*x.said.Assignor]++
		}
	}
	best := allowed[0]
	for _, a := range allowed {
		if votes[a] > votes[best] {
			best = a
		}
	}
	return best
}

// assignOp makes the target that had to wait.
func (m *Groups) assignOp(g *group) *consumerOp {
	return &consumerOp{run: func(now time.Time, s *step) kmsg.Response {
		m.target(now, s)
		return nil
	}}
}

// reconcile takes a member one step towards its target: it returns the member
// itself if there is none to take. The member gives up before it gets, and gets
// only what nobody has (G2).
func (n *modern) reconcile(x *consumer, b *beat) *consumer {
	switch x.state {
	case unrevoked:
		if b.owning(x.revoking) {
			return x
		}
	case settled:
		if x.epoch == n.targetEpoch && b.epoch != epochJoins {
			return x
		}
	}
	target := n.target[x.id]
	y := *x
	y.assigned, y.revoking = holding{}, holding{}
	for p, epoch := range x.assigned {
		if contains(target, p) {
			y.assigned[p] = epoch
		} else {
			y.revoking[p] = epoch
		}
	}
	if b.owning(y.revoking) {
		y.state = unrevoked
		return n.unlessSame(x, &y)
	}
	y.revoking = holding{}
	y.state = settled
	for _, p := range target {
		if _, has := y.assigned[p]; has {
			continue
		}
		if owner := n.owners[p]; owner != "" && owner != x.id {
			y.state = unreleased
			continue
		}
		y.assigned[p] = n.targetEpoch
	}
	if y.epoch != n.targetEpoch {
		y.previous, y.epoch = x.epoch, n.targetEpoch
	}
	return n.unlessSame(x, &y)
}

func (n *modern) unlessSame(x, y *consumer) *consumer {
	if x.epoch == y.epoch && x.previous == y.previous && x.state == y.state && maps.Equal(x.assigned, y.assigned) && maps.Equal(x.revoking, y.revoking) {
		return x
	}
	return y
}

// owning says whether the member may still use one of the partitions. One that
// does not tell may use them all.
func (b *beat) owning(h holding) bool {
	if len(h) == 0 {
		return false
	}
	if !b.tells {
		return true
	}
	for p := range h {
		if contains(b.owns, p) {
			return true
		}
	}
	return false
}
