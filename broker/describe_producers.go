package broker

import (
	"log/slog"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// handleDescribeProducers serves DescribeProducers: the idempotent producers that the
// partitions' logs remember.
func (b *Broker) handleDescribeProducers(rc *requestContext, request kmsg.Request) kmsg.Response {
	req := request.(*kmsg.DescribeProducersRequest)
	resp := req.ResponseKind().(*kmsg.DescribeProducersResponse)
	for i := range req.Topics {
		t := &req.Topics[i]
		topic := kmsg.NewDescribeProducersResponseTopic()
		topic.Topic = t.Topic
		for _, index := range t.Partitions {
			answer := kmsg.NewDescribeProducersResponseTopicPartition()
			answer.Partition = index
			if err := b.listProducers(t.Topic, &answer); err != nil {
				f := failureOf(err)
				answer.ErrorCode, answer.ErrorMessage = f.code, &f.message
				if f.serious {
					b.limits.storage.log(rc.log, slog.LevelError, "DescribeProducers failed", "topic", t.Topic, "partition", index, "error", err)
				}
			}
			topic.Partitions = append(topic.Partitions, answer)
		}
		resp.Topics = append(resp.Topics, topic)
	}
	return resp
}

func (b *Broker) listProducers(topic string, answer *kmsg.DescribeProducersResponseTopicPartition) error {
	partition, err := b.partitionOf(topic, answer.Partition)
	if err != nil {
		return err
	}
	if err := partition.Lead(); err != nil {
		return err
	}
	for _, s := range partition.Log().Producers() {
		p := kmsg.NewDescribeProducersResponseTopicPartitionActiveProducer()
		p.ProducerID, p.ProducerEpoch, p.LastSequence, p.LastTimestamp = s.ProducerID, int32(s.Epoch), s.LastSequence, s.Timestamp
		p.CoordinatorEpoch, p.CurrentTxnStartOffset = s.CoordinatorEpoch, s.TxnFirst
		answer.ActiveProducers = append(answer.ActiveProducers, p)
	}
	return nil
}
