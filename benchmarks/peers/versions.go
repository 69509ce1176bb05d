package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// versions are those of every system that may be measured, as far as they can be told.
func versions(o options) map[string]string {
	v := map[string]string{"kafka": kafkaVersion, "jafka": jafkaVersion}
	for name, ask := range map[string][]string{
		"millrace": {o.bin("millrace"), "--version"},
		"java":     {"java", "-version"},
		"redis":    {"redis-server", "--version"},
		"rabbitmq": {"dpkg-query", "-W", "-f", "${Version}\n", "rabbitmq-server"},
		"kcat":     {"kcat", "-V"},
	} {
		if s := firstLine(ask); s != "" {
			v[name] = s
		}
	}
	if b, err := os.ReadFile(filepath.Join("benchmarks", "peers", "others", "go.mod")); err == nil {
		for name, module := range map[string]string{"nats-server": "github.com/nats-io/nats-server/v2", "nats.go": "github.com/nats-io/nats.go", "rabbitmq-stream-go-client": "github.com/rabbitmq/rabbitmq-stream-go-client"} {
			if m := regexp.MustCompile(regexp.QuoteMeta(module) + ` (v\S+)`).FindSubmatch(b); m != nil {
				v[name] = string(m[1])
			}
		}
	}
	return v
}

// firstLine is the first line of a program's output that has a digit, for a version has one.
func firstLine(command []string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput()
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimSpace(line); strings.ContainsAny(line, "0123456789") {
			return line
		}
	}
	return ""
}

// openFiles is how many files a process may have open here.
func openFiles() uint64 {
	var r unix.Rlimit
	unix.Getrlimit(unix.RLIMIT_NOFILE, &r)
	return r.Max
}
