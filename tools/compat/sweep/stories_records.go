package sweep

import (
	"encoding/binary"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/engine/batch"
	"millrace/wire"
)

// produce is a step that sends records to one partition.
func produce(name, topic string, partition int32, records func(c *moment) []byte) step {
	return ask(name, kmsg.NewPtrProduceRequest, func(c *moment, r *kmsg.ProduceRequest) {
		r.Acks, r.TimeoutMillis = -1, 30_000
		r.Topics = append(r.Topics, produceTopic(c, topic, partition, records(c)))
	})
}

func produceTopic(c *moment, topic string, partition int32, records []byte) kmsg.ProduceRequestTopic {
	topic = c.its(topic)
	id, ok := c.ids[topic]
	if !ok {
		id = strange
	}
	return kmsg.ProduceRequestTopic{Topic: topic, TopicID: id, Partitions: []kmsg.ProduceRequestTopicPartition{{Partition: partition, Records: records}}}
}

func three(c *moment) []byte { return recordsOf(c.version, 3) }

// changed gives the records with one change to their bytes.
func changed(change func(b []byte) []byte) func(c *moment) []byte {
	return func(c *moment) []byte { return change(three(c)) }
}

// produceWith is a step that changes the whole request.
func produceWith(name string, change func(c *moment, r *kmsg.ProduceRequest)) step {
	return ask(name, kmsg.NewPtrProduceRequest, func(c *moment, r *kmsg.ProduceRequest) {
		r.Acks, r.TimeoutMillis = -1, 30_000
		change(c, r)
	})
}

