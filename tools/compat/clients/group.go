package clients

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"millrace/tools/compat/harness"
)

const (
	partitions = 6
	perRound   = 30 // records for each partition
)

// reading is a group's life: numbered records are written in rounds, and members read them.
type reading struct {
	e        *harness.Env
	c        client
	m        *harness.Millrace
	protocol string
	rounds   int
}

// group: two members share six partitions; one is killed while records come and the other takes over; nothing is lost; what is
// committed is where a restarted member goes on, and where it goes on after the broker's kill -9.
func group(e *harness.Env, c client, protocol string) error {
	m, err := harness.StartMillrace(e, "group.initial.rebalance.delay.ms=500", "group.consumer.session.timeout.ms=6000", "group.consumer.heartbeat.interval.ms=500")
	if err != nil {
		return err
	}
	defer func() { m.Kill() }()
	m.KeepAddress()
	if err := harness.CreateTopic(m.Addr, "numbers", partitions); err != nil {
		return err
	}
	r := &reading{e: e, c: c, m: m, protocol: protocol}
	a, err := r.takeover()
	if err != nil {
		return err
	}
	// The survivor leaves; its successor must begin where it ended.
	if err := a.stop(); err != nil {
		return err
	}
	if err := r.write(); err != nil {
		return err
	}
	b, err := r.member()
	if err != nil {
		return err
	}
	if err := r.resumes(b, "after the member's restart"); err != nil {
		return err
	}
	m.Kill()
	if err := m.Start(); err != nil {
		return fmt.Errorf("the broker's restart after kill -9: %w", err)
	}
	if err := r.committed(); err != nil {
		return fmt.Errorf("after the broker's kill -9: %w", err)
	}
	if err := r.write(); err != nil {
		return err
	}
	if err := r.resumes(b, "after the broker's kill -9"); err != nil {
		return err
	}
	if err := b.stop(); err != nil {
		return err
	}
	e.Note("%d records in %d rounds", r.rounds*perRound*partitions, r.rounds)
	return m.Stop()
}

// takeover is the life of two members up to when one has everything; it returns that one.
func (r *reading) takeover() (*process, error) {
	a, err := r.member()
	if err != nil {
		return nil, err
	}
	b, err := r.member()
	if err != nil {
		return nil, err
	}
	if err := r.shares(3, 3); err != nil {
		return nil, fmt.Errorf("%w; the members last said: %s; %s", err, a.complaint(), b.complaint())
	}
	if err := r.write(); err != nil {
		return nil, err
	}
	if err := r.all(a, b); err != nil {
		return nil, err
	}
	if err := r.committed(); err != nil {
		return nil, err
	}
	if len(a.got()) == 0 || len(b.got()) == 0 {
		return nil, fmt.Errorf("the members read %d and %d records", len(a.got()), len(b.got()))
	}
	before := len(b.got())
	if err := r.write(); err != nil {
		return nil, err
	}
	if err := harness.Within(30*time.Second, func() error {
		if len(b.got()) == before {
			return fmt.Errorf("the second member reads no further; it last said: %s", b.complaint())
		}
		return nil
	}); err != nil {
		return nil, err
	}
	b.kill()
	if err := r.shares(6); err != nil {
		return nil, fmt.Errorf("after the other's kill -9: %w; the member last said: %s", err, a.complaint())
	}
	if err := r.all(a, b); err != nil {
		return nil, err
	}
	return a, r.committed()
}

func (r *reading) member() (*process, error) {
	return r.c.start(r.e, "member", r.m.Addr, args{Topic: "numbers", Group: "readers", Protocol: r.protocol})
}

// write adds a round of records to each partition; a record's value is "partition offset".
func (r *reading) write() error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(r.m.Addr), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var all []*kgo.Record
	for i := range partitions * perRound {
		p, offset := i%partitions, r.rounds*perRound+i/partitions
		all = append(all, &kgo.Record{Topic: "numbers", Partition: int32(p), Value: fmt.Appendf(nil, "%d %d", p, offset)})
	}
	r.rounds++
	return cl.ProduceSync(ctx, all...).FirstErr()
}

