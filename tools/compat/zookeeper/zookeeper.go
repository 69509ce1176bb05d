// Package zookeeper holds the checks of the coordination service: ZooKeeper's own shell, JUnit tests and clients, Apache
// Curator's recipes and kazoo's own test-suite, pointed at a server of ours as they would be at Apache ZooKeeper.
//
// Each check says what a server must do to pass; Reference runs the same against Apache ZooKeeper 3.9.5, which is how it
// is known that what is left out (with its reason) does not pass there either.
package zookeeper

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"millrace/tools/compat/harness"
)

// libs is a server, its shell and Curator. ZooKeeper's own pom leaves out what the server (metrics, snappy, a log binding)
// and the shell (commons-cli) need.
var libs = harness.Libs{Name: "zookeeper-3.9.5", Artifacts: []string{
	"org.apache.zookeeper:zookeeper:3.9.5", "io.dropwizard.metrics:metrics-core:4.1.12.1", "org.xerial.snappy:snappy-java:1.1.10.7",
	"commons-cli:commons-cli:1.4", "org.slf4j:slf4j-simple:2.0.13", "org.apache.curator:curator-recipes:5.9.0"}}

// superDigest is the digest of super:test, the user of whom ZooKeeper's own tests ask to clean up.
const superDigest = "super:D/InIHSb7yEEbrWz8b9l71RjZJU="

// quiet keeps the libraries' logs off the output.
const quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"

// server is one to be checked: all four-letter words, extended types (TTL nodes), quotas enforced, superDigest.
type server struct {
	addr string
	stop func()
}

// start makes a server for a check.
type start func(e *harness.Env) (*server, error)

// startReference runs Apache ZooKeeper in the check's folder; properties are further -D settings.
func startReference(e *harness.Env) (*server, error) {
	dir, err := harness.NeedJava(e.Cache, libs)
	if err != nil {
		return nil, err
	}
	port, err := harness.FreePort()
	if err != nil {
		return nil, err
	}
	home, err := os.MkdirTemp(e.Dir, "zookeeper-")
	if err != nil {
		return nil, err
	}
	config := filepath.Join(home, "zoo.cfg")
	text := fmt.Sprintf("tickTime=2000\ndataDir=%s\nclientPort=%s\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n4lw.commands.whitelist=*\nmaxClientCnxns=0\n", filepath.Join(home, "data"), port)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		return nil, err
	}
	cmd, err := e.Java(dir, "256M", nil, "-Dzookeeper.extendedTypesEnabled=true", "-Dzookeeper.enforceQuota=true", "-Dzookeeper.DigestAuthenticationProvider.superDigest="+superDigest,
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "org.apache.zookeeper.server.quorum.QuorumPeerMain", config)
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(home, "out.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &server{addr: "127.0.0.1:" + port, stop: func() { harness.StopJava(cmd, 10*time.Second) }}
	if err := harness.Within(time.Minute, func() error { return ruok(s.addr) }); err != nil {
		s.stop()
		return nil, fmt.Errorf("ZooKeeper did not get ready, see %s: %w", log.Name(), err)
	}
	return s, nil
}

// word sends a four-letter word and returns the answer.
func word(addr, w string) (string, error) {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return "", err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := c.Write([]byte(w)); err != nil {
		return "", err
	}
	var b strings.Builder
	buf := make([]byte, 4096)
	for {
		n, err := c.Read(buf)
		b.Write(buf[:n])
		if err != nil {
			break // the server closes behind the answer
		}
	}
	return b.String(), nil
}

func ruok(addr string) error {
	got, err := word(addr, "ruok")
	if err == nil && got != "imok" {
		err = errors.New("ruok was answered by " + got)
	}
	return err
}

// checksOf are all checks of this package against servers that begin gives; of is whose they are, for the table.
func checksOf(of string, begin start) []harness.Check {
	check := func(client, name string, limit time.Duration, run func(*harness.Env, *server) error) harness.Check {
		return harness.Check{Client: client, Name: name + of, Limit: limit, Run: func(e *harness.Env) error {
			s, err := begin(e)
			if err != nil {
				return err
			}
			defer s.stop()
			return run(e, s)
		}}
	}
	out := []harness.Check{
		check("Apache Curator 5.9.0", "21 recipes", 3*time.Minute, curator),
		check("zkCli 3.9.5", "every command, compared with Apache ZooKeeper", 3*time.Minute, shell),
		check("kazoo "+kazooVersion, "its own test-suite", 8*time.Minute, kazoo),
	}
	for _, g := range junitGroups {
		out = append(out, check("ZooKeeper 3.9.5's JUnit tests", g.name, 8*time.Minute, func(e *harness.Env, s *server) error { return junit(e, s, g) }))
	}
	return out
}

// Reference are the checks against Apache ZooKeeper itself: what they must pass for a judgement over ours to mean anything.
func Reference() []harness.Check { return checksOf(" (Apache ZooKeeper)", startReference) }
