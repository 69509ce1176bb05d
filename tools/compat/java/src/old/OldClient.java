import java.io.UnsupportedEncodingException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * A producer and consumers of the years 0.10 to 2.8: BOOTSTRAP CODECS ASSIGNORS, lists with commas. Topics are there: in-CODEC (one
 * partition, empty), new-CODEC (500 records "value N" by a new client), group-ASSIGNOR (four partitions, empty).
 */
@SuppressWarnings("deprecation")
public class OldClient {
    static String bootstrap;

    public static void main(String[] args) throws Exception {
        bootstrap = args[0];
        for (String codec : args[1].split(",")) values(codec);
        for (String assignor : args[2].split(",")) group(assignor);
        System.out.println("done");
        System.exit(0);
    }

    static Properties props(String... set) {
        Properties p = new Properties();
        p.put("bootstrap.servers", bootstrap);
        for (int i = 0; i < set.length; i += 2) p.put(set[i], set[i + 1]);
        return p;
    }

    static KafkaProducer<byte[], byte[]> producer(String... set) { return new KafkaProducer<>(props(set), new ByteArraySerializer(), new ByteArraySerializer()); }

    static KafkaConsumer<byte[], byte[]> consumer(String... set) { return new KafkaConsumer<>(props(set), new ByteArrayDeserializer(), new ByteArrayDeserializer()); }

    static void same(String what, Object want, Object got) {
        boolean equal = want instanceof byte[] && got instanceof byte[] ? Arrays.equals((byte[]) want, (byte[]) got) : want == null ? got == null : want.equals(got);
        if (!equal) throw new AssertionError(what + ": got " + got + ", want " + want);
    }

    static byte[] bytes(String s) {
        try {
            return s.getBytes("UTF-8");
        } catch (UnsupportedEncodingException e) {
            throw new AssertionError(e);
        }
    }

    /** What goes in with a codec comes back, and so does what a new client wrote with it. */
    static void values(String codec) throws Exception {
        String topic = "in-" + codec;
        List<ProducerRecord<byte[], byte[]>> sent = new ArrayList<>();
        sent.add(new ProducerRecord<byte[], byte[]>(topic, 0, 1500000000123L, bytes("tombstone"), null));
        sent.add(new ProducerRecord<>(topic, 0, 1500000000124L, new byte[0], new byte[0]));
        sent.add(new ProducerRecord<byte[], byte[]>(topic, 0, 1500000000122L, null, bytes("x")));
        byte[] large = new byte[1000000];
        new java.util.Random(3).nextBytes(large);
        sent.add(new ProducerRecord<byte[], byte[]>(topic, 0, 1500000000125L, null, large));
        for (int i = 0; i < 2000; i++) sent.add(new ProducerRecord<>(topic, 0, 1500000001000L + i, bytes("k" + i), bytes("value " + i)));
        try (KafkaProducer<byte[], byte[]> p = producer("acks", "all", "compression.type", codec, "linger.ms", "5")) {
            List<java.util.concurrent.Future<RecordMetadata>> acks = new ArrayList<>();
            for (ProducerRecord<byte[], byte[]> r : sent) acks.add(p.send(r));
            for (int i = 0; i < sent.size(); i++) same(topic + " acked offset", (long) i, acks.get(i).get().offset());
        }
        List<ConsumerRecord<byte[], byte[]>> got = read(topic, sent.size());
        for (int i = 0; i < sent.size(); i++) {
            same(topic + " offset", (long) i, got.get(i).offset());
            same(topic + " time of " + i, sent.get(i).timestamp(), got.get(i).timestamp());
            same(topic + " key of " + i, sent.get(i).key(), got.get(i).key());
            same(topic + " value of " + i, sent.get(i).value(), got.get(i).value());
        }
        int i = 0;
        for (ConsumerRecord<byte[], byte[]> r : read("new-" + codec, 500)) {
            same("new-" + codec + " key", "key " + i, new String(r.key(), "UTF-8"));
            same("new-" + codec + " value", "value " + i, new String(r.value(), "UTF-8"));
            i++;
        }
        System.out.println("ok " + codec);
    }

