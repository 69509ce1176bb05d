package frameworks

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"millrace/tools/compat/harness"
)

// connectLines are how many lines the file has at first; as many come after the worker's restart. They are plain ASCII: the
// file source counts characters and skips as many bytes when it goes on.
const connectLines = 3000

func connectChecks() []harness.Check {
	check := func(name string, run func(*harness.Env) error) harness.Check {
		return harness.Check{Client: "Kafka Connect 4.3.1", Name: name, Limit: 12 * time.Minute, Run: run}
	}
	return []harness.Check{
		check("standalone: file to topic to file, and on after a restart", connectStandalone),
		check("distributed: REST, status, file to topic to file, and on after a restart of the worker", connectDistributed),
	}
}

// worker is a Connect worker with a file source and a file sink.
type worker struct {
	e       *harness.Env
	in, out string   // files
	args    []string // class and arguments
	cmd     *exec.Cmd
	url     string // of its REST listener
}

// newWorker writes the worker's configuration and the input file.
func newWorker(e *harness.Env, addr, class string, lines []string, settings ...string) (*worker, error) {
	port, err := harness.FreePort()
	if err != nil {
		return nil, err
	}
	w := &worker{e: e, in: filepath.Join(e.Dir, "in.txt"), out: filepath.Join(e.Dir, "out.txt"), url: "http://127.0.0.1:" + port}
	properties := filepath.Join(e.Dir, "worker.properties")
	w.args = []string{"-Dfile.encoding=UTF-8", "org.apache.kafka.connect.cli." + class, properties}
	settings = append([]string{
		"bootstrap.servers=" + addr,
		"key.converter=org.apache.kafka.connect.storage.StringConverter",
		"value.converter=org.apache.kafka.connect.storage.StringConverter",
		"offset.flush.interval.ms=1000",
		serviceLoad,
		"listeners=" + w.url,
	}, settings...)
	if err := os.WriteFile(properties, []byte(strings.Join(settings, "\n")), 0o644); err != nil {
		return nil, err
	}
	return w, w.grow(lines)
}

