import static java.nio.charset.StandardCharsets.UTF_8;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Producers and a consumer: what goes in with each codec comes out as it was. */
class Values {
    static final String[] CODECS = {"none", "gzip", "snappy", "lz4", "zstd"};
    static final int LIMIT = 1_048_588; // max.message.bytes by default: a batch with its header

    static void run(String bootstrap) throws Exception {
        try (Admin admin = Admin.create(Clients.props(bootstrap))) {
            for (String codec : CODECS) {
                admin.createTopics(List.of(new NewTopic("values-" + codec, 1, (short) 1), new NewTopic("many-" + codec, 3, (short) 1))).all().get();
                each(bootstrap, codec);
                many(bootstrap, codec, admin);
            }
            admin.createTopics(List.of(new NewTopic("stamped", 1, (short) 1).configs(Map.of("message.timestamp.type", "LogAppendTime")), new NewTopic("acks", 1, (short) 1))).all().get();
        }
        stamped(bootstrap);
        acks(bootstrap);
    }

    static KafkaProducer<byte[], byte[]> producer(String bootstrap, String... set) {
        Properties p = Clients.props(bootstrap, "max.request.size", "4000000", "enable.idempotence", "true", "acks", "all");
        for (int i = 0; i < set.length; i += 2) p.put(set[i], set[i + 1]);
        return new KafkaProducer<>(p, new ByteArraySerializer(), new ByteArraySerializer());
    }