func produceStories() story {
	const atAttributes, atMagic, atCRC = 21, 16, 17
	return story{name: "produce", about: []int16{wire.KeyProduce}, steps: []step{
		createTopic("p~", 1), learn("p~"),
		produce("first", "p~", 0, three).settled(),
		produce("acks all", "p~", 0, three),
		produceWith("acks 1", func(c *moment, r *kmsg.ProduceRequest) {
			r.Acks, r.Topics = 1, []kmsg.ProduceRequestTopic{produceTopic(c, "p~", 0, three(c))}
		}),
		produceWith("acks 0", func(c *moment, r *kmsg.ProduceRequest) {
			r.Acks, r.Topics = 0, []kmsg.ProduceRequestTopic{produceTopic(c, "p~", 0, three(c))}
		}).unanswered(),
		produceWith("acks 0 to an unknown partition", func(c *moment, r *kmsg.ProduceRequest) {
			r.Acks, r.Topics = 0, []kmsg.ProduceRequestTopic{produceTopic(c, "p~", 77, three(c))}
		}).unanswered().over("acks 0"),
		produceWith("acks 2", func(c *moment, r *kmsg.ProduceRequest) {
			r.Acks, r.Topics = 2, []kmsg.ProduceRequestTopic{produceTopic(c, "p~", 0, three(c))}
		}),
		produceWith("no topics", func(c *moment, r *kmsg.ProduceRequest) {}),
		produceWith("two topics, one unknown", func(c *moment, r *kmsg.ProduceRequest) {
			r.Topics = []kmsg.ProduceRequestTopic{produceTopic(c, "nowhere", 0, three(c)), produceTopic(c, "p~", 0, three(c))}
		}),
		produce("to a partition that is not there", "p~", 9, three),
		produce("to partition -1", "p~", -1, three),
		produceWith("zero topic id", func(c *moment, r *kmsg.ProduceRequest) {
			t := produceTopic(c, "p~", 0, three(c))
			t.TopicID = [16]byte{}
			r.Topics = []kmsg.ProduceRequestTopic{t}
		}).since(13),
		produce("null records", "p~", 0, func(*moment) []byte { return nil }).since(13).within(2 * time.Second),
		produce("no records", "p~", 0, func(*moment) []byte { return []byte{} }),
		produce("to large for the topic", "small", 0, func(c *moment) []byte { return recordsOf(c.version, 30) }),
		produce("log append time", "small", 0, func(c *moment) []byte { return recordsOf(c.version, 1) }),
		produce("damaged", "p~", 0, changed(func(b []byte) []byte { b[len(b)-1] ^= 1; return b })).since(3),
		produce("cut short", "p~", 0, changed(func(b []byte) []byte { return b[:len(b)-3] })).since(3),
		produce("two batches", "p~", 0, changed(func(b []byte) []byte { return append(b, b...) })).since(3),
		produce("magic 9", "p~", 0, changed(func(b []byte) []byte { b[atMagic] = 9; return b })).since(3),
		produce("unknown codec", "p~", 0, changed(func(b []byte) []byte { b[atAttributes+1] |= 7; return sealed(b, atCRC) })).since(3),
		produce("a control batch", "p~", 0, changed(func(b []byte) []byte { b[atAttributes+1] |= 32; return sealed(b, atCRC) })).since(3),
		produce("record count too high", "p~", 0, changed(func(b []byte) []byte { binary.BigEndian.PutUint32(b[57:], 4); return sealed(b, atCRC) })).since(3),
		produce("last offset delta wrong", "p~", 0, changed(func(b []byte) []byte { binary.BigEndian.PutUint32(b[23:], 7); return sealed(b, atCRC) })).since(3),
		produce("zstd", "p~", 0, func(c *moment) []byte { return compressed(c.version, batch.Zstd, 50) }).since(3),
		produce("gzip", "p~", 0, func(c *moment) []byte { return compressed(c.version, batch.Gzip, 50) }),
		produce("null key to a compacted topic", "compacted", 0, func(c *moment) []byte {
			b := batch.NewBuilder(batch.None, batch.DefaultLevel)
			if err := b.Add(batch.Record{Timestamp: firstTime, Value: []byte("v")}); err != nil {
				panic(err)
			}
			return b.Bytes()
		}).since(3),
		ask("a producer's id", kmsg.NewPtrInitProducerIDRequest, nil).settled().then(func(c *moment, r kmsg.Response) {
			c.vars["producer"] = r.(*kmsg.InitProducerIDResponse).ProducerID
		}),
		produce("sequence 0", "p~", 0, fromProducer(0, 0)).since(3),
		produce("sequence 0 again", "p~", 0, fromProducer(0, 0)).since(3),
		produce("sequence 3", "p~", 0, fromProducer(0, 3)).since(3),
		produce("sequence 99", "p~", 0, fromProducer(0, 99)).since(3),
		produce("next epoch, sequence 5", "p~", 0, fromProducer(1, 5)).since(3),
		produce("next epoch", "p~", 0, fromProducer(1, 0)).since(3),
		produce("old epoch", "p~", 0, fromProducer(0, 6)).since(3),
		produce("a producer nobody knows, sequence 8", "p~", 0, func(c *moment) []byte { return recordsOf(c.version, 3, batch.Producer(77_000, 0, 8)) }).since(3),
	}}
}

// fromProducer makes three records of the round's own producer.
func fromProducer(epoch int16, sequence int32) func(c *moment) []byte {
	return func(c *moment) []byte {
		id, _ := c.vars["producer"].(int64)
		return recordsOf(c.version, 3, batch.Producer(id, epoch, sequence))
	}
}

// sealed puts the right checksum into a changed batch.
func sealed(b []byte, at int) []byte {
	binary.BigEndian.PutUint32(b[at:], crc32c(b[at+4:]))
	return b
}

// fetchWith is a step that reads one partition; change may set anything.
func fetchWith(name, topic string, change func(c *moment, r *kmsg.FetchRequest, p *kmsg.FetchRequestTopicPartition)) step {
	return ask(name, kmsg.NewPtrFetchRequest, func(c *moment, r *kmsg.FetchRequest) {
		t := kmsg.NewFetchRequestTopic()
		p := kmsg.NewFetchRequestTopicPartition()
		topic := c.its(topic)
		t.Topic, t.TopicID = topic, c.ids[topic]
		if _, ok := c.ids[topic]; !ok {
			t.TopicID = strange
		}
		p.CurrentLeaderEpoch, p.PartitionMaxBytes = -1, 1<<20
		r.MaxBytes, r.MinBytes, r.MaxWaitMillis, r.SessionEpoch = 1<<20, 0, 100, -1
		change(c, r, &p)
		t.Partitions = append(t.Partitions, p)
		r.Topics = append(r.Topics, t)
	})
}

