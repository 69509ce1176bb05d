package group

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/wire"
)

// leavesTogether is the first version of LeaveGroup that names several members.
const leavesTogether = 3

// Leave serves LeaveGroup: of one member for itself, or of several at an
// administrator's wish.
func (m *Groups) Leave(now time.Time, call Call, from Client, req *kmsg.LeaveGroupRequest) {
	r := kmsg.NewPtrLeaveGroupResponse()
	if req.Group == "" {
		r.ErrorCode = wire.ErrInvalidGroupID
		m.answer(call, r)
		return
	}
	leaving := req.Members
	if from.Version < leavesTogether {
		leaving = []kmsg.LeaveGroupRequestMember{{MemberID: req.MemberID}}
	}
	g := m.groups[req.Group]
	mark := m.writes.last
	gone := false
	for i := range leaving {
		l := &leaving[i]
		code := m.leaveOne(now, g, l)
		gone = gone || code == wire.ErrNone
		if from.Version < leavesTogether {
			r.ErrorCode = code
			break
		}
		r.Members = append(r.Members, kmsg.LeaveGroupResponseMember{MemberID: l.MemberID, InstanceID: l.InstanceID, ErrorCode: code})
	}
	if gone {
		m.afterRemoval(now, g)
		m.forgetIfIdle(g)
	}
	m.answerAfter(mark, call, r)
}

// leaveOne removes one member; what that means for the group is up to Leave.
func (m *Groups) leaveOne(now time.Time, g *group, l *kmsg.LeaveGroupRequestMember) int16 {
	if g == nil {
		return wire.ErrUnknownMemberID
	}
	if g.modern != nil {
		return m.consumerRemoved(now, g, l)
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
