import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Members of groups, held while tools look at them. "join KEY=VALUE... -- TOPIC" starts a consumer with these settings and returns
 * once it has partitions; "leave" closes them all.
 */
public class Member {
    static final List<KafkaConsumer<String, String>> consumers = new ArrayList<>();
    static final List<Thread> threads = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        if (args[0].equals("leave")) {
            for (KafkaConsumer<String, String> c : consumers) c.wakeup();
            for (Thread t : threads) t.join();
            consumers.clear();
            threads.clear();
            return;
        }
        Properties p = new Properties();
        int i = 1;
        for (; !args[i].equals("--"); i++) p.put(args[i].substring(0, args[i].indexOf('=')), args[i].substring(args[i].indexOf('=') + 1));
        KafkaConsumer<String, String> c = new KafkaConsumer<>(p, new StringDeserializer(), new StringDeserializer());
        c.subscribe(Arrays.asList(args).subList(i + 1, args.length));
        while (c.assignment().isEmpty()) c.poll(Duration.ofMillis(50));
        Thread t = new Thread(() -> { // ends by "leave"
            try {
                while (true) c.poll(Duration.ofMillis(100));
            } catch (WakeupException end) {
                c.close();
            }
        });
        t.setDaemon(true);
        t.start();
        consumers.add(c);
        threads.add(t);
    }
}