// seen collects what the members read; a value must be what was written at its place.
func seen(members ...*process) (map[string]int, error) {
	out := map[string]int{}
	for _, m := range members {
		for _, l := range m.got() {
			at := fmt.Sprintf("%d %d", l.Part, l.Offset)
			if want := show([]byte(at)); l.Value == nil || *l.Value != *want {
				return nil, fmt.Errorf("partition %d offset %d: got value %s, want %s", l.Part, l.Offset, text(l.Value), text(want))
			}
			out[at]++
		}
	}
	return out, nil
}

// all waits until the members together have read every record written so far.
func (r *reading) all(members ...*process) error {
	return harness.Within(40*time.Second, func() error {
		got, err := seen(members...)
		if err != nil {
			return err
		}
		for i := range partitions * perRound * r.rounds {
			at := strconv.Itoa(i%partitions) + " " + strconv.Itoa(i/partitions)
			if got[at] == 0 {
				return fmt.Errorf("%d of %d records are read; missing: partition and offset %s; the first member last said: %s", len(got), partitions*perRound*r.rounds, at, members[0].complaint())
			}
		}
		return nil
	})
}

// resumes waits until the member, which began at the third round, has read the last one, and demands that it read nothing from
// before that and nothing twice that was committed before the last round. (Of the last round it may: a client that had to join
// anew reads again what it could not commit.)
func (r *reading) resumes(m *process, when string) error {
	first := (r.rounds - 1) * perRound
	if err := harness.Within(40*time.Second, func() error {
		n := 0
		for _, l := range m.got() {
			if l.Offset >= int64(first) {
				n++
			}
		}
		if n < partitions*perRound {
			return fmt.Errorf("%s: %d of %d records are read; the member last said: %s", when, n, partitions*perRound, m.complaint())
		}
		return nil
	}); err != nil {
		return err
	}
	got, err := seen(m)
	if err != nil {
		return err
	}
	for at, n := range got {
		var p, offset int
		if _, err := fmt.Sscan(at, &p, &offset); err != nil {
			return err
		}
		if n > 1 && offset < first || offset < 2*perRound {
			return fmt.Errorf("%s: partition %d offset %d was read %d times though it was committed", when, p, offset, n)
		}
	}
	return r.committed()
}

// committed waits until the group's offsets are the partitions' ends.
func (r *reading) committed() error {
	return harness.Within(20*time.Second, func() error {
		return admin(r.m.Addr, func(ctx context.Context, a *kadm.Client) error {
			offsets, err := a.FetchOffsets(ctx, "readers")
			if err != nil {
				return err
			}
			for p := range int32(partitions) {
				o, ok := offsets.Lookup("numbers", p)
				if want := int64(r.rounds * perRound); !ok || o.Err != nil || o.At != want {
					return fmt.Errorf("partition %d: offset %d is committed (%v), want %d", p, o.At, o.Err, want)
				}
			}
			return nil
		})
	})
}

// shares waits until the group's members have so many partitions each, as the broker tells.
func (r *reading) shares(want ...int) error {
	return harness.Within(60*time.Second, func() error {
		return admin(r.m.Addr, func(ctx context.Context, a *kadm.Client) error {
			var sets []kadm.TopicsSet
			var state string
			if r.protocol == "consumer" {
				all, err := a.DescribeConsumerGroups(ctx, "readers")
				if err != nil {
					return err
				}
				g := all["readers"]
				state = g.State
				for _, m := range g.Members {
					sets = append(sets, m.Assignment)
				}
			} else {
				all, err := a.DescribeGroups(ctx, "readers")
				if err != nil {
					return err
				}
				g := all["readers"]
				state = g.State
				for _, m := range g.Members {
					one := kadm.DescribedGroup{Members: []kadm.DescribedGroupMember{m}}
					sets = append(sets, one.AssignedPartitions())
				}
			}
			var got []int
			for _, s := range sets {
				got = append(got, len(s["numbers"]))
			}
			slices.Sort(got)
			if !slices.Equal(got, want) || state != "Stable" {
				return fmt.Errorf("the group is %q and its members have %v partitions, want %v", state, got, want)
			}
			return nil
		})
	})
}
