import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import kafka.api.ConsumerMetadataRequest;
import kafka.api.FetchRequestBuilder;
import kafka.api.PartitionOffsetRequestInfo;
import kafka.common.OffsetAndMetadata;
import kafka.common.OffsetMetadataAndError;
import kafka.common.TopicAndPartition;
import kafka.javaapi.ConsumerMetadataResponse;
import kafka.javaapi.FetchResponse;
import kafka.javaapi.OffsetCommitRequest;
import kafka.javaapi.OffsetCommitResponse;
import kafka.javaapi.OffsetFetchRequest;
import kafka.javaapi.OffsetRequest;
import kafka.javaapi.PartitionMetadata;
import kafka.javaapi.TopicMetadata;
import kafka.javaapi.TopicMetadataRequest;
import kafka.javaapi.consumer.SimpleConsumer;
import kafka.javaapi.producer.Producer;
import kafka.message.MessageAndOffset;
import kafka.network.BlockingChannel;
import kafka.producer.KeyedMessage;
import kafka.producer.ProducerConfig;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * The clients of 0.8.2: the new producer, the old (Scala) producer, and SimpleConsumer, which reads a partition from a broker; its
 * high-level consumer needs ZooKeeper. HOST PORT CODECS; the topics in-CODEC, scala-CODEC and new-CODEC are there.
 */
public class Client08 {
    static SimpleConsumer consumer;
    static String bootstrap;

    public static void main(String[] args) throws Exception {
        bootstrap = args[0] + ":" + args[1];
        consumer = new SimpleConsumer(args[0], Integer.parseInt(args[1]), 30000, 1 << 20, "simple");
        for (String codec : args[2].split(",")) {
            metadata("in-" + codec);
            newProducer(codec);
            scalaProducer(codec);
            int i = 0;
            for (MessageAndOffset m : read("new-" + codec, 500)) same("new-" + codec, "value " + i++, new String(bytes(m.message().payload()), "UTF-8"));
            System.out.println("ok " + codec);
        }
        offsets();
        consumer.close();
        System.out.println("done");
        System.exit(0);
    }

    static void same(String what, Object want, Object got) {
        boolean equal = want instanceof byte[] && got instanceof byte[] ? Arrays.equals((byte[]) want, (byte[]) got) : want == null ? got == null : want.equals(got);
        if (!equal) throw new AssertionError(what + ": got " + got + ", want " + want);
    }

    static byte[] bytes(ByteBuffer b) {
        if (b == null) return null;
        byte[] v = new byte[b.remaining()];
        b.get(v);
        return v;
    }

    static void metadata(String topic) {
        List<TopicMetadata> all = consumer.send(new TopicMetadataRequest(Collections.singletonList(topic))).topicsMetadata();
        same("topics", 1, all.size());
        same("topic", topic, all.get(0).topic());
        PartitionMetadata p = all.get(0).partitionsMetadata().get(0);
        same("leader", bootstrap, p.leader().host() + ":" + p.leader().port());
        same("replicas", 1, p.replicas().size());
    }

    static void newProducer(String codec) throws Exception {
        String topic = "in-" + codec;
        List<ProducerRecord<byte[], byte[]>> sent = new ArrayList<>();
        sent.add(new ProducerRecord<byte[], byte[]>(topic, 0, "tombstone".getBytes("UTF-8"), null));
        sent.add(new ProducerRecord<>(topic, 0, new byte[0], new byte[0]));
        sent.add(new ProducerRecord<byte[], byte[]>(topic, 0, null, "x".getBytes("UTF-8")));
        byte[] large = new byte[1000000];
        new java.util.Random(3).nextBytes(large);
        sent.add(new ProducerRecord<byte[], byte[]>(topic, 0, null, large));
        for (int i = 0; i < 2000; i++) sent.add(new ProducerRecord<>(topic, 0, ("k" + i).getBytes("UTF-8"), ("value " + i).getBytes("UTF-8")));
        Properties p = new Properties();
        p.put("bootstrap.servers", bootstrap);
        p.put("acks", "all");
        p.put("compression.type", codec);
        p.put("linger.ms", "5");
        List<Future<RecordMetadata>> acks = new ArrayList<>();
        KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(p, new ByteArraySerializer(), new ByteArraySerializer());
        for (ProducerRecord<byte[], byte[]> r : sent) acks.add(producer.send(r));
        for (int i = 0; i < sent.size(); i++) same(topic + " acked offset", (long) i, acks.get(i).get().offset());
        producer.close();
        List<MessageAndOffset> got = read(topic, sent.size());
        for (int i = 0; i < sent.size(); i++) {
            same(topic + " key of " + i, sent.get(i).key(), bytes(got.get(i).message().key()));
            same(topic + " value of " + i, sent.get(i).value(), bytes(got.get(i).message().payload()));
        }
    }

