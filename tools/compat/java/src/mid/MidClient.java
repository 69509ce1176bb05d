import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.header.Header;

/** What clients from 1.1 on have besides: idempotence, headers, an admin client. */
public class MidClient {
    public static void main(String[] args) throws Exception {
        OldClient.bootstrap = args[0];
        try (AdminClient admin = AdminClient.create(OldClient.props())) {
            admin.createTopics(Collections.singleton(new NewTopic("headed", 1, (short) 1).configs(Collections.singletonMap("retention.ms", "-1")))).all().get(30, TimeUnit.SECONDS);
            OldClient.same("cluster", 1, admin.describeCluster().nodes().get(30, TimeUnit.SECONDS).size());
            OldClient.same("partitions", 1, admin.describeTopics(Collections.singleton("headed")).all().get(30, TimeUnit.SECONDS).get("headed").partitions().size());
        }
        List<Future<RecordMetadata>> acks = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> p = OldClient.producer("enable.idempotence", "true", "acks", "all", "batch.size", "1000")) {
            for (int i = 0; i < 3000; i++) {
                ProducerRecord<byte[], byte[]> r = new ProducerRecord<byte[], byte[]>("headed", 0, null, OldClient.bytes("value " + i));
                r.headers().add("n", OldClient.bytes("" + i)).add("n", null).add("", new byte[0]);
                acks.add(p.send(r));
            }
        }
        int i = 0;
        for (ConsumerRecord<byte[], byte[]> r : OldClient.read("headed", 3000)) {
            OldClient.same("offset acked", (long) i, acks.get(i).get().offset());
            OldClient.same("value", "value " + i, new String(r.value(), "UTF-8"));
            Header[] h = r.headers().toArray();
            OldClient.same("headers", 3, h.length);
            OldClient.same("header", "" + i, new String(h[0].value(), "UTF-8"));
            OldClient.same("null header", null, h[1].value());
            OldClient.same("nameless header", 0, h[2].key().length() + h[2].value().length);
            i++;
        }
        System.out.println("ok idempotent producer, headers, admin client");
        OldClient.main(args);
    }
}
