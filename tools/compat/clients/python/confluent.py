"""Drives confluent-kafka-python, that is librdkafka."""
import logging

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, Producer, TopicCollection, TopicPartition, libversion, __version__
from confluent_kafka.admin import (AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions, NewTopic, OffsetSpec, ResourceType)

import report


def send(p, topic, key, value, headers, ms):
    """Queues a message; the result, an error or None, is the list's only element once it is known."""
    result = []
    p.produce(topic, partition=0, key=key, value=value, headers=headers, timestamp=ms, on_delivery=lambda e, m: result.append(e))
    return result


def produce(bootstrap, a):
    p = Producer({"bootstrap.servers": bootstrap, "compression.type": a["codec"], "enable.idempotence": a["idempotent"], "linger.ms": 5})
    results = []
    for i, r in enumerate(report.records(a["file"])):
        results.append(send(p, a["topic"], *r))
        if i < a["single"]:
            p.flush(30)
    if p.flush(30):
        raise TimeoutError("messages are still waiting")
    for r in results:
        if r[0] is not None:
            raise KafkaException(r[0])


def got(m):
    report.got(m.topic(), m.partition(), m.offset(), m.key(), m.value(), m.headers(), m.timestamp()[1])


def consume(bootstrap, a):
    c = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False})
    for topic, n in a["topics"].items():
        c.assign([TopicPartition(topic, 0, 0)])
        for _ in range(n):
            m = c.poll(30)
            if m is None:
                raise TimeoutError("%s: no further message within 30 s" % topic)
            if m.error():
                raise KafkaException(m.error())
            got(m)
    c.close()


def limit(bootstrap, a):
    p = Producer({"bootstrap.servers": bootstrap, "message.max.bytes": 4 << 20, "linger.ms": 0})
    for name, size in (("fits", a["fit"]), ("over", a["over"])):
        result = send(p, a["topic"], None, bytes(size), None, 1)
        p.flush(30)
        report.step(name, None if result[0] is None else KafkaException(result[0]))


def member(bootstrap, a):
    config = {"bootstrap.servers": bootstrap, "group.id": a["group"], "enable.auto.commit": False, "auto.offset.reset": "earliest", "group.protocol": a["protocol"]}
    if a["protocol"] == "classic":
        config.update({"session.timeout.ms": 6000, "heartbeat.interval.ms": 500})
    c = Consumer(config)
    c.subscribe([a["topic"]])
    while report.running():
        m = c.poll(0.2)
        if m is None:
            continue
        if m.error():
            report.step("note", KafkaException(m.error()))
            continue
        got(m)
        try:
            c.commit(m, asynchronous=False)
        except KafkaException as e:
            report.step("note", e)
    c.close()


def topic_admin(c):
    def only(futures):
        return [f.result(20) for f in futures.values()][0]

    def retention():
        return only(c.describe_configs([ConfigResource(ResourceType.TOPIC, "made")]))["retention.ms"].value

    def partitions():
        return len(only(c.describe_topics(TopicCollection(["made"]))).partitions)

    only(c.create_topics([NewTopic("made", 3, 1, config={"retention.ms": "12345678"})]))
    report.must("create topic")
    report.want("describe topic", partitions(), 3)
    report.want("describe config", retention(), "12345678")
    only(c.incremental_alter_configs([ConfigResource(ResourceType.TOPIC, "made", incremental_configs=[
        ConfigEntry("retention.ms", "7654321", incremental_operation=AlterConfigOpType.SET)])]))
    report.want("alter config", retention(), "7654321")
    only(c.create_partitions([NewPartitions("made", 5)]))
    report.want("add partitions", partitions(), 5)
    only(c.delete_topics(["made"]))
    report.want("delete topic", "made" in c.list_topics(timeout=10).topics, False)
    return only


def admin(bootstrap, a):
    c = AdminClient({"bootstrap.servers": bootstrap})
    only = topic_admin(c)
    tp = TopicPartition(a["topic"], 0)

    def offset(spec):
        return only(c.list_offsets({tp: spec})).offset

    report.want("list offsets", offset(OffsetSpec.latest()), 10)
    only(c.delete_records([TopicPartition(a["topic"], 0, 3)]))
    report.want("delete records", offset(OffsetSpec.earliest()), 3)
    report.want("list groups", [g.group_id for g in c.list_consumer_groups().result(20).valid], [a["group"]])
    report.want("describe group", only(c.describe_consumer_groups([a["group"]])).state.name, "EMPTY")

    def committed():
        return only(c.list_consumer_group_offsets([ConsumerGroupTopicPartitions(a["group"], [tp])])).topic_partitions[0].offset

    report.want("group's offsets", committed(), 4)
    only(c.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(a["group"], [TopicPartition(a["topic"], 0, 6)])]))
    report.want("alter group's offsets", committed(), 6)
    only(c.delete_consumer_groups([a["group"]]))
    report.want("delete group", [g.group_id for g in c.list_consumer_groups().result(20).valid], [])


def transaction(bootstrap, a):
    # librdkafka looks for a coordinator until the time is up; only its log says why there is none.
    lines = []
    logger = logging.getLogger("librdkafka")
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    handler = logging.Handler()
    handler.emit = lambda r: lines.append(r.getMessage())
    logger.addHandler(handler)
    p = Producer({"bootstrap.servers": bootstrap, "transactional.id": "t1", "debug": "eos"}, logger=logger)
    try:
        p.init_transactions(5)
    except KafkaException as e:
        p.poll(0)
        said = [x[x.index(": ") + 2:] for x in lines if "Failed to find transaction coordinator" in x]
        raise RuntimeError("%s; its log: %s" % (e, said[0] if said else "nothing of a coordinator")) from e
    for commit in (True, False):
        p.begin_transaction()
        for v in (b"1", b"2", b"3"):
            p.produce(a["topic"], partition=0, value=v)
        p.flush(20)
        p.commit_transaction(20) if commit else p.abort_transaction(20)
    report.must("transactions")


if __name__ == "__main__":
    report.main("confluent-kafka %s with librdkafka %s" % (__version__, libversion()[0]), {"produce": produce, "consume": consume, "limit": limit, "member": member, "admin": admin, "transaction": transaction})
