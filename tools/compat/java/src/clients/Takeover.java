import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * One member in each of several groups, until standard input ends. It prints "has GROUP PARTITIONS" whenever its assignment changes
 * and, before it commits, "read GROUP VALUE" for each record. "again GROUP" on standard input closes the member and starts it anew
 * under its name: "generation GROUP BEFORE AFTER".
 */
class Takeover {
    static final String[][] GROUPS = {
        {"range", "partition.assignment.strategy", "org.apache.kafka.clients.consumer.RangeAssignor"},
        {"roundrobin", "partition.assignment.strategy", "org.apache.kafka.clients.consumer.RoundRobinAssignor"},
        {"sticky", "partition.assignment.strategy", "org.apache.kafka.clients.consumer.StickyAssignor"},
        {"cooperative", "partition.assignment.strategy", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"},
        {"static", "group.instance.id", "NAME"},
        {"new-uniform", "group.protocol", "consumer"},
        {"new-range", "group.protocol", "consumer", "group.remote.assignor", "range"},
        {"new-static", "group.protocol", "consumer", "group.instance.id", "NAME"},
    };

    static volatile boolean failed;

    static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    static void member(String bootstrap, String name) throws Exception {
        List<Member> members = new ArrayList<>();
        for (String[] g : GROUPS) {
            Member m = new Member(bootstrap, name, g);
            members.add(m);
            m.start();
        }
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null;)
            for (Member m : members)
                if (line.equals("again " + m.group[0])) m.again();
        for (Member m : members) m.end();
        if (failed) System.exit(1);
    }

    static class Member {
        final String[] group;
        final Properties set;
        private KafkaConsumer<String, String> consumer;
        private Thread thread;
        private int generation = -1;

        Member(String bootstrap, String name, String[] group) {
            this.group = group;
            boolean next = String.join(" ", group).contains("group.protocol");
            set = Clients.props(bootstrap, "group.id", group[0], "client.id", name + "-" + group[0], "auto.offset.reset", "earliest", "enable.auto.commit", "false", "metadata.max.age.ms", "1000", "max.poll.records", "50");
            if (!next) {
                set.put("session.timeout.ms", "6000");
                set.put("heartbeat.interval.ms", "1000");
            }
            for (int i = 1; i < group.length; i += 2) set.put(group[i], group[i + 1].replace("NAME", name));
        }

        void start() {
            consumer = new KafkaConsumer<>(set, new StringDeserializer(), new StringDeserializer());
            consumer.subscribe(List.of("shared"), new ConsumerRebalanceListener() {
                @Override public void onPartitionsAssigned(Collection<TopicPartition> p) { say("has " + group[0] + " " + consumer.assignment().size()); }
                @Override public void onPartitionsRevoked(Collection<TopicPartition> p) { }
            });
            thread = new Thread(this::poll, group[0]); // ends by end()
            thread.start();
        }

        private void poll() {
            try {
                while (true) {
                    ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(100));
                    for (ConsumerRecord<String, String> r : records) say("read " + group[0] + " " + r.value());
                    try {
                        if (!records.isEmpty()) consumer.commitSync();
                    } catch (CommitFailedException | RebalanceInProgressException lost) {
                        // the partitions have moved: the records come again elsewhere
                    }
                    generation = consumer.groupMetadata().generationId();
                }
            } catch (WakeupException end) {
                // asked to end
            } catch (Throwable t) {
                failed = true;
                say("failed " + group[0] + " " + t);
                t.printStackTrace();
            }
            consumer.close(Duration.ofSeconds(10));
        }

        void end() throws InterruptedException {
            consumer.wakeup();
            thread.join();
        }

        /** A static member comes back under its name before its session ends: it gets what it had, and nobody rebalances. */
        void again() throws Exception {
            int before = generation;
            end();
            generation = -1;
            start();
            Clients.until(group[0] + " is back", () -> generation >= 0);
            say("generation " + group[0] + " " + before + " " + generation);
        }
    }
}
