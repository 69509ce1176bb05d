package harness

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const tools = "org.apache.kafka.tools."

// toolClass is the class behind each of Kafka 4.3's scripts; 3.9 has the same but for those in toolClass39.
var toolClass = map[string]string{
	"topics": tools + "TopicCommand", "configs": "kafka.admin.ConfigCommand", "console-producer": tools + "ConsoleProducer", "console-consumer": tools + "consumer.ConsoleConsumer",
	"consumer-groups": tools + "consumer.group.ConsumerGroupCommand", "groups": tools + "GroupsCommand", "get-offsets": tools + "GetOffsetShell", "delete-records": tools + "DeleteRecordsCommand",
	"log-dirs": tools + "LogDirsCommand", "leader-election": tools + "LeaderElectionCommand", "reassign-partitions": tools + "reassign.ReassignPartitionsCommand",
	"broker-api-versions": tools + "BrokerApiVersionsCommand", "cluster": tools + "ClusterTool", "verifiable-producer": tools + "VerifiableProducer", "verifiable-consumer": tools + "VerifiableConsumer",
	"producer-perf-test": tools + "ProducerPerformance", "consumer-perf-test": tools + "ConsumerPerformance", "e2e-latency": tools + "EndToEndLatency", "dump-log": tools + "DumpLogSegments",
	"storage": "kafka.tools.StorageTool", "transactions": tools + "TransactionsCommand", "streams-application-reset": tools + "StreamsResetter", "features": tools + "FeatureCommand",
	"metadata-quorum": tools + "MetadataQuorumCommand", "acls": tools + "AclCommand", "client-metrics": tools + "ClientMetricsCommand",
}

var toolClass39 = map[string]string{
	"broker-api-versions": "kafka.admin.BrokerApiVersionsCommand", "dump-log": "kafka.tools.DumpLogSegments", "console-producer": "kafka.tools.ConsoleProducer",
	"console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer", "acls": "kafka.admin.AclCommand",
}

// toolClass28 are all of 2.8's that are asked for: they were written in Scala then.
var toolClass28 = map[string]string{
	"topics": "kafka.admin.TopicCommand", "configs": "kafka.admin.ConfigCommand", "console-producer": "kafka.tools.ConsoleProducer",
	"console-consumer": "kafka.tools.ConsoleConsumer", "consumer-groups": "kafka.admin.ConsumerGroupCommand",
}

// ToolClass is the class behind one of Kafka's scripts, by its short name ("topics"), of Kafka43, Kafka39 or Kafka28.
func ToolClass(l Libs, name string) (string, error) {
	if c, ok := toolClass28[name]; ok && l.Name == Kafka28.Name {
		return c, nil
	}
	if c, ok := toolClass39[name]; ok && l.Name == Kafka39.Name {
		return c, nil
	}
	if c, ok := toolClass[name]; ok {
		return c, nil
	}
	return "", fmt.Errorf("no class is known for kafka-%s", name)
}

// KafkaTool makes a command for one of Kafka's scripts by its short name ("topics"), as ToolClass does.
func (e *Env) KafkaTool(l Libs, name string, args ...string) (*exec.Cmd, error) {
	class, err := ToolClass(l, name)
	if err != nil {
		return nil, err
	}
	libs, err := NeedJava(e.Cache, l)
	if err != nil {
		return nil, err
	}
	return e.Java(libs, "256M", nil, append([]string{class}, args...)...)
}

// Kafka is an Apache Kafka node: broker and controller in one, or a broker with a ZooKeeper beside it.
type Kafka struct {
	Addr string
	Dir  string // its folder: server.properties, data, out.log

	Connect string // its zookeeper.connect, "" if it has none

	libs      Libs
	env       *Env
	cmd       *exec.Cmd
	zookeeper *ZooKeeper // nil: it has a controller of its own
}

// StartKafka formats a node of Kafka 4.3 in the check's folder and starts it; overrides are key=value lines.
func StartKafka(e *Env, overrides ...string) (*Kafka, error) {
	return StartKafkaOf(e, Kafka43, overrides...)
}

