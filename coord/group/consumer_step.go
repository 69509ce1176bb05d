package group

import (
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/coord/group/assign"
	"millrace/coord/group/record"
	"millrace/wire"
)

// consumerOp is something that happens to a modern group. Ops of a group run in
// order, several in one step, and wait while a step is being written.
type consumerOp struct {
	call    Call // 0: nobody waits for an answer
	run     func(now time.Time, s *step) kmsg.Response
	refuse  func(code int16) kmsg.Response
	again   func(now time.Time) // the group is another now; nil: nothing is to be done then
	classic bool                // a JoinGroup: a group without members becomes classic for it
}

// step changes a modern group: in memory at once, with the way back, and in the
// log with one write. Nobody is answered before that is durable; if it fails,
// all is taken back. So the state is always the log's, or one write ahead of it.
type step struct {
	g       *group
	records []record.Record
	size    int
	undo    []func()
	touched map[string]bool // members whose alarms must be looked at; true: alive

	after   []func(now time.Time) // once it is durable, and alarms have been looked at
	failed  []func(now time.Time) // once all is taken back
	becomes *group                // the classic group that this one is then; nil: it stays
}

// enqueue lets an op happen as soon as it can.
func (m *Groups) enqueue(now time.Time, g *group, op *consumerOp) {
	g.modern.queue = append(g.modern.queue, op)
	m.turn(now, g)
}

// turn runs the ops that wait, unless a step is being written.
func (m *Groups) turn(now time.Time, g *group) {
	n := g.modern
	for g.modern == n && !n.writing && len(n.queue) > 0 {
		if n.queue[0].classic && len(n.members) == 0 {
			m.becomeClassic(now, g)
			break
		}
		s, ops, answers := n.nextStep(now, g)
		if len(s.records) == 0 {
			m.stepOver(now, s, ops, answers, wire.ErrNone)
			continue
		}
		n.writing = true
		m.write(s.records, func(now time.Time, code int16) {
			n.writing = false
			m.stepOver(now, s, ops, answers, code)
			if g.modern == n {
				m.turn(now, g)
				return
			}
			m.runAgain(now, n)
			m.forgetIfIdle(g)
		})
	}
	if g.modern == n && n.epoch == 0 && n.vacant() {
		m.endModern(g) // it came to nothing
	}
	m.forgetIfIdle(g)
}

// nextStep runs ops as long as they fit into one step. One that turns the group
// into another is the last.
func (n *modern) nextStep(now time.Time, g *group) (*step, []*consumerOp, []kmsg.Response) {
	s := &step{g: g, touched: map[string]bool{}}
	var ops []*consumerOp
	var answers []kmsg.Response
	for len(n.queue) > 0 && s.size < maxStep && s.becomes == nil {
		op := n.queue[0]
		if op.classic && len(n.members) == 0 {
			break
		}
		n.queue[0] = nil
		n.queue = n.queue[1:]
		ops, answers = append(ops, op), append(answers, op.run(now, s))
	}
	return s, ops, answers
}

// runAgain is for ops that waited for a group which is another now.
func (m *Groups) runAgain(now time.Time, was *modern) {
	waiting := was.queue
	was.queue = nil
	for _, op := range waiting {
		if op.again != nil {
			op.again(now)
		}
	}
}

// stepOver ends a step: it is durable, or nothing of it has happened.
func (m *Groups) stepOver(now time.Time, s *step, ops []*consumerOp, answers []kmsg.Response, code int16) {
	n := s.g.modern
	then := s.after
	if code != wire.ErrNone {
		for _, f := range slices.Backward(s.undo) {
			f()
		}
		m.mindTarget(now, s.g)
		then = s.failed
	}
	m.answerOps(ops, answers, code)
	if code == wire.ErrNone && s.becomes != nil {
		m.downgraded(now, s.g, s.becomes)
		return
	}
	for _, id := range slices.Sorted(maps.Keys(s.touched)) {
		m.mind(now, s.g, n, id, s.touched[id])
	}
	for _, f := range then {
		f(now)
	}
}

func (m *Groups) answerOps(ops []*consumerOp, answers []kmsg.Response, code int16) {
	for i, op := range ops {
		switch {
		case op.call == 0:
		case code != wire.ErrNone:
			m.answer(op.call, op.refuse(code))
		default:
			m.answer(op.call, answers[i])
		}
	}
}

// mind sets a member's alarms as its state calls for. A session that was
// running goes on, unless the member has shown that it is alive.
func (m *Groups) mind(now time.Time, g *group, n *modern, id string, alive bool) {
	x, l := n.members[id], n.lives[id]
	if x == nil {
		if l != nil {
			m.endLife(l)
			delete(n.lives, id)
		}
		return
	}
	if l == nil {
		l = &life{}
		l.session.fire = func(now time.Time) { m.enqueue(now, g, m.silentOp(g, id, l)) }
		l.rebalance.fire = func(now time.Time) { m.enqueue(now, g, m.slowOp(g, id)) }
		l.behind.fire = func(now time.Time) { m.enqueue(now, g, m.behindOp(g, id, l)) }
		n.lives[id] = l
	}
	if alive || l.session.index == 0 {
		m.timers.set(&l.session, now.Add(x.session(&m.settings, g.id)))
	}
	if x.said.Classic == nil {
		m.timers.stop(&l.behind)
	}
	switch {
	case x.state != unrevoked:
		m.timers.stop(&l.rebalance)
		l.revoking = nil
	case l.rebalance.index == 0 || !sameHolding(l.revoking, x.revoking): // each time it is told, it has the whole time
		m.timers.stop(&l.rebalance)
		m.timers.set(&l.rebalance, now.Add(millis(x.said.RebalanceMs)))
		l.revoking = x.revoking
	}
}

