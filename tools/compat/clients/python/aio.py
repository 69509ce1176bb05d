"""Drives aiokafka."""
import asyncio

from aiokafka import __version__, AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError

import report


async def send(p, topic, key, value, headers, ms):
    return await p.send(topic, value=value, key=key, headers=headers, partition=0, timestamp_ms=ms)


async def produce(bootstrap, a):
    p = AIOKafkaProducer(bootstrap_servers=bootstrap, compression_type=None if a["codec"] == "none" else a["codec"], acks="all", linger_ms=5,
                         enable_idempotence=a["idempotent"])
    await p.start()
    waiting = []
    for i, r in enumerate(report.records(a["file"])):
        waiting.append(await send(p, a["topic"], *r))
        if i < a["single"]:
            await waiting[-1]
    for w in waiting:
        await w
    await p.stop()


def got(r):
    report.got(r.topic, r.partition, r.offset, r.key, r.value, r.headers, r.timestamp)


async def consume(bootstrap, a):
    c = AIOKafkaConsumer(bootstrap_servers=bootstrap, max_partition_fetch_bytes=4 << 20)
    await c.start()
    for topic, n in a["topics"].items():
        tp = TopicPartition(topic, 0)
        c.assign([tp])
        await c.seek_to_beginning(tp)
        for _ in range(n):
            got(await asyncio.wait_for(c.getone(tp), 30))
    await c.stop()


async def limit(bootstrap, a):
    p = AIOKafkaProducer(bootstrap_servers=bootstrap, max_request_size=4 << 20, max_batch_size=4 << 20)
    await p.start()
    for name, size in (("fits", a["fit"]), ("over", a["over"])):
        try:
            await (await send(p, a["topic"], None, bytes(size), [], 1))
            report.step(name)
        except KafkaError as e:
            report.step(name, e)
    await p.stop()


async def member(bootstrap, a):
    c = AIOKafkaConsumer(a["topic"], bootstrap_servers=bootstrap, group_id=a["group"], enable_auto_commit=False, auto_offset_reset="earliest",
                         session_timeout_ms=6000, heartbeat_interval_ms=500)
    await c.start()
    while report.running():
        batches = await c.getmany(timeout_ms=200)
        for records in batches.values():
            for r in records:
                got(r)
        if batches:
            try:
                await c.commit()
            except KafkaError as e:
                report.step("note", e)
    await c.stop()


async def topic_admin(c):
    async def retention():
        answer = (await c.describe_configs([ConfigResource(ConfigResourceType.TOPIC, "made")]))[0]
        return [entry[1] for entry in answer.resources[0][4] if entry[0] == "retention.ms"]

    await c.create_topics([NewTopic("made", 3, 1, topic_configs={"retention.ms": "12345678"})])
    report.must("create topic")
    report.want("describe topic", len((await c.describe_topics(["made"]))[0]["partitions"]), 3)
    report.want("describe config", await retention(), ["12345678"])
    await c.alter_configs([ConfigResource(ConfigResourceType.TOPIC, "made", configs={"retention.ms": "7654321"})])
    report.want("alter config", await retention(), ["7654321"])
    await c.create_partitions({"made": NewPartitions(5)})
    report.want("add partitions", len((await c.describe_topics(["made"]))[0]["partitions"]), 5)
    await c.delete_topics(["made"])
    report.want("delete topic", "made" in await c.list_topics(), False)


async def admin(bootstrap, a):
    c = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await c.start()
    await topic_admin(c)
    tp = TopicPartition(a["topic"], 0)
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap)
    await consumer.start()
    report.want("list offsets", (await consumer.end_offsets([tp]))[tp], 10)
    await c.delete_records({tp: RecordsToDelete(before_offset=3)})
    report.want("delete records", (await consumer.beginning_offsets([tp]))[tp], 3)
    await consumer.stop()
    report.want("list groups", [g[0] for g in await c.list_consumer_groups()], [a["group"]])
    report.want("describe group", (await c.describe_consumer_groups([a["group"]]))[0].groups[0][2], "Empty")
    report.want("group's offsets", (await c.list_consumer_group_offsets(a["group"]))[tp].offset, 4)
    await c.close()


async def transaction(bootstrap, a):
    p = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id="t1")
    await asyncio.wait_for(p.start(), 20)
    for commit in (True, False):
        await p.begin_transaction()
        for v in (b"1", b"2", b"3"):
            await p.send_and_wait(a["topic"], value=v, partition=0)
        await (p.commit_transaction() if commit else p.abort_transaction())
    await p.stop()
    report.must("transactions")


def run(f):
    return lambda bootstrap, a: asyncio.run(f(bootstrap, a))


if __name__ == "__main__":
    report.main("aiokafka " + __version__, {f.__name__: run(f) for f in (produce, consume, limit, member, admin, transaction)})