// grow appends lines to the input file.
func (w *worker) grow(lines []string) error {
	f, err := os.OpenFile(w.in, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(strings.Join(lines, "\n") + "\n"); err != nil {
		return err
	}
	return f.Close()
}

func (w *worker) start() error {
	libs, err := harness.NeedJava(w.e.Cache, harness.Kafka43)
	if err != nil {
		return err
	}
	if w.cmd, err = w.e.Java(libs, "256M", nil, w.args...); err != nil {
		return err
	}
	return background(w.e, w.cmd, "worker")
}

// awaitCopy waits until the sink's file is the source's.
func (w *worker) awaitCopy() error {
	return harness.Within(step, func() error { return harness.SameFile(w.in, w.out) })
}

// connectors are the source's and the sink's configurations.
func (w *worker) connectors() map[string]map[string]string {
	return map[string]map[string]string{
		"file-source": {"connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector", "tasks.max": "1", "file": w.in, "topic": "files"},
		"file-sink":   {"connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector", "tasks.max": "1", "file": w.out, "topics": "files"},
	}
}

func connectStandalone(e *harness.Env) error {
	lines, err := textLines(e, 2*connectLines, asciiText)
	if err != nil {
		return err
	}
	m, err := harness.StartMillrace(e)
	if err != nil {
		return err
	}
	defer m.Kill()
	w, err := newWorker(e, m.Addr, "ConnectStandalone", lines[:connectLines], "offset.storage.file.filename="+filepath.Join(e.Dir, "offsets"))
	if err != nil {
		return err
	}
	for name, config := range w.connectors() {
		file := filepath.Join(e.Dir, name+".properties")
		text := "name=" + name + "\n"
		for k, v := range config {
			text += k + "=" + v + "\n"
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return err
		}
		w.args = append(w.args, file)
	}
	for range 2 {
		if err := w.start(); err != nil {
			return err
		}
		if err := w.awaitCopy(); err != nil {
			return err
		}
		if err := harness.StopJava(w.cmd, step); err != nil {
			return err
		}
		if err := w.grow(lines[connectLines:]); err != nil {
			return err
		}
	}
	return m.Stop()
}

func connectDistributed(e *harness.Env) error {
	lines, err := textLines(e, 2*connectLines, asciiText)
	if err != nil {
		return err
	}
	m, err := harness.StartMillrace(e)
	if err != nil {
		return err
	}
	defer m.Kill()
	w, err := newWorker(e, m.Addr, "ConnectDistributed", lines[:connectLines], "group.id=connect",
		"config.storage.topic=connect-configs", "config.storage.replication.factor=1",
		"offset.storage.topic=connect-offsets", "offset.storage.replication.factor=1", "offset.storage.partitions=5",
		"status.storage.topic=connect-status", "status.storage.replication.factor=1")
	if err != nil {
		return err
	}
	if err := w.start(); err != nil {
		return err
	}
	for name, config := range w.connectors() {
		if err := harness.Within(step, func() error { return w.rest(http.MethodPut, "/connectors/"+name+"/config", config, nil) }); err != nil {
			return err
		}
	}
	if err := w.awaitRunning(); err != nil {
		return err
	}
	if err := w.awaitCopy(); err != nil {
		return err
	}
	if err := compactTopics(m.Addr, "connect-configs", "connect-offsets", "connect-status"); err != nil {
		return err
	}
	if err := harness.StopJava(w.cmd, step); err != nil {
		return err
	}
	if err := w.grow(lines[connectLines:]); err != nil {
		return err
	}
	if err := w.start(); err != nil {
		return err
	}
	if err := w.awaitRunning(); err != nil {
		return fmt.Errorf("after the restart: %w", err)
	}
	if err := w.awaitCopy(); err != nil {
		return fmt.Errorf("after the restart: %w", err)
	}
	if err := harness.StopJava(w.cmd, step); err != nil {
		return err
	}
	return m.Stop()
}

// rest sends one request to the worker and reads the answer into result unless that is nil.
func (w *worker) rest(method, path string, body, result any) error {
	ctx, cancel := context.WithTimeout(context.Background(), step)
	defer cancel()
	var b []byte
	if body != nil {
		var err error
		if b, err = json.Marshal(body); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, w.url+path, bytes.NewReader(b))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %.300s", method, path, resp.Status, answer)
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(answer, result)
}

// awaitRunning waits until REST says of both connectors and their one task each that they run.
func (w *worker) awaitRunning() error {
	for name := range w.connectors() {
		err := harness.Within(step, func() error {
			var status struct {
				Connector struct{ State string }
				Tasks     []struct{ State, Trace string }
			}
			if err := w.rest(http.MethodGet, "/connectors/"+name+"/status", nil, &status); err != nil {
				return err
			}
			if status.Connector.State != "RUNNING" || len(status.Tasks) != 1 || status.Tasks[0].State != "RUNNING" {
				return fmt.Errorf("connector %s is %+v", name, status)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// compactTopics demands that the topics are compacted ones, as the worker asked for.
func compactTopics(addr string, topics ...string) error {
	for _, t := range topics {
		if err := hasConfigs(addr, t, map[string]string{"cleanup.policy": "compact"}); err != nil {
			return err
		}
	}
	return nil
}

// hasConfigs says the first of a topic's configs that is not as wanted.
func hasConfigs(addr, topic string, want map[string]string) error {
	return withClient(addr, func(ctx context.Context, _ *kgo.Client, adm *kadm.Client) error {
		all, err := adm.DescribeTopicConfigs(ctx, topic)
		if err != nil {
			return err
		}
		rc, err := all.On(topic, nil)
		if err != nil {
			return err
		}
		if rc.Err != nil {
			return fmt.Errorf("configs of %s: %w", topic, rc.Err)
		}
		got := map[string]string{}
		for _, c := range rc.Configs {
			got[c.Key] = c.MaybeValue()
		}
		for k, v := range want {
			if got[k] != v {
				return fmt.Errorf("topic %s has %s=%q, want %q", topic, k, got[k], v)
			}
		}
		return nil
	})
}
