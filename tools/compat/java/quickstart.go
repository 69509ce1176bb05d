package java

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"millrace/tools/compat/harness"
)

// typed is a command of the quick start of Kafka's 2.x documentation, to the letter; ^C ends those that do not end by themselves.
type typed struct {
	line string
	in   string
	want []string // lines of standard output, among others
	ends bool     // by itself
}

const (
	firstMessages = "This is a message\nThis is another message\n"
	moreMessages  = "my test message 1\nmy test message 2\n"
)

// quickStart is what a newcomer types, of every 2.x: --zookeeper and --broker-list, later --bootstrap-server. The replicated topic has one replica here.
var quickStart = []typed{
	{"bin/kafka-topics.sh --create --zookeeper localhost:2181 --replication-factor 1 --partitions 1 --topic test", "", []string{"Created topic test."}, true},
	{"bin/kafka-topics.sh --list --zookeeper localhost:2181", "", []string{"test"}, true},
	{"bin/kafka-console-producer.sh --broker-list localhost:9092 --topic test", firstMessages, nil, true},
	{"bin/kafka-console-consumer.sh --bootstrap-server localhost:9092 --topic test --from-beginning", "", strings.Split(strings.TrimSpace(firstMessages), "\n"), false},
	{"bin/kafka-topics.sh --create --zookeeper localhost:2181 --replication-factor 1 --partitions 1 --topic my-replicated-topic", "", []string{"Created topic my-replicated-topic."}, true},
	{"bin/kafka-topics.sh --describe --zookeeper localhost:2181 --topic my-replicated-topic", "", []string{"\tTopic: my-replicated-topic\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1"}, true},
	{"bin/kafka-topics.sh --describe --zookeeper localhost:2181 --topic test", "", []string{"\tTopic: test\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1"}, true},
	{"bin/kafka-console-producer.sh --broker-list localhost:9092 --topic my-replicated-topic", moreMessages, nil, true},
	{"bin/kafka-console-consumer.sh --bootstrap-server localhost:9092 --from-beginning --topic my-replicated-topic", "", strings.Split(strings.TrimSpace(moreMessages), "\n"), false},
	{"bin/kafka-topics.sh --zookeeper localhost:2181 --alter --topic test --partitions 6", "", []string{"Adding partitions succeeded!"}, true},
	{"bin/kafka-topics.sh --create --topic quickstart-events --bootstrap-server localhost:9092", "", []string{"Created topic quickstart-events."}, true},
	{"bin/kafka-console-producer.sh --topic quickstart-events --bootstrap-server localhost:9092", firstMessages, nil, true},
	{"bin/kafka-console-consumer.sh --topic quickstart-events --from-beginning --bootstrap-server localhost:9092", "", strings.Split(strings.TrimSpace(firstMessages), "\n"), false},
	{"bin/kafka-topics.sh --zookeeper localhost:2181 --delete --topic test", "", []string{"Topic test is marked for deletion."}, true},
	{"bin/kafka-topics.sh --list --zookeeper localhost:2181", "", []string{"my-replicated-topic", "quickstart-events"}, true},
}

// quickStartChecks: the quick start against 'millrace serve' as it comes, with our scripts and with Kafka's.
func quickStartChecks() []harness.Check {
	check := func(client, name string, bin func(*harness.Env) (string, error)) harness.Check {
		return harness.Check{Client: client, Name: name, BuiltIn: true, Limit: 6 * time.Minute, Run: func(e *harness.Env) error { return typeQuickStart(e, bin) }}
	}
	return []harness.Check{
		check("Apache Kafka's tools 2.8.2", "the 2.x quick start as typed", scripts28),
		check("Millrace's own tools", "the 2.x quick start of Kafka as typed", func(e *harness.Env) (string, error) { return e.Bin, nil }),
	}
}

