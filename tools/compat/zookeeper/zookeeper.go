package zookeeper

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"millrace/tools/compat/harness"
)

// quiet keeps the libraries' logs off the output.
const quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"

// target is a server to be checked: all four-letter words, extended types (TTL nodes), quotas enforced, superDigest.
type target struct {
	addr string
	stop func()
}

// startFunc makes a server for a check.
type startFunc func(e *harness.Env) (*target, error)

// startReference runs Apache ZooKeeper in the check's folder.
func startReference(e *harness.Env) (*target, error) {
	dir, err := os.MkdirTemp(e.Dir, "zookeeper-")
	if err != nil {
		return nil, err
	}
	s, err := Start(e.Cache, dir)
	if err != nil {
		return nil, err
	}
	return &target{addr: s.Addr, stop: s.Stop}, nil
}

// checksOf are all checks of this package against servers that begin gives; of is whose they are, for the table.
func checksOf(of string, begin startFunc) []harness.Check {
	check := func(client, name string, limit time.Duration, run func(*harness.Env, *target) error) harness.Check {
		return harness.Check{Client: client, Name: name + of, BuiltIn: true, Limit: limit, Run: func(e *harness.Env) error {
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
		check("go-zookeeper 1.0.4", "nodes, multi, auth, watches over a reconnect, expiry", 3*time.Minute, goZookeeper),
		check("kazoo "+kazooVersion, "its own test-suite", 15*time.Minute, kazoo),
	}
	for _, g := range junitGroups {
		out = append(out, check("ZooKeeper 3.9.5's JUnit tests", g.name, 15*time.Minute, func(e *harness.Env, s *target) error { return junit(e, s, g) }))
	}
	return out
}

// startOurs runs 'millrace coordinator' with the same settings.
func startOurs(e *harness.Env) (*target, error) {
	args := []string{"coordinator"}
	for _, o := range []string{"clientPort=0", "dataDir=" + filepath.Join(e.Dir, "coordination"), "maxClientCnxns=0", "4lw.commands.whitelist=*",
		"extendedTypesEnabled=true", "enforceQuota=true", "superDigest=" + superDigest} {
		args = append(args, "--override", o)
	}
	return startCoordinator(e, args)
}

// startCoordinator runs our binary and waits for its ready line.
func startCoordinator(e *harness.Env, args []string) (*target, error) {
	log, err := os.OpenFile(filepath.Join(e.Dir, "coordinator.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := e.Command(filepath.Join(e.Bin, "millrace"), args...)
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	_, rest, ok := strings.Cut(line, "ready coordinator=")
	if err != nil || !ok {
		cmd.Process.Kill()
		cmd.Wait()
		return nil, fmt.Errorf("no ready line, see %s: %q", log.Name(), line)
	}
	addr, _, _ := strings.Cut(rest, " ")
	return &target{addr: addr, stop: func() { cmd.Process.Signal(os.Interrupt); cmd.Wait() }}, nil
}

// Checks are the checks of the coordination service.
func Checks() []harness.Check { return checksOf("", startOurs) }

// Reference are the checks against Apache ZooKeeper itself: what they must pass for a judgement over ours to mean anything.
func Reference() []harness.Check { return checksOf(" (Apache ZooKeeper)", startReference) }
