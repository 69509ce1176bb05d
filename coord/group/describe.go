package group

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/wire"
)

// describeUnknown is the first version of DescribeGroups that is told that a
// group is not there; older ones get a Dead one.
const describeUnknown = 6

// dead is what Kafka calls a group that is not there.
const dead = "Dead"

// Describe serves one group of DescribeGroups. What members said and own is
// told only while that belongs together.
func (m *Groups) Describe(version int16, id string) kmsg.DescribeGroupsResponseGroup {
	r := kmsg.NewDescribeGroupsResponseGroup()
	r.Group = id
	g := m.groups[id]
	if g == nil || g.modern != nil {
		r.State = dead
		if version >= describeUnknown {
			r.ErrorCode = wire.ErrGroupIDNotFound
			message := fmt.Sprintf("Group %s not found.", id)
			if g != nil {
				message = fmt.Sprintf("Group %s is not a classic group.", id)
			}
			r.ErrorMessage = &message
		}
		return r
	}
	r.State, r.ProtocolType = g.state.String(), g.protocolType
	if g.state == Stable {
		r.Protocol = g.protocol
	}
	for _, x := range g.ordered() {
		d := kmsg.NewDescribeGroupsResponseGroupMember()
		d.MemberID, d.InstanceID, d.ClientID, d.ClientHost = x.id, x.instance, x.clientID, x.host
		if g.state == Stable {
			d.ProtocolMetadata, d.MemberAssignment = x.metadata(g.protocol), x.assignment
		}
		r.Members = append(r.Members, d)
	}
	return r
}

// The types of groups, as ListGroups tells them.
const (
	classic      = "classic"
	nextConsumer = "consumer"
)

// List serves ListGroups: all groups in one of the states and of one of the
// types, written in any case; empty lists let everything through.
func (m *Groups) List(states, types []string) []kmsg.ListGroupsResponseGroup {
	var out []kmsg.ListGroupsResponseGroup
	for _, g := range m.groups {
		l := kmsg.NewListGroupsResponseGroup()
		l.Group, l.ProtocolType, l.GroupState, l.GroupType = g.id, g.protocolType, g.state.String(), classic
		if g.modern != nil {
			l.ProtocolType, l.GroupState, l.GroupType = consumers, g.modern.stateName(), nextConsumer
		}
		if len(states) > 0 && !containsFold(states, l.GroupState) || len(types) > 0 && !containsFold(types, l.GroupType) {
			continue
		}
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b kmsg.ListGroupsResponseGroup) int { return cmp.Compare(a.Group, b.Group) })
	return out
}

func containsFold(list []string, s string) bool {
	return slices.ContainsFunc(list, func(l string) bool { return strings.EqualFold(l, s) })
}