func fetchStories() story {
	type r = *kmsg.FetchRequest
	type p = *kmsg.FetchRequestTopicPartition
	return story{name: "fetch", steps: []step{
		fetchWith("from the start", "t", func(c *moment, r r, p p) {}),
		fetchWith("from the middle", "t", func(c *moment, r r, p p) { p.FetchOffset = 4 }),
		fetchWith("read committed", "t", func(c *moment, r r, p p) { r.IsolationLevel = 1 }).since(4),
		fetchWith("at the end", "t", func(c *moment, r r, p p) { p.FetchOffset = 5 }),
		fetchWith("an empty partition", "t", func(c *moment, r r, p p) { p.Partition = 1 }),
		fetchWith("beyond the end", "t", func(c *moment, r r, p p) { p.FetchOffset = 99 }),
		fetchWith("a negative offset", "t", func(c *moment, r r, p p) { p.FetchOffset = -1 }),
		fetchWith("one byte of the partition", "t", func(c *moment, r r, p p) { p.PartitionMaxBytes = 1 }),
		fetchWith("one byte of all", "t", func(c *moment, r r, p p) { r.MaxBytes = 1 }).since(3),
		fetchWith("a partition that is not there", "t", func(c *moment, r r, p p) { p.Partition = 9 }),
		fetchWith("an unknown topic", "nowhere", func(c *moment, r r, p p) {}),
		fetchWith("a topic id of none", "t", func(c *moment, r r, p p) {}).zeroID().since(13),
		fetchWith("the right epoch", "t", func(c *moment, r r, p p) { p.CurrentLeaderEpoch = 0 }).since(9),
		fetchWith("a later epoch", "t", func(c *moment, r r, p p) { p.CurrentLeaderEpoch = 7 }).since(9),
		fetchWith("a last fetched epoch that is later", "t", func(c *moment, r r, p p) { p.FetchOffset, p.LastFetchedEpoch, p.CurrentLeaderEpoch = 5, 5, 0 }).since(12),
		fetchWith("a last fetched epoch that is right", "t", func(c *moment, r r, p p) { p.FetchOffset, p.LastFetchedEpoch, p.CurrentLeaderEpoch = 5, 0, 0 }).since(12),
		fetchWith("as a follower that is none", "t", func(c *moment, r r, p p) { r.ReplicaID, r.ReplicaState.ID = 77, 77 }),
		ask("nothing", kmsg.NewPtrFetchRequest, func(c *moment, r r) { r.MaxWaitMillis, r.SessionEpoch = 10, -1 }),
		fetchWith("a session", "t", func(c *moment, r r, p p) { r.SessionEpoch = 0 }).since(7).then(func(c *moment, r kmsg.Response) { c.vars["session"] = r.(*kmsg.FetchResponse).SessionID }),
		ask("its next fetch", kmsg.NewPtrFetchRequest, func(c *moment, r r) {
			r.MaxBytes, r.MaxWaitMillis, r.SessionID, r.SessionEpoch = 1<<20, 10, c.number("session"), 1
		}).since(7),
		fetchWith("its next fetch from the end", "t", func(c *moment, r r, p p) { r.SessionID, r.SessionEpoch, p.FetchOffset = c.number("session"), 2, 5 }).since(7),
		ask("a session at the wrong epoch", kmsg.NewPtrFetchRequest, func(c *moment, r r) {
			r.MaxBytes, r.MaxWaitMillis, r.SessionID, r.SessionEpoch = 1<<20, 10, c.number("session"), 9
		}).since(7),
		ask("a session nobody has", kmsg.NewPtrFetchRequest, func(c *moment, r r) { r.MaxBytes, r.MaxWaitMillis, r.SessionID, r.SessionEpoch = 1<<20, 10, 12345, 3 }).since(7),
		ask("a session given up", kmsg.NewPtrFetchRequest, func(c *moment, r r) {
			r.MaxBytes, r.MaxWaitMillis, r.SessionID, r.SessionEpoch = 1<<20, 10, c.number("session"), -1
		}).since(7),
	}}
}

