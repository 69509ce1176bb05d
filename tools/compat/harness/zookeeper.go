package harness

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// ZooKeeper39 is ZooKeeper with what its own pom leaves out (metrics, snappy, a log binding, what its shell needs), and Curator.
var ZooKeeper39 = Libs{"zookeeper-3.9.5", []string{
	"org.apache.zookeeper:zookeeper:3.9.5", "io.dropwizard.metrics:metrics-core:4.1.12.1", "org.xerial.snappy:snappy-java:1.1.10.7",
	"commons-cli:commons-cli:1.4", "org.slf4j:slf4j-simple:2.0.13", "org.apache.curator:curator-recipes:5.9.0"}}

// ZooKeeper is one Apache ZooKeeper.
type ZooKeeper struct {
	Addr string
	cmd  *exec.Cmd
}

// StartZooKeeper runs a server with its data in the check's folder; it ends with the check. Its tick is short, so that a session may be.
func StartZooKeeper(e *Env) (*ZooKeeper, error) {
	libs, err := NeedJava(e.Cache, ZooKeeper39)
	if err != nil {
		return nil, err
	}
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(e.Dir, "zookeeper-")
	if err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "zoo.cfg")
	text := fmt.Sprintf("tickTime=500\nmaxSessionTimeout=40000\nmaxClientCnxns=0\ndataDir=%s\nclientPortAddress=127.0.0.1\nclientPort=%s\nadmin.enableServer=false\n4lw.commands.whitelist=*\n", filepath.Join(dir, "data"), port)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		return nil, err
	}
	z := &ZooKeeper{Addr: "127.0.0.1:" + port}
	z.cmd = e.Command("java", "-Xmx256M", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", filepath.Join(libs, "*"),
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", config)
	log, err := os.Create(filepath.Join(dir, "out.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	z.cmd.Stdout, z.cmd.Stderr = log, log
	if err := z.cmd.Start(); err != nil {
		return nil, err
	}
	if err := Within(2*time.Minute, z.serves); err != nil {
		z.Kill()
		return nil, fmt.Errorf("ZooKeeper did not get ready, see %s: %w", log.Name(), err)
	}
	return z, nil
}

// serves says whether the server takes sessions.
func (z *ZooKeeper) serves() error {
	c, err := net.DialTimeout("tcp", z.Addr, time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(2 * time.Second))
	if _, err := io.WriteString(c, "srvr"); err != nil {
		return err
	}
	said, err := io.ReadAll(c)
	if err == nil && !strings.Contains(string(said), "Zxid: ") {
		err = errors.New("it says: " + LastLine(said))
	}
	return err
}

// Kill is kill -9.
func (z *ZooKeeper) Kill() {
	z.cmd.Process.Kill()
	z.cmd.Wait()
}

// OnZooKeeper are the same checks, with every Millrace node on an Apache ZooKeeper in place of its built-in coordination.
func OnZooKeeper(checks []Check) (out []Check) {
	for _, c := range checks {
		if !c.BuiltIn {
			c.Name += onZooKeeper
			c.ensemble = true
			out = append(out, c)
		}
	}
	return out
}

// onZooKeeper ends the names of checks on a ZooKeeper.
const onZooKeeper = " (on Apache ZooKeeper)"

// ensemble is the ZooKeeper of all checks of a run, started when the first one needs it.
type ensemble struct {
	env *Env // whose folder and process it has

	mu    sync.Mutex
	zk    *ZooKeeper
	roots map[string]string // zookeeper.connect by the first data directory of a node
}

// connect is zookeeper.connect of the node with these data directories: a chroot of its own, the same one whenever it starts.
func (n *ensemble) connect(logDirs string) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.zk == nil {
		if err := os.MkdirAll(n.env.Cache, 0o755); err != nil {
			return "", err
		}
		var err error
		if n.env.Dir, err = os.MkdirTemp(n.env.Cache, "compat-zookeeper-"); err != nil {
			return "", err
		}
		if n.zk, err = StartZooKeeper(n.env); err != nil {
			return "", err
		}
	}
	first, _, _ := strings.Cut(logDirs, ",")
	root, ok := n.roots[first]
	if !ok {
		root = fmt.Sprintf("/nodes/%d", len(n.roots)+1)
		n.roots[first] = root
	}
	return n.zk.Addr + root, nil
}

// end stops the server and removes its data.
func (n *ensemble) end() error {
	n.env.end()
	if n.env.Dir == "" {
		return nil
	}
	return os.RemoveAll(n.env.Dir)
}
