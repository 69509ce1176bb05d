"""Drives kafka-python: produce FILE's lines, or consume a topic's partition 0 from start to end into FILE.

usage: kafka_python.py produce|consume BOOTSTRAP TOPIC FILE [CODEC]
"""
import sys

from kafka import KafkaConsumer, KafkaProducer, TopicPartition


def produce(bootstrap, topic, path, codec):
    producer = KafkaProducer(bootstrap_servers=bootstrap, compression_type=None if codec == "none" else codec,
                             acks="all", linger_ms=20, batch_size=65536)
    failed = []
    with open(path, "rb") as lines:
        for line in lines:
            producer.send(topic, line.rstrip(b"\n"), partition=0).add_errback(failed.append)
    producer.flush(120)
    producer.close()
    if failed:
        sys.exit("produce failed: %r" % failed[0])


def consume(bootstrap, topic, path):
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, fetch_max_bytes=16 << 20,
                             max_partition_fetch_bytes=4 << 20, max_poll_records=20000)
    tp = TopicPartition(topic, 0)
    consumer.assign([tp])
    consumer.seek_to_beginning(tp)
    end = consumer.end_offsets([tp])[tp]
    with open(path, "wb") as out:
        while consumer.position(tp) < end:
            for records in consumer.poll(10000).values():
                out.writelines(r.value + b"\n" for r in records)
    consumer.close()


if __name__ == "__main__":
    act, bootstrap, topic, path = sys.argv[1:5]
    if act == "produce":
        produce(bootstrap, topic, path, sys.argv[5])
    else:
        consume(bootstrap, topic, path)