// zeroID sends the id that is none.
func (p step) zeroID() step {
	build := p.build
	p.build = func(c *moment) kmsg.Request {
		r := build(c).(*kmsg.FetchRequest)
		r.Topics[0].TopicID = [16]byte{}
		return r
	}
	return p
}

// listAt is a step that asks for one timestamp.
func listAt(name, topic string, partition int32, timestamp int64, change func(r *kmsg.ListOffsetsRequest, p *kmsg.ListOffsetsRequestTopicPartition)) step {
	return ask(name, kmsg.NewPtrListOffsetsRequest, func(c *moment, r *kmsg.ListOffsetsRequest) {
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Partition, p.Timestamp, p.CurrentLeaderEpoch, p.MaxNumOffsets = partition, timestamp, -1, 1
		r.ReplicaID, r.TimeoutMillis = -1, 30_000
		if change != nil {
			change(r, &p)
		}
		r.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: c.its(topic), Partitions: []kmsg.ListOffsetsRequestTopicPartition{p}}}
	})
}

func listStories() story {
	type r = *kmsg.ListOffsetsRequest
	type p = *kmsg.ListOffsetsRequestTopicPartition
	return story{name: "list offsets", steps: []step{
		listAt("latest", "t", 0, -1, nil), listAt("earliest", "t", 0, -2, nil), listAt("latest of an empty partition", "t", 1, -1, nil),
		listAt("latest committed", "t", 0, -1, func(r r, p p) { r.IsolationLevel = 1 }).since(2),
		listAt("highest timestamp", "t", 0, -3, nil).since(7), listAt("highest timestamp of an empty partition", "t", 1, -3, nil).since(7),
		listAt("earliest local", "t", 0, -4, nil).since(8), listAt("latest tiered", "t", 0, -5, nil).since(9), listAt("earliest to upload", "t", 0, -6, nil).since(11),
		listAt("a timestamp of a version to come", "t", 0, -3, nil).since(1).until(6), listAt("an unknown special timestamp", "t", 0, -99, nil).since(1),
		listAt("at the second record", "t", 0, firstTime+1, nil).since(1), listAt("after all records", "t", 0, firstTime+99, nil).since(1), listAt("before all records", "t", 0, 0, nil).since(1),
		listAt("a partition that is not there", "t", 9, -1, nil), listAt("an unknown topic", "nowhere", 0, -1, nil),
		listAt("the right epoch", "t", 0, -1, func(r r, p p) { p.CurrentLeaderEpoch = 0 }).since(4),
		listAt("a later epoch", "t", 0, -1, func(r r, p p) { p.CurrentLeaderEpoch = 7 }).since(4),
		listAt("as a debugging consumer", "t", 0, -1, func(r r, p p) { r.ReplicaID = -2 }),
		listAt("as a follower that is none", "t", 0, -1, func(r r, p p) { r.ReplicaID = 77 }),
		ask("one partition twice", kmsg.NewPtrListOffsetsRequest, func(c *moment, r r) {
			one := kmsg.NewListOffsetsRequestTopicPartition()
			one.Timestamp, one.CurrentLeaderEpoch, one.MaxNumOffsets, r.ReplicaID = -1, -1, 1, -1
			r.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: "t", Partitions: []kmsg.ListOffsetsRequestTopicPartition{one, one}}}
		}).since(1),
		ask("nothing", kmsg.NewPtrListOffsetsRequest, func(c *moment, r r) { r.ReplicaID = -1 }),
	}}
}