// StartKafkaOf is StartKafka for Kafka43 or Kafka39.
func StartKafkaOf(e *Env, l Libs, overrides ...string) (*Kafka, error) {
	libs, err := NeedJava(e.Cache, l)
	if err != nil {
		return nil, err
	}
	port, controller, err := freePorts()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(e.Dir, "kafka-")
	if err != nil {
		return nil, err
	}
	k := &Kafka{Addr: "127.0.0.1:" + port, Dir: dir, libs: l, env: e}
	properties := fmt.Sprintf(`process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:%[2]s
listeners=PLAINTEXT://127.0.0.1:%[1]s,CONTROLLER://127.0.0.1:%[2]s
advertised.listeners=PLAINTEXT://127.0.0.1:%[1]s
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs=%[3]s
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
%[4]s
`, port, controller, filepath.Join(dir, "data"), strings.Join(overrides, "\n"))
	file := filepath.Join(dir, "server.properties")
	if err := os.WriteFile(file, []byte(properties), 0o644); err != nil {
		return nil, err
	}
	format, err := e.Java(libs, "128M", nil, "kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c", file)
	if err != nil {
		return nil, err
	}
	if _, err := Output(format, "", 2*time.Minute); err != nil {
		return nil, err
	}
	return k, k.Start()
}

// StartKafkaZooKeeper starts a broker of Kafka 3.9 with a ZooKeeper, which outlives stops of the broker.
func StartKafkaZooKeeper(e *Env, overrides ...string) (*Kafka, error) {
	return StartKafkaBelow(e, "", overrides...)
}

// StartKafkaBelow is StartKafkaZooKeeper with a chroot, as in /kafka/one.
func StartKafkaBelow(e *Env, chroot string, overrides ...string) (*Kafka, error) {
	zk, err := StartZooKeeper(e)
	if err != nil {
		return nil, err
	}
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(e.Dir, "kafka-")
	if err != nil {
		return nil, err
	}
	k := &Kafka{Addr: "127.0.0.1:" + port, Dir: dir, Connect: zk.Addr + chroot, libs: Kafka39, env: e, zookeeper: zk}
	properties := fmt.Sprintf(`broker.id=1
zookeeper.connect=%s
listeners=PLAINTEXT://%s
log.dirs=%s
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
%s
`, k.Connect, k.Addr, filepath.Join(dir, "data"), strings.Join(overrides, "\n"))
	if err := os.WriteFile(filepath.Join(dir, "server.properties"), []byte(properties), 0o644); err != nil {
		return nil, err
	}
	return k, k.Start()
}

// Start runs the node in its folder and waits until it answers a request.
func (k *Kafka) Start() error {
	libs, err := NeedJava(k.env.Cache, k.libs)
	if err != nil {
		return err
	}
	k.cmd, err = k.env.Java(libs, "512M", nil, "kafka.Kafka", filepath.Join(k.Dir, "server.properties"))
	if err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(k.Dir, "out.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	k.cmd.Stdout, k.cmd.Stderr = log, log
	if err := k.cmd.Start(); err != nil {
		return err
	}
	if err := Within(2*time.Minute, func() error { return answers(k.Addr) }); err != nil {
		k.Kill()
		return fmt.Errorf("Kafka did not get ready, see %s: %w", log.Name(), err)
	}
	return nil
}

// Kill is kill -9, of its ZooKeeper too.
func (k *Kafka) Kill() {
	k.cmd.Process.Kill()
	k.cmd.Wait()
	if k.zookeeper != nil {
		k.zookeeper.Kill()
	}
}

// Stop ends the node cleanly.
func (k *Kafka) Stop() error {
	return StopJava(k.cmd, time.Minute)
}

// StopJava ends a Java program by SIGTERM and waits for its end, at most for limit.
func StopJava(cmd *exec.Cmd, limit time.Duration) error {
	err := stop(cmd, limit)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 143 { // Java's way to end by SIGTERM
		return nil
	}
	return err
}

// answers says whether a broker answers an ApiVersions request: the port opens earlier.
func answers(addr string) error {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	request, err := hex.DecodeString("0000000b" + "0012" + "0000" + "00000001" + "0001" + "78")
	if err != nil {
		return err
	}
	c.SetDeadline(time.Now().Add(2 * time.Second))
	if _, err := c.Write(request); err != nil {
		return err
	}
	_, err = c.Read(make([]byte, 4))
	return err
}

// FreePort finds a port that nobody listens on, for a program that cannot be told to pick its own.
func FreePort() (string, error) {
	port, _, err := freePorts()
	return port, err
}

// freePorts finds two ports that nobody listens on.
func freePorts() (a, b string, err error) {
	var port [2]string
	for i := range port {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", "", err
		}
		defer l.Close()
		_, port[i], _ = net.SplitHostPort(l.Addr().String())
	}
	return port[0], port[1], nil
}
