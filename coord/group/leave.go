package group

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/wire"
)

// leavesTogether is the first version of LeaveGroup that names several members.
const leavesTogether = 3

// leaveCall is a LeaveGroup.
type leaveCall struct {
	call    Call
	version int16
	group   string
	leaving []kmsg.LeaveGroupRequestMember
}

// Leave serves LeaveGroup: of one member for itself, or of several at an
// administrator's wish.
func (m *Groups) Leave(now time.Time, call Call, from Client, req *kmsg.LeaveGroupRequest) {
	c := &leaveCall{call: call, version: from.Version, group: req.Group, leaving: slices.Clone(req.Members)}
	if from.Version < leavesTogether {
		c.leaving = []kmsg.LeaveGroupRequestMember{{MemberID: req.MemberID}}
	}
	if req.Group == "" {
		m.answer(call, c.refuse(wire.ErrInvalidGroupID))
		return
	}
	m.leave(now, c)
}

// leave finds the call's group, which may be of either protocol.
func (m *Groups) leave(now time.Time, c *leaveCall) {
	g := m.groups[c.group]
	if g != nil && g.modern != nil {
		m.leaveMixed(now, g, c)
		return
	}
	mark := m.writes.last
	gone := false
	r := c.answer(func(l *kmsg.LeaveGroupRequestMember) int16 {
		code := m.leaveOne(g, l)
		gone = gone || code == wire.ErrNone
		return code
	})
	if gone {
		m.afterRemoval(now, g)
		m.forgetIfIdle(g)
	}
	m.answerAfter(mark, c.call, r)
}

func (c *leaveCall) refuse(code int16) kmsg.Response {
	r := kmsg.NewPtrLeaveGroupResponse()
	r.ErrorCode = code
	return r
}

// answer lets each member leave and tells what became of it.
func (c *leaveCall) answer(leave func(l *kmsg.LeaveGroupRequestMember) int16) *kmsg.LeaveGroupResponse {
	r := kmsg.NewPtrLeaveGroupResponse()
	for i := range c.leaving {
		l := &c.leaving[i]
		code := leave(l)
		if c.version < leavesTogether {
			r.ErrorCode = code
			break
		}
		r.Members = append(r.Members, kmsg.LeaveGroupResponseMember{MemberID: l.MemberID, InstanceID: l.InstanceID, ErrorCode: code})
	}
	return r
}

// leaveOne removes one member of a classic group; what that means for the group
// is up to leave.
func (m *Groups) leaveOne(g *group, l *kmsg.LeaveGroupRequestMember) int16 {
	if g == nil {
		return wire.ErrUnknownMemberID
	}
	if p := g.pending[l.MemberID]; p != nil {
		m.dropPending(g, l.MemberID, p)
		return wire.ErrNone
	}
	id := l.MemberID
	if id == "" && l.InstanceID != nil { // an administrator removes a static member
		if x := g.instances[*l.InstanceID]; x != nil {
			id = x.id
		}
	}
	if code := g.validate(id, l.InstanceID); code != wire.ErrNone {
		return code
	}
	m.remove(g, g.members[id], wire.ErrUnknownMemberID)
	return wire.ErrNone
}
