package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/benchmarks/load"
	"millrace/benchmarks/peers/report"
	"millrace/benchmarks/process"
)

const (
	kafkaVersion = "4.3.1"
	jafkaVersion = "3.0.6"
)

// mavenLibs resolves artifacts with what they need into a folder, once; it stays in the cache.
func mavenLibs(ctx context.Context, dir string, artifacts ...string) (string, error) {
	if _, err := exec.LookPath("java"); err != nil {
		return "", errNotHad{"java is not installed"}
	}
	done := filepath.Join(dir, "complete")
	if _, err := os.Stat(done); err == nil {
		return dir, nil
	}
	if _, err := exec.LookPath("mvn"); err != nil {
		return "", errNotHad{"mvn is not installed"}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	var deps strings.Builder
	for _, a := range artifacts {
		g := strings.Split(a, ":")
		fmt.Fprintf(&deps, "<dependency><groupId>%s</groupId><artifactId>%s</artifactId><version>%s</version></dependency>\n", g[0], g[1], g[2])
	}
	pom := filepath.Join(dir, "pom.xml")
	text := `<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>local</groupId><artifactId>libs</artifactId><version>1</version><packaging>pom</packaging>
<dependencies>` + deps.String() + "</dependencies></project>\n"
	if err := os.WriteFile(pom, []byte(text), 0o644); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	fmt.Println("  fetching", strings.Join(artifacts, ", "))
	cmd := exec.CommandContext(ctx, "mvn", "-q", "-B", "-f", pom, "dependency:copy-dependencies", "-DoutputDirectory="+dir, "-DincludeScope=runtime")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", errNotHad{fmt.Sprintf("mvn: %v: %s", err, process.LastLine(out))}
	}
	return dir, os.WriteFile(done, nil, 0o644)
}

func (e *env) kafkaLibs() (string, error) {
	// The last one is what makes a Kafka of Maven's jars log at all.
	return mavenLibs(e.ctx, filepath.Join(e.cache, "lib", "kafka-"+kafkaVersion), "org.apache.kafka:kafka_2.13:"+kafkaVersion,
		"org.apache.kafka:kafka-tools:"+kafkaVersion, "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4")
}

const log4j2 = `status = error
appender.err.type = Console
appender.err.name = err
appender.err.target = SYSTEM_ERR
appender.err.layout.type = PatternLayout
appender.err.layout.pattern = [%d] %p %m (%c)%n
rootLogger.level = ${sys:lvl:-INFO}
rootLogger.appenderRef.err.ref = err
`

// The heaps: Kafka's start script asks for 1 GiB; the tuned broker has a sixth of this kind of machine.
var (
	kafkaHeap = []string{"-Xmx1G", "-Xms1G"}
	tunedHeap = []string{"-Xmx4G", "-Xms4G", "-XX:+AlwaysPreTouch"}
	// As many threads as the machine has processors, instead of 3 and 8, and socket buffers left to the system.
	tunedKeys = []string{"num.network.threads=2", "num.io.threads=4", "socket.send.buffer.bytes=-1", "socket.receive.buffer.bytes=-1",
		"num.recovery.threads.per.data.dir=2"}
)

func (e *env) kafka() *server { return e.kafkaServer(report.Kafka, kafkaHeap) }
func (e *env) kafkaTuned() *server {
	return e.kafkaServer(report.KafkaTuned, tunedHeap, tunedKeys...)
}
func (e *env) kafkaFlush() *server {
	return e.kafkaServer(report.KafkaFlush, kafkaHeap, "log.flush.interval.messages=1")
}

// kafkaServer is one KRaft node with Kafka's default settings but for those that a single node needs and the given ones.
func (e *env) kafkaServer(label string, heap []string, keys ...string) *server {
	return &server{label: label, stop: 3 * time.Minute, client: kafkaClient{}, start: func(s *server) (*process.Process, string, error) {
		libs, err := e.kafkaLibs()
		if err != nil {
			return nil, "", err
		}
		config := filepath.Join(s.dir, "server.properties")
		if _, err := os.Stat(config); err != nil {
			if err := e.kafkaFormat(libs, s.dir, config, keys); err != nil {
				os.Remove(config)
				return nil, "", err
			}
		}
		addr, err := os.ReadFile(filepath.Join(s.dir, "addr"))
		if err != nil {
			return nil, "", err
		}
		args := append([]string{}, heap...)
		args = append(args, "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent",
			"-Djava.awt.headless=true", "-Dlog4j2.configurationFile=file:"+filepath.Join(s.dir, "log4j2.properties"), "-cp", libs+"/*", "kafka.Kafka", config)
		p, _, err := process.Start(strings.ReplaceAll(label, " ", "-"), s.dir, nil, "java", args...)
		if err != nil {
			return nil, "", err
		}
		if err := e.answers(p, 4*time.Minute, func() error { return apiVersions(e.ctx, string(addr)) }); err != nil {
			p.Kill()
			return nil, "", err
		}
		return p, string(addr), nil
	}}
}

func (e *env) kafkaFormat(libs, dir, config string, keys []string) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	control, err := freePort()
	if err != nil {
		return err
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	text := fmt.Sprintf(`process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:%[2]d
listeners=PLAINTEXT://127.0.0.1:%[1]d,CONTROLLER://127.0.0.1:%[2]d
advertised.listeners=PLAINTEXT://127.0.0.1:%[1]d
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs=%[3]s/data
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
log.segment.delete.delay.ms=500
%[4]s
`, port, control, abs, strings.Join(keys, "\n"))
	for name, content := range map[string]string{"server.properties": text, "log4j2.properties": log4j2, "addr": fmt.Sprintf("127.0.0.1:%d", port)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	_, err = e.command(time.Minute, "", "java", "-Xmx128M", "-cp", libs+"/*", "kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c", config)
	return err
}

// apiVersions asks what a broker speaks: the first thing a client does, and the sign that it serves.
func apiVersions(ctx context.Context, addr string) error {
	req, resp := kmsg.NewPtrApiVersionsRequest(), kmsg.NewPtrApiVersionsResponse()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return load.Ask(ctx, addr, req, resp)
}

func (e *env) millraceSynced() *server { return e.millrace(report.Synced, "sync") }

func (e *env) millracePageCache() *server { return e.millrace(report.PageCache, "page-cache") }

// millrace is our broker with its default settings but for the given ones and those that Kafka has above.
func (e *env) millrace(label, durability string) *server {
	return &server{label: label, stop: time.Minute, client: kafkaClient{}, start: func(s *server) (*process.Process, string, error) {
		args := []string{"serve"}
		for _, o := range []string{"listeners=PLAINTEXT://127.0.0.1:0", "admin.listener=", "log.dirs=" + filepath.Join(s.dir, "data"),
			"millrace.durability=" + durability, "group.initial.rebalance.delay.ms=0", "log.segment.delete.delay.ms=500"} {
			args = append(args, "--override", o)
		}
		return process.StartReady(strings.ReplaceAll(label, " ", "-"), s.dir, e.bin("millrace"), args...)
	}}
}