    static void scalaProducer(String codec) throws Exception {
        Properties p = new Properties();
        p.put("metadata.broker.list", bootstrap);
        p.put("serializer.class", "kafka.serializer.StringEncoder");
        p.put("request.required.acks", "-1");
        p.put("compression.codec", codec);
        Producer<String, String> producer = new Producer<>(new ProducerConfig(p));
        for (int i = 0; i < 1000; i += 100) {
            List<KeyedMessage<String, String>> some = new ArrayList<>();
            for (int k = i; k < i + 100; k++) some.add(new KeyedMessage<>("scala-" + codec, "k" + k, "value " + k));
            producer.send(some);
        }
        producer.close();
        int i = 0;
        for (MessageAndOffset m : read("scala-" + codec, 1000)) {
            same("scala-" + codec + " key", "k" + i, new String(bytes(m.message().key()), "UTF-8"));
            same("scala-" + codec + " value", "value " + i++, new String(bytes(m.message().payload()), "UTF-8"));
        }
    }

    static List<MessageAndOffset> read(String topic, int records) {
        List<MessageAndOffset> all = new ArrayList<>();
        long end = System.nanoTime() + 60000000000L;
        while (all.size() < records && System.nanoTime() < end) {
            FetchResponse f = consumer.fetch(new FetchRequestBuilder().clientId("simple").addFetch(topic, 0, all.size(), 2000000).maxWait(200).minBytes(1).build());
            same(topic + " error", (short) 0, f.errorCode(topic, 0));
            for (MessageAndOffset m : f.messageSet(topic, 0)) {
                if (m.offset() < all.size()) continue; // a compressed set comes whole
                same(topic + " offset", (long) all.size(), m.offset());
                all.add(m);
            }
        }
        same(topic + " records", records, all.size());
        same(topic + " first offset", 0L, offset(topic, kafka.api.OffsetRequest.EarliestTime()));
        same(topic + " end", (long) records, offset(topic, kafka.api.OffsetRequest.LatestTime()));
        return all;
    }

    static long offset(String topic, long time) {
        Map<TopicAndPartition, PartitionOffsetRequestInfo> ask = new HashMap<>();
        ask.put(new TopicAndPartition(topic, 0), new PartitionOffsetRequestInfo(time, 1));
        return consumer.getOffsetsBefore(new OffsetRequest(ask, kafka.api.OffsetRequest.CurrentVersion(), "simple")).offsets(topic, 0)[0];
    }

    /** A group's offset is kept by the broker. */
    static void offsets() throws Exception {
        BlockingChannel channel = new BlockingChannel(consumer.host(), consumer.port(), BlockingChannel.UseDefaultBufferSize(), BlockingChannel.UseDefaultBufferSize(), 30000);
        channel.connect();
        ConsumerMetadataResponse coordinator;
        long end = System.nanoTime() + 60000000000L;
        do { // made by the first question
            channel.send(new ConsumerMetadataRequest("group08", ConsumerMetadataRequest.CurrentVersion(), 3, "simple"));
            coordinator = ConsumerMetadataResponse.readFrom(channel.receive().buffer());
        } while (coordinator.errorCode() == 15 && System.nanoTime() < end);
        channel.disconnect();
        same("coordinator", "0 " + bootstrap, coordinator.errorCode() + " " + coordinator.coordinator().host() + ":" + coordinator.coordinator().port());
        TopicAndPartition tp = new TopicAndPartition("in-none", 0);
        Map<TopicAndPartition, OffsetAndMetadata> at = new LinkedHashMap<>();
        at.put(tp, new OffsetAndMetadata(42, "note", -1L));
        OffsetCommitResponse committed;
        do { // it may be loading still
            committed = consumer.commitOffsets(new OffsetCommitRequest("group08", at, 1, "simple", (short) 1));
        } while ((short) committed.errors().get(tp) == 14 && System.nanoTime() < end);
        same("commit's error", (short) 0, committed.errors().get(tp));
        OffsetMetadataAndError got = consumer.fetchOffsets(new OffsetFetchRequest("group08", Collections.singletonList(tp), (short) 1, 2, "simple")).offsets().get(tp);
        same("offset fetched", "42 note 0", got.offset() + " " + got.metadata() + " " + got.error());
        System.out.println("ok offsets of a group");
    }
}
