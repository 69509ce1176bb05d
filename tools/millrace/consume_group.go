package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/tools/internal/cli"
	"millrace/tools/internal/client"
)

// groupDrain reads as a member of a group. What is to be read to the end is not known
// beforehand, since partitions come and go; the ends are, and are fixed at the start.
type groupDrain struct {
	client  *kgo.Client
	topic   string
	group   string
	write   appendRecord
	want    func(*kgo.Record) bool
	spans   map[int32]span // where a partition without a commit begins, and where all end
	toEnd   bool
	most    int64 // records; 0 no limit
	timeout time.Duration

	written int64

	mu       sync.Mutex
	mine     map[int32]int64 // the partitions assigned, with the next offset to read
	assigned time.Time       // when mine last changed; zero before the first assignment
	failed   error           // of a look-up of committed offsets
}

// emptyGrace is how long a member without partitions waits for some before it takes it
// that the others have them all. A cooperative group hands out nothing at first.
const emptyGrace = 3 * time.Second

// shareBalancers are those of Kafka's own consumers, so that all kinds of clients can
// be in one group.
func shareBalancers() kgo.Opt {
	return kgo.Balancers(kgo.RangeBalancer(), kgo.CooperativeStickyBalancer())
}

func (o *consumeOptions) runGroup(cmd *cobra.Command, s *client.Settings, topic string, start startAt, d *groupDrain) error {
	spans, err := o.spans(cmd.Context(), s, topic, start)
	if err != nil {
		return err
	}
	if err := needGroupMembership(cmd.Context(), s); err != nil {
		return err
	}
	d.spans, d.mine = spans, map[int32]int64{}
	s.GroupID = o.group
	begin := start.offset()
	cl, err := kgo.NewClient(append(s.Consumer(),
		kgo.ConsumeTopics(topic), shareBalancers(),
		kgo.ConsumeStartOffset(begin), kgo.ConsumeResetOffset(begin),
		kgo.KeepControlRecords(), kgo.AutoCommitMarks(),
		kgo.OnPartitionsAssigned(d.gained),
		kgo.OnPartitionsRevoked(d.lost), kgo.OnPartitionsLost(d.lost),
	)...)
	if err != nil {
		return cli.Usagef("%w", err)
	}
	defer cl.Close() // leaves the group
	d.client = cl
	return d.run(cmd.Context(), cmd.OutOrStdout())
}

// needGroupMembership makes sure that the broker has groups, before a client joins one
// and fails in many words.
func needGroupMembership(ctx context.Context, s *client.Settings) error {
	cl, err := s.Connect(ctx, s.Common())
	if err != nil {
		return err
	}
	defer cl.Close()
	return client.NeedAPIs(ctx, client.NewAdmin(cl), kmsg.FindCoordinator, kmsg.JoinGroup, kmsg.OffsetCommit)
}

// offset is where a partition without a commit begins.
func (a startAt) offset() kgo.Offset {
	switch a.kind {
	case 'e':
		return kgo.NewOffset().AtStart()
	case 'o':
		return kgo.NewOffset().At(a.n)
	case 'n':
		return kgo.NewOffset().AtEnd().Relative(-a.n)
	case 't':
		return kgo.NewOffset().AfterMilli(a.n)
	}
	return kgo.NewOffset().AtEnd()
}

// gained notes where reading of new partitions begins: at the commit, or where a
// partition without one does.
func (d *groupDrain) gained(ctx context.Context, cl *kgo.Client, added map[string][]int32) {
	commits, err := kadm.NewClient(cl).FetchOffsetsForTopics(ctx, d.group, d.topic)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.assigned = time.Now()
	if err != nil {
		d.failed = fmt.Errorf("committed offsets of group %q: %w", d.group, err)
		return
	}
	for _, p := range added[d.topic] {
		d.mine[p] = d.spans[p].from
		if o, ok := commits.Lookup(d.topic, p); ok && o.Err == nil && o.At >= 0 {
			d.mine[p] = o.At
		}
	}
}

func (d *groupDrain) lost(ctx context.Context, cl *kgo.Client, gone map[string][]int32) {
	_ = cl.CommitMarkedOffsets(ctx) // a partition that was lost may be another's already
	d.mu.Lock()
	defer d.mu.Unlock()
	d.assigned = time.Now()
	for _, p := range gone[d.topic] {
		delete(d.mine, p)
	}
}

// finished says whether nothing is left to do, and why reading cannot go on.
func (d *groupDrain) finished() (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.failed != nil:
		return true, d.failed
	case d.most > 0 && d.written >= d.most:
		return true, nil
	case !d.toEnd || d.assigned.IsZero():
		return false, nil
	case len(d.mine) == 0:
		return time.Since(d.assigned) > emptyGrace, nil
	}
	for p, next := range d.mine {
		if next < d.spans[p].end {
			return false, nil
		}
	}
	return true, nil
}

func (d *groupDrain) run(ctx context.Context, out io.Writer) error {
	w := bufio.NewWriterSize(out, outBuffer)
	err := d.copy(ctx, w)
	if flushErr := w.Flush(); err == nil {
		err = flushErr
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), graceLimit)
	defer cancel()
	return errors.Join(err, d.client.CommitMarkedOffsets(limited))
}

func (d *groupDrain) copy(ctx context.Context, w *bufio.Writer) error {
	last := time.Now()
	for {
		if done, err := d.finished(); done {
			return err
		}
		polling, cancel := context.WithTimeout(ctx, lookAround)
		fetches := d.client.PollFetches(polling)
		cancel()
		if ctx.Err() != nil {
			if d.toEnd || d.most > 0 {
				return fmt.Errorf("interrupted after %d records", d.written)
			}
			return nil
		}
		for _, e := range fetches.Errors() {
			if !errors.Is(e.Err, context.DeadlineExceeded) {
				return fmt.Errorf("partition %d: %w", e.Partition, e.Err)
			}
		}
		if !fetches.Empty() {
			last = time.Now()
		}
		if err := d.take(w, fetches); err != nil {
			return err
		}
		if d.timeout > 0 && time.Since(last) > d.timeout {
			return cli.Unreachablef("no record came for %v; %d were read", d.timeout, d.written)
		}
	}
}

// take writes records, and marks them for commit once they are out of this process.
func (d *groupDrain) take(w *bufio.Writer, fetches kgo.Fetches) error {
	var line []byte
	var done []*kgo.Record
	for records := fetches.RecordIter(); !records.Done() && (d.most == 0 || d.written < d.most); {
		r := records.Next()
		if d.toEnd && r.Offset >= d.spans[r.Partition].end {
			continue // came after reading began; the next run's
		}
		done = append(done, r)
		if r.Attrs.IsControl() || !d.want(r) {
			continue
		}
		line = d.write(line[:0], r)
		if _, err := w.Write(line); err != nil {
			return err
		}
		d.written++
	}
	if err := w.Flush(); err != nil {
		return err
	}
	d.client.MarkCommitRecords(done...)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range done {
		if _, ok := d.mine[r.Partition]; ok {
			d.mine[r.Partition] = r.Offset + 1
		}
	}
	return nil
}