// scripts28 makes what Kafka 2.8's scripts come to: each runs its class with the arguments it was given.
func scripts28(e *harness.Env) (string, error) {
	libs, err := harness.NeedJava(e.Cache, harness.Kafka28)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(e.Dir, "scripts")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	for _, name := range []string{"topics", "console-producer", "console-consumer"} {
		class, err := harness.ToolClass(harness.Kafka28, name)
		if err != nil {
			return "", err
		}
		cmd, err := e.Java(libs, "256M", nil, class)
		if err != nil {
			return "", err
		}
		script := "#!/bin/sh\nexec '" + strings.Join(cmd.Args, "' '") + "' \"$@\"\n"
		if err := os.WriteFile(filepath.Join(dir, "kafka-"+name+".sh"), []byte(script), 0o755); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// standardPorts are taken by one check at a time.
var standardPorts = make(chan struct{}, 1)

func typeQuickStart(e *harness.Env, bin func(*harness.Env) (string, error)) error {
	scripts, err := bin(e)
	if err != nil {
		return err
	}
	here := filepath.Join(e.Dir, "kafka")
	if err := os.Mkdir(here, 0o755); err != nil {
		return err
	}
	if err := os.Symlink(scripts, filepath.Join(here, "bin")); err != nil {
		return err
	}
	standardPorts <- struct{}{}
	defer func() { <-standardPorts }()
	var elsewhere []string
	if !free("127.0.0.1:9092") || !free("127.0.0.1:2181") {
		elsewhere = []string{"--override", "listeners=PLAINTEXT://127.0.0.1:0", "--override", "millrace.coordinator.listener=127.0.0.1:0"}
	}
	m, err := harness.Serve(e, elsewhere...)
	if err != nil {
		return err
	}
	defer m.Kill()
	address := strings.NewReplacer()
	if elsewhere != nil {
		e.Note("port 9092 or 2181 is another program's: with the addresses %s and %s in their place", m.Addr, m.Coordinator)
		address = strings.NewReplacer("localhost:9092", m.Addr, "localhost:2181", m.Coordinator)
	}
	for i, c := range quickStart {
		c.line = address.Replace(c.line)
		run := func() error { return c.run(e, here) }
		if strings.Contains(c.line, "--list") || strings.Contains(c.line, "--describe") { // the controller may still be at what was typed before
			err = harness.Within(30*time.Second, run)
		} else {
			err = run()
		}
		if err != nil {
			return fmt.Errorf("command %d: %s: %w", i+1, c.line, err)
		}
	}
	e.Note("%d commands", len(quickStart))
	return m.Stop()
}

func free(address string) bool {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return false
	}
	l.Close()
	return true
}

// run has a shell in a folder run the command until it ends, or has said all that is wanted, and holds what it said against that.
func (c *typed) run(e *harness.Env, dir string) error {
	cmd := e.Command("sh", "-c", "exec "+c.line)
	cmd.Dir = dir
	var errs strings.Builder
	cmd.Stdin, cmd.Stderr = strings.NewReader(c.in), &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	limit := time.AfterFunc(time.Minute, func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	defer limit.Stop()
	var said []string
	for next, lines := 0, bufio.NewScanner(out); lines.Scan(); {
		said = append(said, lines.Text())
		if next < len(c.want) && lines.Text() == c.want[next] {
			next++
		}
		if next == len(c.want) && !c.ends {
			syscall.Kill(-cmd.Process.Pid, syscall.SIGINT)
		}
	}
	err = cmd.Wait()
	if c.ends && err != nil || cmd.ProcessState.ExitCode() < 0 {
		return fmt.Errorf("%w: %s%s", err, strings.Join(said, "\n"), errs.String())
	}
	if !c.ends && !strings.Contains(errs.String(), fmt.Sprintf("Processed a total of %d messages", len(c.want))) {
		return fmt.Errorf("after ^C it says %q", errs.String())
	}
	return holds(strings.Join(said, "\n"), c.want, true)
}
