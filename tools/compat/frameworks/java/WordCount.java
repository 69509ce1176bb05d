// A word count as one would write it: lines in, a repartition topic by word, a RocksDB store with its changelog, counts out.
// It is led over standard input, a command a line, and gives one line of answer to each, "ok ..." or "error ...":
//   start   runs the topology and waits until it is RUNNING; answers how many records each store was restored from
//   store   answers the store's content, a word in base64 and its count at a time
//   close   stops the topology, as the end of the input does: its members stay in the group until their session is over
//   leave   stops it and leaves the group
// Arguments: BOOTSTRAP APPLICATION STATE_DIR and Streams settings as key=value.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Arrays;
import java.util.Base64;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.CloseOptions;
import org.apache.kafka.streams.CloseOptions.GroupMembershipOperation;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.QueryableStoreTypes;

public class WordCount {
    static final Properties settings = new Properties();
    static KafkaStreams streams;
    static final AtomicLong restored = new AtomicLong();
    static final AtomicReference<Throwable> fault = new AtomicReference<>();

    public static void main(String[] args) throws Exception {
        settings.put("bootstrap.servers", args[0]);
        settings.put("application.id", args[1]);
        settings.put("state.dir", args[2]);
        for (String a : Arrays.copyOfRange(args, 3, args.length)) {
            settings.put(a.substring(0, a.indexOf('=')), a.substring(a.indexOf('=') + 1));
        }
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null;) {
            String answer;
            try {
                answer = "ok " + act(line);
            } catch (Throwable e) {
                answer = "error " + chain(e);
            }
            System.out.println(answer);
        }
        if (streams != null) {
            streams.close(Duration.ofSeconds(20));
        }
    }

    static Topology topology() {
        StreamsBuilder b = new StreamsBuilder();
        b.stream("lines", Consumed.with(Serdes.String(), Serdes.String()))
            .flatMapValues(line -> Arrays.asList(line.split(" ", -1)))
            .groupBy((key, word) -> word, Grouped.with("by-word", Serdes.String(), Serdes.String()))
            .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("counts").withCachingDisabled())
            .toStream().to("counts", Produced.with(Serdes.String(), Serdes.Long()));
        return b.build();
    }

    static String act(String command) throws Throwable {
        switch (command) {
            case "start": return start();
            case "store": return store();
            case "close":
            case "leave":
                boolean closed = streams.close(CloseOptions.timeout(Duration.ofSeconds(60)).withGroupMembershipOperation(
                    command.equals("leave") ? GroupMembershipOperation.LEAVE_GROUP : GroupMembershipOperation.REMAIN_IN_GROUP));
                streams = null;
                if (!closed) {
                    throw new IllegalStateException("the threads did not end within 60 s");
                }
                return "";
            default: throw new IllegalArgumentException(command);
        }
    }

    static String start() throws Throwable {
        restored.set(0);
        streams = new KafkaStreams(topology(), settings);
        streams.setUncaughtExceptionHandler(e -> {
            fault.compareAndSet(null, e);
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.setGlobalStateRestoreListener(new StateRestoreListener() {
            public void onRestoreStart(TopicPartition p, String store, long from, long to) {}
            public void onBatchRestored(TopicPartition p, String store, long end, long n) {}
            public void onRestoreEnd(TopicPartition p, String store, long n) { restored.addAndGet(n); }
        });
        streams.start();
        while (streams.state() != KafkaStreams.State.RUNNING) {
            if (fault.get() != null) {
                throw fault.get();
            }
            Thread.sleep(20);
        }
        return Long.toString(restored.get());
    }

    static String store() throws Throwable {
        if (fault.get() != null) {
            throw fault.get();
        }
        StringBuilder b = new StringBuilder();
        var counts = streams.store(StoreQueryParameters.fromNameAndType("counts", QueryableStoreTypes.<String, Long>keyValueStore()));
        try (var all = counts.all()) {
            while (all.hasNext()) {
                var kv = all.next();
                b.append(Base64.getEncoder().encodeToString(kv.key.getBytes("UTF-8"))).append('=').append(kv.value).append(';');
            }
        }
        return b.toString();
    }

    /** An exception with its causes in one line. */
    static String chain(Throwable e) {
        StringBuilder b = new StringBuilder();
        for (; e != null; e = e.getCause()) {
            b.append(e.toString().replace('\n', ' ')).append(e.getCause() == null ? "" : " <- ");
        }
        return b.toString();
    }
}
