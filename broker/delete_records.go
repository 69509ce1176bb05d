package broker

import (
	"fmt"
	"log/slog"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/coord"
	"millrace/engine"
	"millrace/wire"
)

// highWatermark, as an offset of DeleteRecords, means all that readers can see.
const highWatermark = -1

// handleDeleteRecords serves DeleteRecords: the start of each log is raised. That is
// durable when the answer is sent; files are deleted in the background. What a
// producer has sent stays known (F075).
func (b *Broker) handleDeleteRecords(rc *requestContext, request kmsg.Request) kmsg.Response {
	req := request.(*kmsg.DeleteRecordsRequest)
	resp := req.ResponseKind().(*kmsg.DeleteRecordsResponse)
	var work deletions
	for i := range req.Topics {
		t := &req.Topics[i]
		topic := kmsg.NewDeleteRecordsResponseTopic()
		topic.Topic = t.Topic
		topic.Partitions = make([]kmsg.DeleteRecordsResponseTopicPartition, len(t.Partitions))
		for j := range t.Partitions {
			answer := &topic.Partitions[j]
			answer.Default()
			answer.Partition = t.Partitions[j].Partition
			work = append(work, deletion{topic: t.Topic, upTo: t.Partitions[j].Offset, answer: answer})
		}
		resp.Topics = append(resp.Topics, topic)
	}
	b.retention.add(work.run(b)...)
	for i := range work {
		work[i].report(b, rc)
	}
	return resp
}

// deletion is one partition of the request.
type deletion struct {
	topic  string
	upTo   int64
	answer *kmsg.DeleteRecordsResponseTopicPartition
	log    *engine.Log
	err    error
}

type deletions []deletion

// run carries the deletions out and returns the logs they were in. Each costs a
// sync of the checkpoint, which those that run side by side share.
func (work deletions) run(b *Broker) []*engine.Log {
	next := make(chan *deletion)
	var workers sync.WaitGroup
	for range min(len(work), maxSideBySide) {
		// Owner: this call; ends with the channel; waited for below.
		workers.Go(func() {
			for d := range next {
				d.err = d.do(b)
			}
		})
	}
	for i := range work {
		next <- &work[i]
	}
	close(next)
	workers.Wait()
	var logs []*engine.Log
	for i := range work {
		if work[i].err == nil {
			logs = append(logs, work[i].log)
		}
	}
	return logs
}

func (d *deletion) do(b *Broker) error {
	if coord.InternalName(d.topic) {
		return &codedError{wire.ErrInvalidTopic, fmt.Sprintf("records of the internal topic %q cannot be deleted", d.topic)}
	}
	partition, err := b.partitionOf(d.topic, d.answer.Partition)
	if err != nil {
		return err
	}
	if err := partition.Lead(); err != nil {
		return err
	}
	d.log = partition.Log()
	if c := d.log.Config(); c.Compact && !c.Delete {
		return &codedError{wire.ErrPolicyViolation, fmt.Sprintf("topic %q has cleanup.policy=compact: its records are deleted by tombstones", d.topic)}
	}
	end := partition.HighWatermark()
	upTo := engine.Offset(d.upTo)
	if d.upTo == highWatermark {
		upTo = end
	}
	if upTo < 0 || upTo > end {
		return &engine.OutOfRangeError{Want: upTo, Start: d.log.Start(), End: end}
	}
	if err := d.log.SetStart(upTo); err != nil {
		return err
	}
	d.answer.LowWatermark = int64(d.log.Start())
	return nil
}

// report puts the outcome in the answer, which has no room for a message, and in the
// log, which has.
func (d *deletion) report(b *Broker, rc *requestContext) {
	if d.err == nil {
		rc.log.Info("records deleted", "topic", d.topic, "partition", d.answer.Partition, "start", d.answer.LowWatermark, "client_id", rc.header.ClientID)
		return
	}
	f := failureOf(d.err)
	d.answer.ErrorCode, d.answer.LowWatermark = f.code, -1
	level := slog.LevelInfo
	if f.serious {
		level = slog.LevelError
	}
	b.deleteRefused.log(rc.log, level, "records not deleted: "+f.message, "topic", d.topic, "partition", d.answer.Partition, "error", wire.ErrorName(f.code), "client_id", rc.header.ClientID)
}
