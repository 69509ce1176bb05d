package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// logWriter writes the numbers 0, 1, 2 … to one partition; each is acknowledged before its run ends.
type logWriter struct {
	next    int   // number
	acked   int64 // offset after the last acknowledged record
	deleted int64 // records below are deleted, acknowledged
	asked   int64 // ... at most to here
}

// keyedWriter writes the newest state of keys to one partition; "" is a null value.
type keyedWriter struct {
	serial int
	state  map[string]string
}

type committed struct{ acked, asked int64 }

type churned struct {
	serial  int
	live    map[string]bool // created and not deleted, acknowledged
	unknown map[string]bool
}

func (k *kills) writeLog(r *rand.Rand, cl *kgo.Client, p int32) {
	w := &k.log[p]
	var list []*kgo.Record
	for range 1 + r.IntN(20) {
		value := fmt.Sprintf("%d %s", w.next, strings.Repeat("x", r.IntN(300)))
		list = append(list, &kgo.Record{Topic: logTopic, Partition: p, Value: []byte(value)})
		w.next++
	}
	results := cl.ProduceSync(k.ctx, list...)
	if w.acked == 0 {
		defer k.writing.Add(1) // this producer has its id now
	}
	for _, res := range results {
		if res.Err != nil {
			failf("an idempotent producer of %s-%d was refused: %v", logTopic, p, res.Err)
		}
		k.mu.Lock()
		w.acked = max(w.acked, res.Record.Offset+1)
		k.mu.Unlock()
	}
}

func (k *kills) writeKeyed(r *rand.Rand, cl *kgo.Client, p int32) {
	w := &k.keyed[p]
	first := w.state == nil
	if first {
		w.state = map[string]string{}
	}
	var list []*kgo.Record
	for range 1 + r.IntN(20) {
		w.serial++
		rec := &kgo.Record{Topic: keyedTopic, Partition: p, Key: fmt.Appendf(nil, "k%d", r.IntN(40)), Value: fmt.Appendf(nil, "%d %s", w.serial, strings.Repeat("y", r.IntN(100)))}
		if oneIn(r, 8) {
			rec.Value = nil
		}
		w.state[string(rec.Key)] = string(rec.Value)
		list = append(list, rec)
	}
	if err := cl.ProduceSync(k.ctx, list...).FirstErr(); err != nil {
		failf("an idempotent producer of %s-%d was refused: %v", keyedTopic, p, err)
	}
	if first {
		k.writing.Add(1)
	}
}

// administer deletes records, changes settings and moves partitions.
func (k *kills) administer(r *rand.Rand, cl *kgo.Client) {
	admin := kadm.NewClient(cl)
	time.Sleep(time.Duration(r.IntN(60)) * time.Millisecond)
	switch r.IntN(3) {
	case 0:
		p := int32(r.IntN(logPartitions))
		w := &k.log[p]
		k.mu.Lock()
		w.asked = max(w.asked, w.acked-int64(r.IntN(400)))
		o := w.asked
		k.mu.Unlock()
		var to kadm.Offsets
		to.Add(kadm.Offset{Topic: logTopic, Partition: p, At: o})
		res, err := admin.DeleteRecords(k.ctx, to)
		if err == nil {
			err = res.Error()
		}
		if !k.fine("delete records", err) {
			return
		}
		k.mu.Lock()
		w.deleted = max(w.deleted, o)
		k.mu.Unlock()
	case 1:
		topic, values := logTopic, [][2]string{{"segment.bytes", one(r, "4000", "20000", "1048576")}, {"millrace.durability", one(r, "sync", "page-cache")}, {"flush.messages", one(r, "1", "9223372036854775807")}}
		if oneIn(r, 2) {
			topic, values = keyedTopic, append(values, [2]string{"delete.retention.ms", one(r, "0", "86400000")})
		}
		v := values[r.IntN(len(values))]
		_, err := admin.AlterTopicConfigs(k.ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: v[0], Value: &v[1]}}, topic)
		k.fine("alter configs", err)
	case 2:
		var req kadm.AlterReplicaLogDirsReq
		req.Add(one(r, k.dirs...), kadm.TopicsSet{logTopic: {int32(r.IntN(logPartitions)): {}}, keyedTopic: {int32(r.IntN(keyedPartitions)): {}}})
		_, err := admin.AlterAllReplicaLogDirs(k.ctx, req)
		k.fine("move", err)
	}
}

