// Points ZooKeeper's own JUnit tests at another server. Those tests start a server in their JVM through
// -Dzookeeper.serverCnxnFactory; this one listens on the port that the test chose and passes every byte to -Dzk.target.
// The in-process server still starts (the tests look for its JMX beans) but nobody talks to it.
// Start the target with extendedTypesEnabled=true, 4lw.commands.whitelist=* and a DigestAuthenticationProvider.superDigest.
// Before each test that brings a new data directory, EVERY znode of the target outside /zookeeper is deleted.
import java.io.*;
import java.net.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.zookeeper.*;
import org.apache.zookeeper.server.*;

public class ForwardingCnxnFactory extends ServerCnxnFactory {
    private static String cleanedFor;
    private final String[] target = System.getProperty("zk.target").split(":");
    private final Set<Socket> open = ConcurrentHashMap.newKeySet();
    private InetSocketAddress address;
    private ServerSocket listener;
    private int max;

    @Override public void configure(InetSocketAddress addr, int maxcc, int backlog, boolean secure) throws IOException {
        address = addr; max = maxcc;
        listener = new ServerSocket();
        listener.setReuseAddress(true);
        listener.bind(addr);
    }

    @Override public void startup(ZooKeeperServer zks, boolean startServer) throws IOException, InterruptedException {
        setZooKeeperServer(zks);
        if (startServer) { zks.startdata(); zks.startup(); }
        String dir = String.valueOf(zks.getTxnLogFactory() == null ? null : zks.getTxnLogFactory().getSnapDir());
        if (!dir.equals(cleanedFor)) { clean(); cleanedFor = dir; }
        start();
    }

    @Override public void start() {
        ServerSocket l = listener;
        Thread t = new Thread(() -> {
            while (!l.isClosed())
                try {
                    Socket in = l.accept();
                    Socket out = new Socket(target[0], Integer.parseInt(target[1]));
                    in.setTcpNoDelay(true); out.setTcpNoDelay(true);
                    open.add(in); open.add(out);
                    AtomicInteger halves = new AtomicInteger();
                    pump(in, out, halves); pump(out, in, halves);
                } catch (IOException closed) { }
        }, "forward-accept");
        t.setDaemon(true);
        t.start();
    }

    private void pump(Socket from, Socket to, AtomicInteger halves) {
        Thread t = new Thread(() -> {
            byte[] b = new byte[65536];
            try {
                for (int n; (n = from.getInputStream().read(b)) >= 0; ) to.getOutputStream().write(b, 0, n);
                to.shutdownOutput(); // four-letter words half-close before they read the answer
                if (halves.incrementAndGet() < 2) return;
            } catch (IOException closed) { }
            close(from); close(to);
        }, "forward");
        t.setDaemon(true);
        t.start();
    }

    private void close(Socket s) { open.remove(s); try { s.close(); } catch (IOException ignored) { } }

    private void clean() throws IOException, InterruptedException {
        CountDownLatch up = new CountDownLatch(1);
        try (ZooKeeper zk = new ZooKeeper(target[0] + ":" + target[1], 10000, e -> up.countDown())) {
            if (!up.await(10, TimeUnit.SECONDS)) throw new IOException("no server at " + target[0] + ":" + target[1]);
            String auth = System.getProperty("zk.auth"); // user:password of the target's super user; tests leave nodes that nobody else may delete
            if (auth != null) zk.addAuthInfo("digest", auth.getBytes());
            for (String c : zk.getChildren("/", false)) if (!c.equals("zookeeper")) ZKUtil.deleteRecursive(zk, "/" + c);
            for (String c : zk.getChildren("/zookeeper/quota", false)) ZKUtil.deleteRecursive(zk, "/zookeeper/quota/" + c);
            zk.setACL("/", ZooDefs.Ids.OPEN_ACL_UNSAFE, -1);
        } catch (KeeperException e) { throw new IOException(e); }
    }

    @Override public void shutdown() {
        try { if (listener != null) listener.close(); } catch (IOException ignored) { }
        for (Socket s : open) close(s);
        if (zkServer != null) zkServer.shutdown();
    }

    @Override public void closeAll(ServerCnxn.DisconnectReason r) { for (Socket s : open) close(s); }
    @Override public boolean closeSession(long id, ServerCnxn.DisconnectReason r) { return false; }
    @Override public void join() { }
    @Override public int getLocalPort() { return listener.getLocalPort(); }
    @Override public InetSocketAddress getLocalAddress() { return address; }
    @Override public Iterable<ServerCnxn> getConnections() { return cnxns; }
    @Override public void reconfigure(InetSocketAddress a) { throw new UnsupportedOperationException(); }
    @Override public int getMaxClientCnxnsPerHost() { return max; }
    @Override public void setMaxClientCnxnsPerHost(int m) { max = m; }
    @Override public int getSocketListenBacklog() { return 0; }
    @Override public void resetAllConnectionStats() { }
    @Override public Iterable<Map<String, Object>> getAllConnectionInfo(boolean brief) { return List.of(); }
}
