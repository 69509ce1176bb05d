package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/tools/internal/client"
)

// groupView is a consumer group as the commands show it, whichever protocol it has.
type groupView struct {
	name        string
	kind        string // classic or consumer
	state       string
	coordinator kadm.BrokerDetail
	assignor    string
	epoch       *int32 // of the group and of its target assignment; nil in classic groups
	targetEpoch *int32
	members     []groupMember
}

// groupMember is one member of a group.
type groupMember struct {
	id, instance, client, host string
	epoch                      *int32
	upgraded                   *bool // speaks the newer protocol; nil where the broker does not tell
	assigned, target           []topicPartition
}

// groupRow is the state of one partition in a group: committed, assigned, or both.
type groupRow struct {
	topicPartition
	committed *int64 // nil: no commit
	epoch     *int32 // leader epoch of the commit, if it has one
	end       *int64 // nil: not known
	member    *groupMember
}

// lag is how many records are left to read; nil where that cannot be said. It is never
// below 0: a commit beyond the end, as after a topic was made anew, leaves nothing to
// read, and beyondEnd tells of it (F115).
func (r groupRow) lag() *int64 {
	if r.committed == nil || r.end == nil || *r.committed < 0 {
		return nil
	}
	n := max(0, *r.end-*r.committed)
	return &n
}

func (r groupRow) beyondEnd() bool {
	return r.committed != nil && r.end != nil && *r.committed > *r.end
}

// describeGroups asks for groups of both protocols, as Kafka's own client does: first by
// the newer request, then by the older one for those that it does not know. A group
// that does not exist has the state Dead.
func describeGroups(ctx context.Context, cl *client.Admin, names []string) (map[string]groupView, error) {
	if len(names) == 0 {
		return map[string]groupView{}, nil
	}
	has, err := client.AskAPIs(ctx, cl)
	if err != nil {
		return nil, err
	}
	if err := has.Need(kmsg.FindCoordinator, kmsg.DescribeGroups); err != nil {
		return nil, err
	}
	out := map[string]groupView{}
	classic := names
	if has[kmsg.ConsumerGroupDescribe.Int16()] {
		if classic, err = describeNewer(ctx, cl, names, out); err != nil {
			return nil, err
		}
	}
	if len(classic) == 0 {
		return out, nil
	}
	groups, err := cl.DescribeGroups(ctx, classic...)
	if err != nil {
		return nil, err
	}
	for _, g := range groups {
		switch {
		case errors.Is(g.Err, kerr.GroupIDNotFound):
			out[g.Group] = groupView{name: g.Group, kind: "classic", state: "Dead", coordinator: g.Coordinator}
		case g.Err != nil:
			return nil, g.Err
		default:
			out[g.Group] = classicView(g)
		}
	}
	return out, nil
}

// describeNewer fills in the groups of the newer protocol and gives back the others.
func describeNewer(ctx context.Context, cl *client.Admin, names []string, out map[string]groupView) (others []string, err error) {
	groups, err := cl.DescribeConsumerGroups(ctx, names...)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		g, ok := groups[name]
		switch {
		case !ok || errors.Is(g.Err, kerr.GroupIDNotFound) || errors.Is(g.Err, kerr.UnsupportedVersion):
			others = append(others, name)
		case g.Err != nil:
			return nil, g.Err
		default:
			out[name] = newerView(g)
		}
	}
	return others, nil
}

func classicView(g kadm.DescribedGroup) groupView {
	v := groupView{name: g.Group, kind: "classic", state: g.State, coordinator: g.Coordinator, assignor: g.Protocol}
	for _, m := range g.Members {
		member := groupMember{id: m.MemberID, client: m.ClientID, host: m.ClientHost}
		if m.InstanceID != nil {
			member.instance = *m.InstanceID
		}
		if a, ok := m.Assigned.AsConsumer(); ok {
			for _, t := range a.Topics {
				for _, p := range t.Partitions {
					member.assigned = append(member.assigned, topicPartition{t.Topic, p})
				}
			}
		}
		slices.SortFunc(member.assigned, compareTopicPartition)
		v.members = append(v.members, member)
	}
	return v
}