    static List<ConsumerRecord<byte[], byte[]>> read(String bootstrap, String topic, int partitions, int records) {
        List<ConsumerRecord<byte[], byte[]>> all = new ArrayList<>();
        try (KafkaConsumer<byte[], byte[]> c = new KafkaConsumer<>(Clients.props(bootstrap), new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            List<TopicPartition> tps = new ArrayList<>();
            for (int i = 0; i < partitions; i++) tps.add(new TopicPartition(topic, i));
            c.assign(tps);
            c.seekToBeginning(tps);
            long end = System.nanoTime() + 60_000_000_000L;
            while (all.size() < records && System.nanoTime() < end) c.poll(Duration.ofMillis(200)).forEach(all::add);
            Clients.same(topic + ": end offsets", (long) records, c.endOffsets(tps).values().stream().mapToLong(x -> x).sum());
        }
        Clients.same(topic + ": records", records, all.size());
        return all;
    }

    /** Records of every kind, each in a batch of its own. */
    static void each(String bootstrap, String codec) throws Exception {
        String topic = "values-" + codec;
        long at = 1_700_000_000_123L;
        List<ProducerRecord<byte[], byte[]>> sent = new ArrayList<>();
        sent.add(new ProducerRecord<>(topic, 0, at, bytes("tombstone"), (byte[]) null));
        sent.add(new ProducerRecord<>(topic, 0, at + 1, (byte[]) null, (byte[]) null));
        sent.add(new ProducerRecord<>(topic, 0, at - 5, new byte[0], new byte[0]));
        sent.add(new ProducerRecord<>(topic, 0, 0L, null, bytes("x")));
        ProducerRecord<byte[], byte[]> headed = new ProducerRecord<>(topic, 0, at, bytes("key"), bytes("with headers"));
        headed.headers().add("a", bytes("1")).add("a", null).add("", new byte[0]).add("ü", new byte[] {0, -1});
        sent.add(headed);
        sent.add(new ProducerRecord<>(topic, 0, at, bytes("k".repeat(5000)), bytes("long key")));
        Random random = new Random(7);
        for (int size = 1; size < LIMIT; size = size * 5 + 1) {
            byte[] v = new byte[size];
            random.nextBytes(v); // does not get smaller
            sent.add(new ProducerRecord<>(topic, 0, at + size, null, v));
        }
        sent.add(new ProducerRecord<>(topic, 0, at, null, new byte[LIMIT - 100])); // as large as goes in without a codec
        try (KafkaProducer<byte[], byte[]> producer = producer(bootstrap, "compression.type", codec)) {
            for (int i = 0; i < sent.size(); i++) {
                RecordMetadata m = producer.send(sent.get(i)).get();
                Clients.same(topic + ": offset acked", (long) i, m.offset());
                Clients.same(topic + ": time acked", sent.get(i).timestamp(), m.timestamp());
            }
            byte[] large = new byte[LIMIT + 1];
            random.nextBytes(large);
            Clients.fails(topic + ": over the limit", RecordTooLargeException.class, () -> producer.send(new ProducerRecord<>(topic, 0, null, large)).get());
        }
        List<ConsumerRecord<byte[], byte[]>> got = read(bootstrap, topic, 1, sent.size());
        for (int i = 0; i < sent.size(); i++) {
            ProducerRecord<byte[], byte[]> want = sent.get(i);
            ConsumerRecord<byte[], byte[]> r = got.get(i);
            String what = topic + " record " + i;
            Clients.same(what + " offset", (long) i, r.offset());
            Clients.same(what + " time", want.timestamp(), r.timestamp());
            Clients.same(what + " kind of time", TimestampType.CREATE_TIME, r.timestampType());
            Clients.same(what + " key", want.key(), r.key());
            Clients.same(what + " value", want.value(), r.value());
            Header[] a = want.headers().toArray(), b = r.headers().toArray();
            Clients.same(what + " headers", a.length, b.length);
            for (int h = 0; h < a.length; h++) {
                Clients.same(what + " header " + h, a[h].key(), b[h].key());
                Clients.same(what + " header value " + h, a[h].value(), b[h].value());
            }
        }
        Clients.ok("%s: %d records of every kind", codec, sent.size());
    }

    /** An idempotent producer with five requests in flight: all there, each once, in order. */
    static void many(String bootstrap, String codec, Admin admin) throws Exception {
        String topic = "many-" + codec;
        int n = 9000;
        try (KafkaProducer<byte[], byte[]> producer = producer(bootstrap, "compression.type", codec, "batch.size", "2000", "linger.ms", "1", "max.in.flight.requests.per.connection", "5")) {
            List<Future<RecordMetadata>> sends = new ArrayList<>();
            for (int i = 0; i < n; i++) sends.add(producer.send(new ProducerRecord<>(topic, i % 3, bytes("k" + i), bytes("value " + i))));
            producer.flush();
            for (int i = 0; i < n; i++) Clients.same(topic + ": acked offset of " + i, (long) (i / 3), sends.get(i).get().offset());
            for (int p = 0; p < 3; p++) {
                TopicPartition tp = new TopicPartition(topic, p);
                List<ProducerState> states = new ArrayList<>(admin.describeProducers(List.of(tp)).partitionResult(tp).get().activeProducers());
                Clients.same(topic + ": producers known", 1, states.size());
                Clients.same(topic + ": last sequence", n / 3 - 1, states.get(0).lastSequence());
            }
        }
        Map<Integer, Integer> next = new HashMap<>();
        for (ConsumerRecord<byte[], byte[]> r : read(bootstrap, topic, 3, n)) {
            int k = next.merge(r.partition(), 1, Integer::sum) - 1;
            Clients.same(topic + ": offset", (long) k, r.offset());
            Clients.same(topic + ": value", "value " + (3 * k + r.partition()), new String(r.value(), UTF_8));
            Clients.same(topic + ": key", "k" + (3 * k + r.partition()), new String(r.key(), UTF_8));
        }
        Clients.ok("%s: %d records of an idempotent producer, each once and in order", codec, n);
    }

    static void stamped(String bootstrap) throws Exception {
        long before = System.currentTimeMillis();
        long acked;
        try (KafkaProducer<byte[], byte[]> producer = producer(bootstrap, "compression.type", "gzip")) {
            acked = producer.send(new ProducerRecord<>("stamped", 0, 5L, null, bytes("v"))).get().timestamp();
        }
        ConsumerRecord<byte[], byte[]> r = read(bootstrap, "stamped", 1, 1).get(0);
        Clients.same("kind of time", TimestampType.LOG_APPEND_TIME, r.timestampType());
        Clients.same("append time", acked, r.timestamp());
        Clients.holds("append time " + acked + " is now", acked >= before - 1000 && acked <= System.currentTimeMillis() + 1000);
        Clients.ok("append time");
    }

    static void acks(String bootstrap) throws Exception {
        for (String acks : new String[] {"0", "1", "all"}) {
            try (KafkaProducer<byte[], byte[]> producer = producer(bootstrap, "enable.idempotence", "false", "acks", acks)) {
                for (int i = 0; i < 500; i++) producer.send(new ProducerRecord<>("acks", 0, null, bytes(acks + " " + i)));
            }
        }
        List<ConsumerRecord<byte[], byte[]>> got = read(bootstrap, "acks", 1, 1500);
        Map<String, Integer> next = new HashMap<>();
        for (ConsumerRecord<byte[], byte[]> r : got) { // acks=0 may still be under way when the next begins
            String[] v = new String(r.value(), UTF_8).split(" ");
            Clients.same("acks=" + v[0], next.merge(v[0], 1, Integer::sum) - 1, Integer.parseInt(v[1]));
        }
        Clients.ok("acks 0, 1 and all");
    }

    /** A transaction that is kept and one that is taken back; a reader of what is committed sees the first only. */
    static void transactions(String bootstrap) throws Exception {
        try (Admin admin = Admin.create(Clients.props(bootstrap))) {
            admin.createTopics(List.of(new NewTopic("paid", 1, (short) 1))).all().get();
        }
        try (KafkaProducer<byte[], byte[]> producer = producer(bootstrap, "transactional.id", "teller", "max.block.ms", "15000")) {
            producer.initTransactions();
            for (String v : new String[] {"kept", "gone", "also kept"}) {
                producer.beginTransaction();
                producer.send(new ProducerRecord<>("paid", bytes(v)));
                if (v.equals("gone")) producer.abortTransaction();
                else producer.commitTransaction();
            }
        }
        List<String> got = new ArrayList<>();
        TopicPartition tp = new TopicPartition("paid", 0);
        try (KafkaConsumer<byte[], byte[]> c = new KafkaConsumer<>(Clients.props(bootstrap, "isolation.level", "read_committed"), new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            c.assign(Collections.singleton(tp));
            c.seekToBeginning(c.assignment());
            long end = c.endOffsets(c.assignment()).get(tp);
            while (c.position(tp) < end) c.poll(Duration.ofMillis(200)).forEach(r -> got.add(new String(r.value(), UTF_8)));
        }
        Clients.same("committed", Arrays.asList("kept", "also kept"), got);
        Clients.ok("transactions");
    }

    static byte[] bytes(String s) { return s.getBytes(UTF_8); }
}