    static List<ConsumerRecord<byte[], byte[]>> read(String topic, int records) {
        TopicPartition tp = new TopicPartition(topic, 0);
        List<ConsumerRecord<byte[], byte[]>> all = new ArrayList<>();
        try (KafkaConsumer<byte[], byte[]> c = consumer("enable.auto.commit", "false")) {
            c.assign(Collections.singleton(tp));
            c.seekToBeginning(Collections.singleton(tp));
            long end = System.nanoTime() + 60000000000L;
            while (all.size() < records && System.nanoTime() < end)
                for (ConsumerRecord<byte[], byte[]> r : c.poll(200)) all.add(r);
            c.seekToEnd(Collections.singleton(tp));
            same(topic + " end", (long) records, c.position(tp));
        }
        same(topic + " records", records, all.size());
        return all;
    }

    /** A member of a group with a thread of its own: a poll of these clients waits for the other members. */
    static class Reader extends Thread {
        final KafkaConsumer<byte[], byte[]> consumer;
        final Set<String> seen;
        volatile Set<TopicPartition> has = Collections.emptySet();
        volatile boolean end;
        volatile Throwable failed;

        Reader(String topic, String assignor, Set<String> seen) {
            this.seen = seen;
            consumer = consumer("group.id", topic, "auto.offset.reset", "earliest", "enable.auto.commit", "false", "session.timeout.ms", "10000", "heartbeat.interval.ms", "500", "partition.assignment.strategy", assignor);
            consumer.subscribe(Collections.singletonList(topic));
            start();
        }

        @Override public void run() { // ends with end
            try {
                while (!end) {
                    for (ConsumerRecord<byte[], byte[]> r : consumer.poll(100)) seen.add(new String(r.value(), "UTF-8"));
                    has = new HashSet<>(consumer.assignment());
                    try {
                        consumer.commitSync();
                    } catch (CommitFailedException | RetriableException lost) {
                        // a rebalance came between: the records come again
                    }
                }
            } catch (Throwable t) {
                failed = t;
            }
            consumer.close();
        }

        void leave() throws InterruptedException {
            end = true;
            join();
            if (failed != null) throw new AssertionError("a member failed", failed);
        }
    }

    /** Two members share four partitions, one leaves, the other takes over; the offsets stay. */
    static void group(String assignor) throws Exception {
        String topic = "group-" + assignor.substring(assignor.lastIndexOf('.') + 1);
        Set<String> seen = ConcurrentHashMap.newKeySet();
        Reader a = new Reader(topic, assignor, seen), b = new Reader(topic, assignor, seen);
        put(topic, 0);
        await(topic + ": two and two", seen, 400, a, 2, b, 2);
        Set<TopicPartition> all = new HashSet<>(a.has);
        all.addAll(b.has);
        same(topic + " partitions", 4, all.size());
        b.leave();
        put(topic, 400);
        await(topic + ": four", seen, 800, a, 4, b, -1);
        a.leave();
        Set<String> rest = ConcurrentHashMap.newKeySet();
        Reader c = new Reader(topic, assignor, rest); // goes on where the group stopped
        put(topic, 800);
        await(topic + ": again", rest, 400, c, 4, c, 4);
        for (int i = 800; i < 1200; i++) same(topic + " has value " + i + " after the restart", true, rest.contains("value " + i));
        c.leave();
        try (KafkaConsumer<byte[], byte[]> k = consumer("group.id", topic, "enable.auto.commit", "false")) {
            for (int p = 0; p < 4; p++) same(topic + " committed", 300L, k.committed(new TopicPartition(topic, p)).offset());
        }
        System.out.println("ok " + topic);
    }

    static void await(String what, Set<String> seen, int values, Reader a, int as, Reader b, int bs) throws Exception {
        long end = System.nanoTime() + 60000000000L;
        while (seen.size() < values || a.has.size() != as || bs >= 0 && b.has.size() != bs) {
            if (a.failed != null) throw new AssertionError(what, a.failed);
            if (System.nanoTime() > end) throw new AssertionError(what + ": " + seen.size() + " values of " + values + ", partitions " + a.has + " and " + b.has);
            Thread.sleep(20);
        }
    }

    static void put(String topic, int from) throws Exception {
        try (KafkaProducer<byte[], byte[]> p = producer("acks", "all")) {
            for (int i = from; i < from + 400; i++) p.send(new ProducerRecord<byte[], byte[]>(topic, i % 4, null, bytes("value " + i)));
            p.flush();
        }
    }
}
