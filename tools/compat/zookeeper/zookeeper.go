package zookeeper

import (
	"os"
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
		out = append(out, check("ZooKeeper 3.9.5's JUnit tests", g.name, 8*time.Minute, func(e *harness.Env, s *target) error { return junit(e, s, g) }))
	}
	return out
}

// Reference are the checks against Apache ZooKeeper itself: what they must pass for a judgement over ours to mean anything.
func Reference() []harness.Check { return checksOf(" (Apache ZooKeeper)", startReference) }
