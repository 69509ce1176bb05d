"""Drives kafka-python."""
from kafka import __version__, KafkaAdminClient, KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.admin import ConfigResource, NewPartitions, NewTopic, OffsetSpec

import report


def send(p, topic, key, value, headers, ms):
    return p.send(topic, value=value, key=key, headers=headers, partition=0, timestamp_ms=ms)


def produce(bootstrap, a):
    p = KafkaProducer(bootstrap_servers=bootstrap, compression_type=None if a["codec"] == "none" else a["codec"], acks="all", linger_ms=5,
                      enable_idempotence=a["idempotent"])
    futures = []
    for i, r in enumerate(report.records(a["file"])):
        futures.append(send(p, a["topic"], *r))
        if i < a["single"]:
            futures[-1].get(30)
    p.flush(30)
    for f in futures:
        f.get(30)
    p.close()


def got(r):
    report.got(r.topic, r.partition, r.offset, r.key, r.value, r.headers, r.timestamp)


def consume(bootstrap, a):
    c = KafkaConsumer(bootstrap_servers=bootstrap, max_partition_fetch_bytes=4 << 20)
    for topic, n in a["topics"].items():
        tp = TopicPartition(topic, 0)
        c.assign([tp])
        c.seek_to_beginning(tp)
        while n > 0:
            batches = c.poll(30000)
            if not batches:
                raise TimeoutError("%s: %d messages did not come within 30 s" % (topic, n))
            for r in batches[tp]:
                got(r)
                n -= 1
    c.close()


def limit(bootstrap, a):
    p = KafkaProducer(bootstrap_servers=bootstrap, max_request_size=4 << 20, batch_size=0)
    for name, size in (("fits", a["fit"]), ("over", a["over"])):
        try:
            send(p, a["topic"], None, bytes(size), [], 1).get(30)
            report.step(name)
        except Exception as e:
            report.step(name, e)
    p.close()


def member(bootstrap, a):
    c = KafkaConsumer(a["topic"], bootstrap_servers=bootstrap, group_id=a["group"], enable_auto_commit=False, auto_offset_reset="earliest",
                      session_timeout_ms=6000, heartbeat_interval_ms=500)
    while report.running():
        batches = c.poll(200)
        for records in batches.values():
            for r in records:
                got(r)
        if batches:
            try:
                c.commit()
            except Exception as e:
                report.step("note", e)
    c.close()


def topic_admin(c):
    def retention():
        return c.describe_configs([ConfigResource("TOPIC", "made")])["topic"]["made"]["retention.ms"]["value"]

    c.create_topics([NewTopic("made", 3, 1, topic_configs={"retention.ms": "12345678"})])
    report.must("create topic")
    report.want("describe topic", len(c.describe_topics(["made"])[0]["partitions"]), 3)
    report.want("describe config", retention(), "12345678")
    c.alter_configs([ConfigResource("TOPIC", "made", configs={"retention.ms": "7654321"})])
    report.want("alter config", retention(), "7654321")
    c.create_partitions({"made": NewPartitions(5)})
    report.want("add partitions", len(c.describe_topics(["made"])[0]["partitions"]), 5)
    c.delete_topics(["made"])
    report.want("delete topic", "made" in c.list_topics(), False)


def admin(bootstrap, a):
    c = KafkaAdminClient(bootstrap_servers=bootstrap)
    topic_admin(c)
    tp = TopicPartition(a["topic"], 0)
    report.want("list offsets", c.list_partition_offsets({tp: OffsetSpec.LATEST})[tp].offset, 10)
    c.delete_records({tp: 3})
    report.want("delete records", c.list_partition_offsets({tp: OffsetSpec.EARLIEST})[tp].offset, 3)
    report.want("list groups", [g["group_id"] for g in c.list_groups()], [a["group"]])
    report.want("describe group", c.describe_groups([a["group"]])[a["group"]]["group_state"], "Empty")
    report.want("group's offsets", c.list_group_offsets(a["group"])[a["group"]][tp].offset, 4)
    c.alter_group_offsets(a["group"], {tp: OffsetAndMetadata(6, "", -1)})
    report.want("alter group's offsets", c.list_group_offsets(a["group"])[a["group"]][tp].offset, 6)
    c.delete_groups([a["group"]])
    report.want("delete group", c.list_groups(), [])
    c.close()


def transaction(bootstrap, a):
    p = KafkaProducer(bootstrap_servers=bootstrap, transactional_id="t1", max_block_ms=20000)
    p.init_transactions()
    for commit in (True, False):
        p.begin_transaction()
        for v in (b"1", b"2", b"3"):
            p.send(a["topic"], value=v, partition=0).get(20)
        p.commit_transaction() if commit else p.abort_transaction()
    report.must("transactions")


if __name__ == "__main__":
    report.main("kafka-python " + __version__, {"produce": produce, "consume": consume, "limit": limit, "member": member, "admin": admin, "transaction": transaction})
