package broker

import (
	"cmp"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/engine"
	"millrace/engine/batch"
	"millrace/replica"
)

const (
	// maxLagSeries bounds the groups' partitions told one by one: three series
	// for each.
	maxLagSeries = 20_000
	// lagTimePatience bounds how long one scrape looks for timestamps. Most
	// are known from the scrape before: they are looked up when a commit moves.
	lagTimePatience = time.Second
)

// groups sends the states of groups and how far they are behind (A05). While
// the groups are being loaded there is nothing to tell.
func (c *collector) groups(s series) {
	listed := c.b.groups.List(kmsg.NewPtrListGroupsRequest()).(*kmsg.ListGroupsResponse)
	if listed.ErrorCode != 0 {
		return
	}
	states := map[string]int64{}
	request := kmsg.NewPtrOffsetFetchRequest()
	request.Version = allOffsetsVersion
	shown := map[string]bool{}
	for i := range listed.Groups {
		g := &listed.Groups[i]
		states[g.GroupState]++
		name := labelText(g.Group)
		if shown[name] {
			continue // two names that differ in bytes that are no text
		}
		shown[name] = true
		s.value(metricGroupState, 1, name, cmp.Or(g.GroupType, "classic"), g.GroupState)
		asked := kmsg.NewOffsetFetchRequestGroup() // no topics: all of them
		asked.Group = g.Group
		request.Groups = append(request.Groups, asked)
	}
	s.count(metricGroups, int64(len(listed.Groups)))
	s.count(metricGroupsEmpty, states["Empty"])
	s.count(metricGroupsJoining, states["PreparingRebalance"])
	s.count(metricGroupsSyncing, states["CompletingRebalance"])
	s.count(metricGroupsStable, states["Stable"])

	c.lag.begin()
	left, leftOut := c.lagSeries, 0
	for _, g := range c.b.groups.Fetch(request).(*kmsg.OffsetFetchResponse).Groups {
		for i := range g.Topics {
			leftOut += c.lagOf(s, labelText(g.Group), &g.Topics[i], &left)
		}
	}
	c.lag.end()
	s.count(metricLagLeftOut, int64(leftOut))
}

// allOffsetsVersion of OffsetFetch takes many groups, and names topics.
const allOffsetsVersion = 8

// lagOf sends one group's lag in one topic, and returns how many partitions it
// did not tell in full.
func (c *collector) lagOf(s series, group string, t *kmsg.OffsetFetchResponseGroupTopic, left *int) (leftOut int) {
	topic := c.b.replicas.Topic(t.Topic)
	if topic == nil {
		return 0
	}
	sum, any := int64(0), false
	for i := range t.Partitions {
		p := topic.Partition(t.Partitions[i].Partition)
		committed := t.Partitions[i].Offset
		if p == nil || p.Log() == nil || committed < 0 || t.Partitions[i].ErrorCode != 0 {
			continue
		}
		// What a client is told for the end of the partition. A commit beyond
		// it, of a topic that was made anew, is not behind.
		lag := max(int64(p.HighWatermark())-committed, 0)
		sum, any = sum+lag, true
		if *left--; *left < 0 {
			leftOut++
			continue
		}
		partition := strconv.Itoa(int(p.Index))
		s.count(metricGroupCommitted, committed, group, topic.Name, partition)
		s.count(metricLag, lag, group, topic.Name, partition)
		behind, known := time.Duration(0), true
		if lag > 0 {
			behind, known = c.lag.of(p, committed, c.b.now())
		}
		if !known {
			leftOut++
			continue
		}
		s.value(metricLagTime, behind.Seconds(), group, topic.Name, partition)
	}
	if any {
		s.count(metricLagSum, sum, group, topic.Name)
	}
	return leftOut
}

// lagTimes finds the times of records at committed offsets. What one scrape has
// found the next one knows, so that a group that stands still costs no reads.
type lagTimes struct {
	known, next map[lagTime]int64 // ms
	until       time.Time
	head        [batch.HeaderSize]byte
}

type lagTime struct {
	log    *engine.Log
	offset int64
}

func (l *lagTimes) begin() {
	l.next = make(map[lagTime]int64, len(l.known))
	l.until = time.Now().Add(lagTimePatience)
}

func (l *lagTimes) end() { l.known, l.next = l.next, nil }

// of is how old the record at an offset is, or the next one after it.
func (l *lagTimes) of(p *replica.Partition, offset int64, now time.Time) (time.Duration, bool) {
	at := lagTime{p.Log(), offset}
	ms, ok := l.next[at] // another group's
	if !ok {
		ms, ok = l.known[at]
	}
	if !ok {
		if time.Now().After(l.until) {
			return 0, false
		}
		if ms, ok = l.read(p, offset); !ok {
			return 0, false
		}
	}
	l.next[at] = ms
	if ms < 0 { // a record without time
		return 0, false
	}
	return max(now.Sub(time.UnixMilli(ms)), 0), true
}

// read looks at the header of the batch that holds the offset. Its records may
// be a little younger than its first one.
func (l *lagTimes) read(p *replica.Partition, offset int64) (ms int64, ok bool) {
	log := p.Log()
	from := max(engine.Offset(offset), log.Start()) // retention may have been faster
	slice, err := log.Read(from, 1, p.HighWatermark(), true)
	if err != nil || slice.Size() == 0 {
		return 0, false
	}
	defer slice.Release()
	if slice.Size() < len(l.head) || slice.ReadStart(l.head[:]) != nil {
		return 0, false
	}
	head := batch.View(l.head[:])
	switch {
	case head.Magic() < 2:
		return -1, true // a message set of before 0.11: we have no cheap way
	case head.AppendTime():
		return head.MaxTimestamp(), true
	}
	return head.BaseTimestamp(), true
}