func newerView(g kadm.DescribedConsumerGroup) groupView {
	v := groupView{name: g.Group, kind: "consumer", state: g.State, coordinator: g.Coordinator, assignor: g.AssignorName, epoch: &g.Epoch, targetEpoch: &g.AssignmentEpoch}
	for _, m := range g.Members {
		member := groupMember{
			id: m.MemberID, client: m.ClientID, host: m.ClientHost, epoch: &m.MemberEpoch,
			assigned: setList(m.Assignment), target: setList(m.TargetAssignment),
		}
		if m.InstanceID != nil {
			member.instance = *m.InstanceID
		}
		if m.MemberType >= 0 {
			upgraded := m.MemberType == 1
			member.upgraded = &upgraded
		}
		v.members = append(v.members, member)
	}
	// In the broker's order, which is Kafka's script's; the client library has another.
	slices.SortFunc(v.members, func(a, b groupMember) int { return cmp.Compare(a.id, b.id) })
	return v
}

func setList(s kadm.TopicsSet) (out []topicPartition) {
	s.Each(func(t string, p int32) { out = append(out, topicPartition{t, p}) })
	slices.SortFunc(out, compareTopicPartition)
	return out
}

// committedOffsets are all commits of a group. A group that does not exist has none.
func committedOffsets(ctx context.Context, cl *client.Admin, group string) (map[topicPartition]kadm.Offset, error) {
	out := map[topicPartition]kadm.Offset{}
	answers, err := cl.FetchOffsets(ctx, group)
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return nil, err
	}
	for _, o := range answers.Sorted() {
		if o.Err != nil {
			return nil, o.Err
		}
		if o.At >= 0 {
			out[topicPartition{o.Topic, o.Partition}] = o.Offset
		}
	}
	return out, nil
}

// groupRows puts commits, assignments and ends together: the members' partitions first,
// the member with most of them first of all, then what is committed only. The commits
// are asked for before the ends, so no commit can be newer than its end (F115).
func groupRows(ctx context.Context, cl *client.Admin, g groupView) ([]groupRow, error) {
	commits, err := committedOffsets(ctx, cl, g.name)
	if err != nil {
		return nil, err
	}
	where := sortedPartitions(commits)
	for _, m := range g.members {
		where = append(where, m.assigned...)
	}
	slices.SortFunc(where, compareTopicPartition)
	ends, err := listOffsets(ctx, cl, slices.Compact(where), atLatest)
	if err != nil {
		return nil, err
	}
	return joinRows(g, commits, ends), nil
}

func joinRows(g groupView, commits map[topicPartition]kadm.Offset, ends map[topicPartition]listedAt) (rows []groupRow) {
	row := func(tp topicPartition, member *groupMember) {
		r := groupRow{topicPartition: tp, member: member}
		if c, ok := commits[tp]; ok {
			r.committed = &c.At
			if c.LeaderEpoch >= 0 {
				r.epoch = &c.LeaderEpoch
			}
		}
		if end, ok := ends[tp]; ok && end.err == nil {
			r.end = &end.offset
		}
		rows = append(rows, r)
	}
	members := slices.Clone(g.members)
	slices.SortStableFunc(members, func(a, b groupMember) int { return cmp.Compare(len(b.assigned), len(a.assigned)) })
	taken := map[topicPartition]bool{}
	for i := range members {
		for _, tp := range members[i].assigned {
			taken[tp] = true
			row(tp, &members[i])
		}
	}
	for _, tp := range sortedPartitions(commits) {
		if !taken[tp] {
			row(tp, nil)
		}
	}
	return rows
}

// assignmentText is Kafka's short form of an assignment: a:0,1;b:2.
func assignmentText(list []topicPartition) string {
	if len(list) == 0 {
		return "-"
	}
	var b strings.Builder
	for i, tp := range list {
		switch {
		case i > 0 && list[i-1].Topic == tp.Topic:
			b.WriteByte(',')
		case i > 0:
			b.WriteByte(';')
			fallthrough
		default:
			b.WriteString(tp.Topic + ":")
		}
		b.WriteString(strconv.Itoa(int(tp.Partition)))
	}
	return b.String()
}

// consumerGroups lists the groups that consume: those of Connect and the like are not.
func consumerGroups(ctx context.Context, cl *client.Admin, types, states []string) ([]kadm.ListedGroup, error) {
	if err := client.NeedAPIs(ctx, cl, kmsg.ListGroups); err != nil {
		return nil, err
	}
	listed, err := cl.ListGroupsByType(ctx, types, states...)
	if err != nil {
		return nil, err
	}
	var out []kadm.ListedGroup
	for _, g := range listed.Sorted() {
		if g.ProtocolType == "" || g.ProtocolType == "consumer" {
			out = append(out, g)
		}
	}
	return out, nil
}