// fine is false for an error of the connection or the time, after which nobody knows; any other is a finding.
func (k *kills) fine(what string, err error) bool {
	var known *kerr.Error
	if errors.As(err, &known) && !known.Retriable {
		failf("%s: %v", what, err)
	}
	return err == nil
}

// commit commits 1, 2, 3 … for a group and sees that no acknowledged commit is lost.
func (k *kills) commit(r *rand.Rand, cl *kgo.Client) {
	admin := kadm.NewClient(cl)
	g := &k.group
	res, err := admin.FetchOffsets(k.ctx, killGroup)
	if k.fine("fetch offsets", err) && g.acked > 0 {
		if got, ok := res.Lookup(logTopic, 0); !ok || got.Err == nil && (got.At < g.acked || got.At > g.asked) {
			failf("the group has committed %d (%v), want [%d, %d]", got.At, ok, g.acked, g.asked)
		}
	}
	for range 1 + r.IntN(30) {
		g.asked++
		var o kadm.Offsets
		o.Add(kadm.Offset{Topic: logTopic, Partition: 0, At: g.asked})
		res, err := admin.CommitOffsets(k.ctx, killGroup, o)
		if err == nil {
			err = res.Error()
		}
		if !k.fine("commit", err) {
			return
		}
		g.acked = g.asked
		if k.stop.Load() {
			return
		}
	}
}

// makeAndDelete makes topics with a record each, and deletes some.
func (k *kills) makeAndDelete(r *rand.Rand, cl *kgo.Client) {
	admin := kadm.NewClient(cl)
	x := &k.churn
	if x.live == nil {
		x.live, x.unknown = map[string]bool{}, map[string]bool{}
	}
	time.Sleep(time.Duration(r.IntN(50)) * time.Millisecond)
	for topic := range x.live {
		if len(x.live) < 5 {
			break
		}
		delete(x.live, topic)
		res, err := admin.DeleteTopics(k.ctx, topic)
		if err == nil {
			err = res.Error()
		}
		if err != nil {
			x.unknown[topic] = true
		}
		return
	}
	x.serial++
	topic := fmt.Sprintf("c%d", x.serial)
	if _, err := admin.CreateTopic(k.ctx, 2, 1, nil, topic); err != nil {
		x.unknown[topic] = true
		return
	}
	if err := cl.ProduceSync(k.ctx, &kgo.Record{Topic: topic, Value: []byte(topic)}).FirstErr(); err != nil {
		k.fine("produce to "+topic, err)
		x.unknown[topic] = true
		return
	}
	x.live[topic] = true
}

// follow reads the log topic for a while from its start, as it grows and through kills. A partition has one writer and no record twice, so
// the number of a record is its offset; and none is passed over but those that were deleted in front of the reader.
func (k *kills) follow(r *rand.Rand, _ *kgo.Client) {
	cl := k.client(kgo.ConsumeTopics(logTopic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(100*time.Millisecond))
	defer cl.Close()
	var next [logPartitions]int64
	for ends := time.Now().Add(time.Duration(1+r.IntN(3)) * time.Second); time.Now().Before(ends) && !k.stop.Load(); {
		ctx, cancel := context.WithTimeout(k.ctx, 200*time.Millisecond)
		cl.PollFetches(ctx).EachRecord(func(rec *kgo.Record) {
			if n, at := numberOf(rec.Value), next[rec.Partition]; n != rec.Offset || n < at || n > at && at > 0 && n > k.deletedBelow(rec.Partition) {
				failf("a reader of %s-%d found %d at %d after %d", logTopic, rec.Partition, n, rec.Offset, at-1)
			}
			next[rec.Partition] = rec.Offset + 1
		})
		cancel()
	}
}

// deletedBelow is where the records of a partition of the log topic may begin, at most.
func (k *kills) deletedBelow(p int32) int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.log[p].asked
}
