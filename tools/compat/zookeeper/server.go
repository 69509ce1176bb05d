package zookeeper

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"millrace/coord/zk/proto"
	"millrace/tools/compat/harness"
)

// Libs are the server, its shell and Curator.
var Libs = harness.ZooKeeper39

// SuperPassword is what makes a client of a started server the super user.
const SuperPassword = "super:test"

const superDigest = "super:D/InIHSb7yEEbrWz8b9l71RjZJU="

// Server is one Apache ZooKeeper.
type Server struct {
	Addr string
	cmd  *exec.Cmd
	log  bytes.Buffer
}

// Start runs a server with its data in dir, with TTL nodes, enforced quotas and a super
// user; syncs are off, since only answers are compared. It returns when the server has
// opened a session and closed it again, which are its first two transactions.
func Start(cache, dir string) (*Server, error) {
	jars, err := harness.NeedJava(cache, Libs)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	addr := l.Addr().(*net.TCPAddr)
	l.Close()
	s := &Server{Addr: addr.String()}
	s.cmd = exec.Command("java", "-Xmx256M", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
		"-Dzookeeper.admin.enableServer=false", "-Dzookeeper.forceSync=no", "-Dzookeeper.extendedTypesEnabled=true",
		"-Dzookeeper.enforceQuota=true", "-Dzookeeper.4lw.commands.whitelist=*",
		"-Dzookeeper.DigestAuthenticationProvider.superDigest="+superDigest, "-cp", filepath.Join(jars, "*"),
		"org.apache.zookeeper.server.ZooKeeperServerMain", fmt.Sprint(addr.Port), dir, "2000", "0") // tickTime, connections without bound
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		// It says that it is well before it takes sessions.
		if c, err := Dial(s.Addr); err == nil {
			_, _, err = c.Do(&proto.Request{Op: proto.OpCloseSession})
			c.Close()
			if err == nil {
				return s, nil
			}
		}
		if time.Now().After(deadline) {
			s.Stop()
			return nil, fmt.Errorf("zookeeper does not answer on %s: %s", s.Addr, s.log.String())
		}
	}
}

// Stop ends the server.
func (s *Server) Stop() {
	s.cmd.Process.Signal(os.Interrupt)
	done := make(chan struct{})
	go func() { // ends with the process, which is killed below if need be
		s.cmd.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		s.cmd.Process.Kill()
		<-done
	}
}
