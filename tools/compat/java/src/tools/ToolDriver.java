import java.io.*;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs the main methods of Kafka's command line tools one after another in one JVM. A request on standard input is a count of
 * strings and the strings (four bytes of length each): the limit in milliseconds, the text of the tool's standard input, the
 * class, its arguments. The answer on standard output is the exit status, what went to standard output, what went to standard error.
 */
public class ToolDriver {
    /** What the tools' System.out is, once and for all: Scala's Console keeps the one it saw first. */
    static final class Switch extends OutputStream {
        private ByteArrayOutputStream to = new ByteArrayOutputStream();

        @Override public synchronized void write(int b) { to.write(b); }
        @Override public synchronized void write(byte[] b, int off, int len) { to.write(b, off, len); }

        synchronized byte[] take() {
            byte[] all = to.toByteArray();
            to = new ByteArrayOutputStream();
            return all;
        }
    }

    static final class Exited extends Error {
        Exited(int status) { super("exit " + status, null, false, false); }
    }

    static final int TIMED_OUT = -1;
    static volatile Integer status; // the first that the tool under way asked to exit with
    static final List<Runnable> hooks = new ArrayList<>(); // what it wants run at the JVM's end

    public static void main(String[] ignored) throws Exception {
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in));
        DataOutputStream answers = new DataOutputStream(new BufferedOutputStream(new FileOutputStream(FileDescriptor.out)));
        Switch out = new Switch(), err = new Switch();
        System.setOut(new PrintStream(out, true, "UTF-8"));
        System.setErr(new PrintStream(err, true, "UTF-8"));
        Exit.Procedure leave = (code, message) -> {
            if (message != null) System.err.println(message);
            if (status == null) status = code;
            throw new Exited(code);
        };
        Exit.setExitProcedure(leave);
        Exit.setHaltProcedure(leave);
        Exit.setShutdownHookAdder((name, hook) -> { synchronized (hooks) { hooks.add(hook); } });
        while (true) {
            int n;
            try {
                n = in.readInt();
            } catch (EOFException end) {
                Runtime.getRuntime().halt(0);
                return;
            }
            List<String> words = new ArrayList<>();
            for (int i = 0; i < n; i++) words.add(new String(in.readNBytes(in.readInt()), StandardCharsets.UTF_8));
            System.setIn(new ByteArrayInputStream(words.get(1).getBytes(StandardCharsets.UTF_8)));
            int code = run(Long.parseLong(words.get(0)), words.get(2), words.subList(3, n).toArray(new String[0]));
            answers.writeInt(code);
            for (Switch s : new Switch[] {out, err}) {
                byte[] all = s.take();
                answers.writeInt(all.length);
                answers.write(all);
            }
            answers.flush();
        }
    }

    /** Runs the class's main in a thread of its own: a tool that hangs is reported with its stack. */
    static int run(long limit, String name, String[] args) throws InterruptedException {
        status = null;
        Thread t = new Thread(() -> {
            int end = 0;
            try {
                Class.forName(name).getMethod("main", String[].class).invoke(null, (Object) args);
            } catch (InvocationTargetException e) {
                if (!(e.getCause() instanceof Exited)) {
                    e.getCause().printStackTrace();
                    end = 1;
                }
            } catch (Throwable e) {
                e.printStackTrace();
                end = 1;
            }
            if (status == null) status = end;
            List<Runnable> last;
            synchronized (hooks) {
                last = new ArrayList<>(hooks);
                hooks.clear();
            }
            for (Runnable hook : last) hook.run();
        }, name);
        t.setDaemon(true);
        t.start();
        t.join(limit);
        if (!t.isAlive()) return status;
        for (StackTraceElement at : t.getStackTrace()) System.err.println("\tat " + at);
        return TIMED_OUT;
    }
}