// mindTarget makes sure that a target which is due is made, though nobody asks:
// after a restart, and when the write of one has failed.
func (m *Groups) mindTarget(now time.Time, g *group) {
	n := g.modern
	if n.epoch > n.targetEpoch && len(n.members) > 0 && n.assign.index == 0 {
		m.timers.set(&n.assign, now.Add(max(m.settings.Consumer.times(g.id).Interval, time.Second)))
	}
}

// add notes records.
func (s *step) add(records ...record.Record) {
	s.records = append(s.records, records...)
	for _, r := range records {
		s.size += r.Size()
	}
}

// endClassic ends the record of the classic group that this one was.
func (s *step) endClassic() {
	g := s.g
	if !g.recorded {
		return
	}
	g.recorded = false
	s.undo = append(s.undo, func() { g.recorded = true })
	s.add(record.StateEnd(g.id))
}

// setMember replaces a member, or takes in a new one.
func (s *step) setMember(x *consumer) {
	n := s.g.modern
	old := n.put(x)
	s.undo = append(s.undo, func() {
		n.forget(x)
		if old != nil {
			n.put(old)
		}
	})
	if _, ok := s.touched[x.id]; !ok {
		s.touched[x.id] = false
	}
	if old == nil || !equalSaid(&old.said, &x.said) {
		s.add(record.OfConsumer(s.g.id, x.id, &x.said))
	}
	if old == nil || old.epoch != x.epoch || old.previous != x.previous || old.state != x.state || !maps.Equal(old.assigned, x.assigned) || !maps.Equal(old.revoking, x.revoking) {
		s.add(currentRecord(s.g.id, x))
	}
}

func currentRecord(group string, x *consumer) record.Record {
	return record.OfCurrent(group, x.id, &record.Current{
		Epoch: x.epoch, Previous: x.previous, State: x.state, Assigned: partitionsOf(x.assigned), Revoking: partitionsOf(x.revoking),
	})
}

// dropMember removes a member with its target.
func (s *step) dropMember(x *consumer) {
	n := s.g.modern
	target, had := n.target[x.id]
	n.forget(x)
	delete(n.target, x.id)
	s.undo = append(s.undo, func() {
		n.put(x)
		if had {
			n.target[x.id] = target
		}
	})
	s.touched[x.id] = false
	s.add(record.ConsumerEnd(s.g.id, x.id)...)
}

// dropPatterns ends the patterns that nobody uses.
func (s *step) dropPatterns() {
	n := s.g.modern
	for _, name := range slices.Sorted(maps.Keys(n.patterns)) {
		p := n.patterns[name]
		if p.users > 0 {
			continue
		}
		delete(n.patterns, name)
		s.undo = append(s.undo, func() { n.patterns[name] = p })
		s.add(record.PatternEnd(s.g.id, name))
	}
}

// setPattern notes what a pattern has come to.
func (s *step) setPattern(now time.Time, name string, topics []string) {
	p := s.g.modern.patterns[name]
	old := p.topics
	p.topics = topics
	s.undo = append(s.undo, func() { p.topics = old })
	s.add(record.OfPattern(s.g.id, name, &record.Pattern{Topics: topics, At: now.UnixMilli()}))
}

// setEpoch begins the next epoch of the group.
func (s *step) setEpoch(hash int64) {
	n := s.g.modern
	epoch, before := n.epoch, n.hash
	n.epoch, n.hash = epoch+1, hash
	s.undo = append(s.undo, func() { n.epoch, n.hash = epoch, before })
	s.add(record.OfConsumerEpoch(s.g.id, record.Epoch{Epoch: n.epoch, Hash: hash}))
}

// setTarget gives a member another target.
func (s *step) setTarget(id string, target []assign.Place) {
	n := s.g.modern
	old, had := n.target[id]
	n.target[id] = target
	s.undo = append(s.undo, func() {
		if delete(n.target, id); had {
			n.target[id] = old
		}
	})
	s.add(targetRecord(s.g.id, id, target))
}

func targetRecord(group, id string, target []assign.Place) record.Record {
	h := make(holding, len(target))
	for _, p := range target {
		h[p] = 0
	}
	list := partitionsOf(h)
	for i := range list {
		list[i].Epochs = nil
	}
	return record.OfTarget(group, id, list)
}

// setTargetEpoch says that the target is the group's epoch's.
func (s *step) setTargetEpoch(now time.Time) {
	n := s.g.modern
	epoch, at := n.targetEpoch, n.assignedAt
	n.targetEpoch, n.assignedAt = n.epoch, now.UnixMilli()
	s.undo = append(s.undo, func() { n.targetEpoch, n.assignedAt = epoch, at })
	s.add(record.OfTargetEpoch(s.g.id, record.TargetEpoch{Epoch: n.targetEpoch, At: n.assignedAt}))
}
