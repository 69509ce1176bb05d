import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/** Writes records with times of the caller's: BOOTSTRAP, then TOPIC PARTITION TIMESTAMP VALUE for each, each in a batch of its own. */
public class Fill {
    public static void main(String[] args) throws Exception {
        Properties p = new Properties();
        p.put("bootstrap.servers", args[0]);
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(p, new StringSerializer(), new StringSerializer())) {
            for (int i = 1; i < args.length; i += 4)
                producer.send(new ProducerRecord<>(args[i], Integer.parseInt(args[i + 1]), Long.parseLong(args[i + 2]), null, args[i + 3])).get();
        }
    }
}
