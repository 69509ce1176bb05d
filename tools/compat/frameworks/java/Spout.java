// Storm in one JVM (its local cluster): a Kafka spout, at least once, and a bolt that collects.
// Arguments: BOOTSTRAP TOPIC GROUP COUNT FILE. It ends when COUNT different (partition, offset) pairs were collected and the
// group has committed the topic's end; then FILE holds a line "partition offset base64-of-the-value" for each record that the bolt got.
// Prints "ok" and exits with 0, or "error ..." and 1.
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.Map;
import java.util.Properties;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.kafka.clients.admin.Admin;
import org.apache.storm.Config;
import org.apache.storm.LocalCluster;
import org.apache.storm.kafka.spout.FirstPollOffsetStrategy;
import org.apache.storm.kafka.spout.KafkaSpout;
import org.apache.storm.kafka.spout.KafkaSpoutConfig;
import org.apache.storm.topology.BasicOutputCollector;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.TopologyBuilder;
import org.apache.storm.topology.base.BaseBasicBolt;
import org.apache.storm.tuple.Tuple;

public class Spout {
    static final Queue<String> collected = new ConcurrentLinkedQueue<>();
    static final Set<String> places = java.util.concurrent.ConcurrentHashMap.newKeySet();

    public static void main(String[] args) throws Exception {
        String bootstrap = args[0], topic = args[1], group = args[2];
        int count = Integer.parseInt(args[3]);
        TopologyBuilder b = new TopologyBuilder();
        b.setSpout("spout", new KafkaSpout<>(KafkaSpoutConfig.builder(bootstrap, topic)
            .setProp("group.id", group)
            .setProcessingGuarantee(KafkaSpoutConfig.ProcessingGuarantee.AT_LEAST_ONCE)
            .setFirstPollOffsetStrategy(FirstPollOffsetStrategy.UNCOMMITTED_EARLIEST)
            .setOffsetCommitPeriodMs(500).build()), 2);
        b.setBolt("collect", new Collect(), 2).shuffleGrouping("spout");
        Config c = new Config();
        c.setNumAckers(1);
        // the local cluster's own ZooKeeper gives sessions of 40 s at most; a slow machine needs them
        LocalCluster cluster = new LocalCluster.Builder().withDaemonConf(Map.of(
            Config.STORM_ZOOKEEPER_SESSION_TIMEOUT, 40_000, Config.STORM_ZOOKEEPER_CONNECTION_TIMEOUT, 40_000)).build();
        cluster.submitTopology("collect", c, b.createTopology());
        long end = System.currentTimeMillis() + 180_000;
        while (places.size() < count || committed(bootstrap, group) < count) {
            if (System.currentTimeMillis() > end) {
                System.out.println("error after 180 s " + places.size() + " of " + count + " records were collected and " + committed(bootstrap, group) + " committed");
                Runtime.getRuntime().halt(1);
            }
            Thread.sleep(200);
        }
        Files.write(Path.of(args[4]), collected, StandardCharsets.US_ASCII);
        System.out.println("ok");
        Runtime.getRuntime().halt(0); // closing the cluster takes seconds and, on a slow machine, fails
    }

    /** The sum of the group's committed offsets. */
    static long committed(String bootstrap, String group) throws Exception {
        Properties p = new Properties();
        p.put("bootstrap.servers", bootstrap);
        try (Admin admin = Admin.create(p)) {
            long sum = 0;
            for (var o : admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().values()) {
                sum += o == null ? 0 : o.offset();
            }
            return sum;
        }
    }

    static class Collect extends BaseBasicBolt {
        public void execute(Tuple t, BasicOutputCollector out) {
            String place = t.getIntegerByField("partition") + " " + t.getLongByField("offset");
            collected.add(place + " " + Base64.getEncoder().encodeToString(t.getStringByField("value").getBytes(StandardCharsets.UTF_8)));
            places.add(place);
        }

        public void declareOutputFields(OutputFieldsDeclarer d) {}
    }
}
