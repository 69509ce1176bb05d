package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// numberOf is the number that a value of the log topic begins with.
func numberOf(value []byte) int64 {
	s, _, _ := strings.Cut(string(value), " ")
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		failf("the value %q was never written", value)
	}
	return n
}

// check reads everything once no client writes any more.
func (k *kills) check() {
	cl := k.client()
	defer cl.Close()
	admin := kadm.NewClient(cl)
	topics, err := admin.ListTopics(k.ctx)
	if err != nil {
		failf("list topics: %v", err)
	}
	for topic := range topics {
		if strings.HasPrefix(topic, "c") && !k.churn.live[topic] && !k.churn.unknown[topic] {
			failf("the deleted topic %s is back", topic)
		}
	}
	for topic := range k.churn.live {
		all := k.readTopic(admin, topic)
		if len(all[0]) != 1 || string(all[0][0].Value) != topic {
			failf("topic %s, created and written, holds %d records", topic, len(all[0]))
		}
	}
	all := k.readTopic(admin, logTopic)
	starts, err := admin.ListStartOffsets(k.ctx, logTopic)
	if err != nil {
		failf("list starts: %v", err)
	}
	for p := range k.log {
		w := &k.log[p]
		start, _ := starts.Lookup(logTopic, int32(p))
		if start.Offset < w.deleted || start.Offset > w.asked {
			failf("%s-%d starts at %d, want [%d, %d]", logTopic, p, start.Offset, w.deleted, w.asked)
		}
		list := all[int32(p)]
		for i, rec := range list {
			// One producer, one number a record, none twice and none lost: number and offset are the same.
			if n := numberOf(rec.Value); n != rec.Offset || rec.Offset != start.Offset+int64(i) {
				failf("%s-%d holds %d at %d, which is record %d from %d", logTopic, p, n, rec.Offset, i, start.Offset)
			}
		}
		if int64(w.next) != start.Offset+int64(len(list)) {
			failf("%s-%d ends at %d, %d were acknowledged", logTopic, p, start.Offset+int64(len(list)), w.next)
		}
	}
	for p, list := range k.readTopic(admin, keyedTopic) {
		state := map[string]string{}
		for _, rec := range list {
			state[string(rec.Key)] = string(rec.Value)
		}
		for key, want := range k.keyed[p].state {
			if state[key] != want {
				failf("%s-%d: key %s is %.20q, want %.20q", keyedTopic, p, key, state[key], want)
			}
		}
	}
}

// readTopic reads a topic from start to end, by partition.
func (k *kills) readTopic(admin *kadm.Client, topic string) map[int32][]*kgo.Record {
	ends, err := admin.ListEndOffsets(k.ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		failf("list ends of %s: %v", topic, err)
	}
	starts, err := admin.ListStartOffsets(k.ctx, topic)
	if err != nil {
		failf("list starts of %s: %v", topic, err)
	}
	cl := k.client(kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(50*time.Millisecond), kgo.KeepControlRecords())
	defer cl.Close()
	got, left := map[int32][]*kgo.Record{}, map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		if s, _ := starts.Lookup(topic, o.Partition); s.Offset < o.Offset {
			left[o.Partition] = o.Offset
		}
	})
	for ends := time.Now().Add(30 * time.Second); len(left) > 0; {
		if time.Now().After(ends) {
			failf("the end of %s is not reached: %v are left", topic, left)
		}
		ctx, cancel := context.WithTimeout(k.ctx, time.Second)
		cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			got[r.Partition] = append(got[r.Partition], r)
			k.counts.Records++
			if r.Offset+1 >= left[r.Partition] {
				delete(left, r.Partition)
			}
		})
		cancel()
	}
	return got
}
