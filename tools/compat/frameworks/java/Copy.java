// Flink in one JVM (its local mini-cluster): Kafka source, a map to upper case, Kafka sink. The job is cancelled when its group has
// committed the end of the source's topic, which Flink does after a checkpoint, so after the sink has all records before.
// Arguments: BOOTSTRAP FROM TO GROUP GUARANTEE FAIL; with FAIL above 0 the map throws once, at that record at the earliest
// and not before a checkpoint is complete, so that the job goes back to its last checkpoint.
// Prints "ok", or "error ..." with the causes, and exits with 0 or 1.
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.api.common.state.CheckpointListener;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.RestartStrategyOptions;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.common.TopicPartition;

public class Copy {
    public static void main(String[] args) throws Exception {
        String bootstrap = args[0], from = args[1], to = args[2], group = args[3];
        DeliveryGuarantee guarantee = DeliveryGuarantee.valueOf(args[4]);
        long fail = Long.parseLong(args[5]);

        Configuration c = new Configuration();
        c.set(RestartStrategyOptions.RESTART_STRATEGY, fail > 0 ? "fixed-delay" : "none");
        c.set(RestartStrategyOptions.RESTART_STRATEGY_FIXED_DELAY_ATTEMPTS, 1);
        var env = StreamExecutionEnvironment.createLocalEnvironment(2, c);
        env.enableCheckpointing(200);
        var source = KafkaSource.<String>builder().setBootstrapServers(bootstrap).setTopics(from).setGroupId(group)
            .setStartingOffsets(OffsetsInitializer.earliest())
            .setValueOnlyDeserializer(new SimpleStringSchema()).build();
        var sink = KafkaSink.<String>builder().setBootstrapServers(bootstrap)
            .setDeliveryGuarantee(guarantee).setTransactionalIdPrefix(group)
            .setProperty("transaction.timeout.ms", "60000") // Flink's default, an hour, is more than any broker's default allows
            .setProperty("max.block.ms", "10000")
            .setRecordSerializer(KafkaRecordSerializationSchema.builder().setTopic(to).setValueSerializationSchema(new SimpleStringSchema()).build())
            .build();
        env.fromSource(source, WatermarkStrategy.noWatermarks(), "in").map(new Upper(fail)).sinkTo(sink);
        JobClient job = env.executeAsync("copy");
        var result = job.getJobExecutionResult();
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            while (!committedToTheEnd(admin, from, group)) {
                if (result.isDone()) {
                    result.get(); // throws what ended it
                    throw new IllegalStateException("the job ended before its source was read");
                }
                Thread.sleep(100);
            }
            job.cancel().get();
        } catch (Exception e) {
            StringBuilder b = new StringBuilder();
            for (Throwable t = e; t != null; t = t.getCause()) {
                b.append(t.toString().replace('\n', ' ')).append(t.getCause() == null ? "" : " <- ");
            }
            System.out.println("error " + b);
            System.exit(1);
        }
        if (fail > 0 && !Upper.failed.get()) {
            System.out.println("error the map never failed: no checkpoint was complete before the end");
            System.exit(1);
        }
        System.out.println("ok");
        System.exit(0);
    }

    static boolean committedToTheEnd(Admin admin, String topic, String group) throws Exception {
        var ask = new HashMap<TopicPartition, OffsetSpec>();
        for (var p : admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions()) {
            ask.put(new TopicPartition(topic, p.partition()), OffsetSpec.latest());
        }
        var committed = admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
        for (var end : admin.listOffsets(ask).all().get().entrySet()) {
            var c = committed.get(end.getKey());
            if (c == null || c.offset() != end.getValue().offset()) {
                return false;
            }
        }
        return true;
    }

    /** The map; its state is static, since source and sink are in this one JVM. */
    static class Upper extends RichMapFunction<String, String> implements CheckpointListener {
        static final AtomicLong seen = new AtomicLong();
        static final AtomicBoolean checkpointed = new AtomicBoolean(), failed = new AtomicBoolean();
        final long fail;

        Upper(long fail) {
            this.fail = fail;
        }

        public String map(String v) throws Exception {
            if (fail > 0) {
                long n = seen.incrementAndGet();
                if (n % 50 == 0) {
                    Thread.sleep(5); // slow enough for several checkpoints
                }
                if (n >= fail && checkpointed.get() && failed.compareAndSet(false, true)) {
                    throw new RuntimeException("thrown on purpose at record " + n);
                }
            }
            return v.toUpperCase(Locale.ROOT);
        }

        public void notifyCheckpointComplete(long id) {
            checkpointed.set(true);
        }
    }
}