func epochStories() story {
	at := func(name, topic string, partition, current, epoch int32) step {
		return ask(name, kmsg.NewPtrOffsetForLeaderEpochRequest, func(c *moment, r *kmsg.OffsetForLeaderEpochRequest) {
			p := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
			p.Partition, p.CurrentLeaderEpoch, p.LeaderEpoch = partition, current, epoch
			r.ReplicaID, r.Topics = -1, []kmsg.OffsetForLeaderEpochRequestTopic{{Topic: topic, Partitions: []kmsg.OffsetForLeaderEpochRequestTopicPartition{p}}}
		})
	}
	return story{name: "end of epoch", steps: []step{
		at("epoch 0", "t", 0, -1, 0), at("a later epoch", "t", 0, -1, 7), at("epoch -1", "t", 0, -1, -1), at("an empty partition", "t", 1, -1, 0),
		at("the right current epoch", "t", 0, 0, 0).since(2), at("a later current epoch", "t", 0, 7, 0).since(2),
		at("a partition that is not there", "t", 9, -1, 0), at("an unknown topic", "nowhere", 0, -1, 0),
		ask("nothing", kmsg.NewPtrOffsetForLeaderEpochRequest, func(c *moment, r *kmsg.OffsetForLeaderEpochRequest) { r.ReplicaID = -1 }),
	}}
}

func deleteRecordsStories() story {
	del := func(name, topic string, partition int32, offset int64) step {
		return ask(name, kmsg.NewPtrDeleteRecordsRequest, func(c *moment, r *kmsg.DeleteRecordsRequest) {
			p := kmsg.NewDeleteRecordsRequestTopicPartition()
			p.Partition, p.Offset = partition, offset
			r.TimeoutMillis, r.Topics = 30_000, []kmsg.DeleteRecordsRequestTopic{{Topic: c.its(topic), Partitions: []kmsg.DeleteRecordsRequestTopicPartition{p}}}
		})
	}
	return story{name: "delete records", about: []int16{wire.KeyDeleteRecords}, steps: []step{
		createTopic("cut~", 1), learn("cut~"), produce("records", "cut~", 0, three).settled(),
		del("beyond the end", "cut~", 0, 1_000_000), del("nothing at offset 0", "cut~", 0, 0), del("a negative offset", "cut~", 0, -5), del("a partition that is not there", "cut~", 9, 1),
		del("an unknown topic", "nowhere", 0, 1), del("of a compacted topic", "compacted", 0, 0),
		ask("nothing", kmsg.NewPtrDeleteRecordsRequest, func(c *moment, r *kmsg.DeleteRecordsRequest) { r.TimeoutMillis = 30_000 }),
		del("up to offset 2", "cut~", 0, 2), del("before the start", "cut~", 0, 1), listAt("the new start", "cut~", 0, -2, nil), fetchWith("below the start", "cut~", func(*moment, *kmsg.FetchRequest, *kmsg.FetchRequestTopicPartition) {}),
		del("up to the end", "cut~", 0, -1), listAt("the start at the end", "cut~", 0, -2, nil),
	}}
}

func producerStories() []story {
	init := func(name string, change func(r *kmsg.InitProducerIDRequest)) step {
		return ask(name, kmsg.NewPtrInitProducerIDRequest, func(c *moment, r *kmsg.InitProducerIDRequest) {
			if change != nil {
				change(r)
			}
		})
	}
	type r = *kmsg.InitProducerIDRequest
	describe := func(name, topic string, partitions ...int32) step {
		return ask(name, kmsg.NewPtrDescribeProducersRequest, func(c *moment, r *kmsg.DescribeProducersRequest) {
			r.Topics = []kmsg.DescribeProducersRequestTopic{{Topic: c.its(topic), Partitions: partitions}}
		})
	}
	return []story{
		{name: "producer ids", steps: []step{
			init("a new one", nil).settled(),
			init("an old one named", func(r r) { r.ProducerID, r.ProducerEpoch = 5, 0 }).since(3),
			init("an id without epoch", func(r r) { r.ProducerID = 5 }).since(3),
			init("an epoch without id", func(r r) { r.ProducerEpoch = 5 }).since(3),
			init("an empty transactional id", func(r r) { r.TransactionalID = ptr("") }),
		}},
		{name: "producers", steps: []step{describe("of p~", "p~", 0), describe("none", "t", 0, 1), describe("a partition that is not there", "t", 9), describe("an unknown topic", "nowhere", 0),
			ask("nothing", kmsg.NewPtrDescribeProducersRequest, nil)}},
	}
}

func recordStories() []story {
	return append([]story{produceStories(), fetchStories(), listStories(), epochStories(), deleteRecordsStories()}, producerStories()...)
}
