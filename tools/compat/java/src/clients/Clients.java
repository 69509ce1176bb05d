import java.util.Arrays;
import java.util.Objects;
import java.util.Properties;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;

/** Self-checking programs on Kafka's Java clients: MODE BOOTSTRAP [MORE...]. Each prints "ok ..." lines and ends with "done", or throws. */
public class Clients {
    public static void main(String[] args) throws Exception {
        String[] more = Arrays.copyOfRange(args, 2, args.length);
        switch (args[0]) {
            case "values": Values.run(args[1]); break;
            case "admin": Admins.run(args[1]); break;
            case "member": Takeover.member(args[1], more[0]); break;
            case "kept": Kept.run(args[1]); break;
            case "transactions": Values.transactions(args[1]); break;
            default: throw new IllegalArgumentException(args[0]);
        }
        System.out.println("done");
        System.exit(0); // what a client left running is not waited for
    }

    static void ok(String format, Object... args) {
        System.out.println("ok " + String.format(format, args));
        System.out.flush();
    }

    static Properties props(String bootstrap, String... keyValues) {
        Properties p = new Properties();
        p.put("bootstrap.servers", bootstrap);
        for (int i = 0; i < keyValues.length; i += 2) p.put(keyValues[i], keyValues[i + 1]);
        return p;
    }

    static void same(String what, Object want, Object got) {
        if (!Objects.deepEquals(want, got)) throw new AssertionError(what + ": got " + show(got) + ", want " + show(want));
    }

    static void holds(String what, boolean that) {
        if (!that) throw new AssertionError(what);
    }

    private static String show(Object o) {
        String s = o instanceof byte[] ? ((byte[]) o).length + " bytes " + Arrays.toString(Arrays.copyOf((byte[]) o, Math.min(20, ((byte[]) o).length))) : String.valueOf(o);
        return s.length() > 400 ? s.substring(0, 400) + "..." : s;
    }

    /** Demands that the call fails with this exception. */
    static Throwable fails(String what, Class<? extends Throwable> with, Callable<?> call) throws Exception {
        try {
            call.call();
        } catch (Exception e) {
            Throwable t = e instanceof ExecutionException ? e.getCause() : e;
            if (!with.isInstance(t)) throw new AssertionError(what + ": failed with " + t + ", want " + with.getName());
            return t;
        }
        throw new AssertionError(what + ": did not fail, want " + with.getName());
    }

    /** Waits until the condition holds. */
    static void until(String what, Callable<Boolean> that) throws Exception {
        long end = System.nanoTime() + 60_000_000_000L;
        while (!that.call()) {
            if (System.nanoTime() > end) throw new AssertionError("not within 60 s: " + what);
            Thread.sleep(50);
        }
    }
}
