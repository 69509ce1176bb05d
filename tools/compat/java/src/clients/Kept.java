import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * An idempotent producer and a group's member work on while the broker is killed and started again from outside; "at N" tells how
 * many records are committed. A line on standard input ends it; then acked records are there, each once and in order, and the
 * group's offset is what was last committed.
 */
class Kept {
    static final TopicPartition TP = new TopicPartition("kept", 0);

    static void run(String bootstrap) throws Exception {
        try (Admin admin = Admin.create(Clients.props(bootstrap))) {
            admin.createTopics(List.of(new NewTopic("kept", 1, (short) 1))).all().get();
        }
        AtomicBoolean end = new AtomicBoolean();
        AtomicReference<Throwable> error = new AtomicReference<>();
        AtomicLong acked = new AtomicLong(), committed = new AtomicLong();
        Thread producing = new Thread(() -> { // ends with end
            try (KafkaProducer<String, String> p = new KafkaProducer<>(Clients.props(bootstrap, "enable.idempotence", "true", "acks", "all", "reconnect.backoff.max.ms", "100", "batch.size", "1000"),
                    new StringSerializer(), new StringSerializer())) {
                for (long n = 0; !end.get() && error.get() == null; n++) {
                    p.send(new ProducerRecord<>("kept", 0, null, Long.toString(n)), (m, e) -> {
                        if (e != null) error.compareAndSet(null, e);
                        else acked.incrementAndGet();
                    });
                    if (n % 20 == 0) Thread.sleep(2);
                }
            } catch (Throwable t) {
                error.compareAndSet(null, t);
            }
        });
        Thread consuming = new Thread(() -> { // ends with end
            try (KafkaConsumer<String, String> c = consumer(bootstrap)) {
                c.subscribe(List.of("kept"));
                while (!end.get()) {
                    for (ConsumerRecord<String, String> r : c.poll(Duration.ofMillis(100)))
                        Clients.same("value at " + r.offset(), Long.toString(r.offset()), r.value());
                    if (c.assignment().isEmpty()) continue;
                    long next = c.position(TP);
                    try {
                        c.commitSync(Map.of(TP, new OffsetAndMetadata(next)));
                        committed.set(next);
                        Clients.ok("at %d", next);
                    } catch (RetriableException | CommitFailedException again) {
                        // the broker is away, or the group began anew
                    }
                }
            } catch (Throwable t) {
                error.compareAndSet(null, t);
            }
        });
        producing.start();
        consuming.start();
        new BufferedReader(new InputStreamReader(System.in)).readLine();
        end.set(true);
        producing.join();
        consuming.join();
        if (error.get() != null) throw new Exception(error.get());
        try (KafkaConsumer<String, String> c = consumer(bootstrap)) {
            Clients.same("committed offset", committed.get(), c.committed(Set.of(TP)).get(TP).offset());
            c.assign(List.of(TP));
            long last = c.endOffsets(List.of(TP)).get(TP);
            Clients.same("records in the log and acked", acked.get(), last);
            Clients.same("the group goes on where it committed", committed.get(), c.position(TP));
            c.seekToBeginning(List.of(TP));
            long next = 0;
            while (next < last)
                for (ConsumerRecord<String, String> r : c.poll(Duration.ofMillis(200))) {
                    Clients.same("offset", next, r.offset());
                    Clients.same("value", Long.toString(next), r.value());
                    next++;
                }
        }
        Clients.ok("kept %d", acked.get());
    }

    static KafkaConsumer<String, String> consumer(String bootstrap) {
        return new KafkaConsumer<>(Clients.props(bootstrap, "group.id", "keeper", "auto.offset.reset", "earliest", "enable.auto.commit", "false", "session.timeout.ms", "6000", "heartbeat.interval.ms", "1000",
            "reconnect.backoff.max.ms", "100", "default.api.timeout.ms", "20000"), new StringDeserializer(), new StringDeserializer());
    }
}
