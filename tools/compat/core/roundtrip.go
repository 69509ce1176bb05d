package core

import (
	"bufio"
	"fmt"
	"millrace/tools/compat/harness"
	"os"
	"path/filepath"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// pythonMost is the size in MB up to which kafka-python reads everything.
const pythonMost = 50

var codecs = []string{"none", "gzip", "snappy", "lz4", "zstd"}

// client sends a file's lines to a topic's partition 0, or reads them back into a file.
type client struct {
	name string
	put  func(e *harness.Env, addr, topic, file, codec string) error
	get  func(e *harness.Env, addr, topic, file string) error
}

// title is the client's heading in the table.
func (c client) title() string {
	switch c.name {
	case "kcat":
		return "kcat (librdkafka)"
	case "millrace", "perf-producer":
		return "Millrace's own tools"
	}
	return c.name
}

// which tells our own tools apart.
func (c client) which() string {
	if c.title() == "Millrace's own tools" {
		return " by " + c.name
	}
	return ""
}

func clients() []client {
	return []client{
		{"kcat", kcatPut, kcatGet},
		{"perf-producer", perfProducerPut, nil},
		{"millrace", millracePut, millraceGet},
		{"franz-go", nil, franzGet},
		{"kafka-python", pythonPut, pythonGet},
	}
}

// roundTripChecks: what each client produced with each codec comes out of every other byte by byte. In the short run
// the clients take turns with the codecs.
func roundTripChecks() []harness.Check {
	var out []harness.Check
	for i, p := range clients() {
		if p.put == nil {
			continue
		}
		for j, codec := range codecs {
			out = append(out, harness.Check{
				Client: p.title(), Name: "a real file in" + p.which() + ", " + codec + ", out of every client", Short: i%len(codecs) == j || p.name == "millrace", Limit: 15 * time.Minute,
				Run: func(e *harness.Env) error { return roundTrip(e, p, codec) },
			})
		}
	}
	return out
}

func roundTrip(e *harness.Env, p client, codec string) error {
	file, err := harness.Corpus(e.Cache, e.MB)
	if err != nil {
		return err
	}
	m, err := harness.StartMillrace(e)
	if err != nil {
		return err
	}
	defer m.Kill()
	if err := harness.CreateTopic(m.Addr, "file", 1); err != nil {
		return err
	}
	if err := p.put(e, m.Addr, "file", file, codec); err != nil {
		return err
	}
	for _, c := range clients() {
		if c.get == nil || c.name == "kafka-python" && e.MB > pythonMost && p.name != "kcat" {
			continue // it reads a large file once for each codec: that takes minutes
		}
		got := filepath.Join(e.Dir, "out-"+c.name)
		if err := c.get(e, m.Addr, "file", got); err != nil {
			return fmt.Errorf("reading with %s: %w", c.name, err)
		}
		if err := harness.SameFile(file, got); err != nil {
			return fmt.Errorf("%s in, %s out: %w", p.name, c.name, err)
		}
		if err := os.Remove(got); err != nil {
			return err
		}
	}
	return m.Stop()
}

func kcatPut(e *harness.Env, addr, topic, file, codec string) error {
	kcat, err := harness.NeedKcat()
	if err != nil {
		return err
	}
	return e.Tool(file, "", kcat, "-P", "-b", addr, "-t", topic, "-p", "0", "-z", codec, "-X", "acks=all", "-X", "enable.idempotence=true")
}

func kcatGet(e *harness.Env, addr, topic, file string) error {
	kcat, err := harness.NeedKcat()
	if err != nil {
		return err
	}
	return e.Tool("", file, kcat, "-C", "-q", "-e", "-b", addr, "-t", topic, "-p", "0", "-o", "beginning")
}

func perfProducerPut(e *harness.Env, addr, topic, file, codec string) error {
	return e.Tool("", filepath.Join(e.Dir, "perf.out"), filepath.Join(e.Bin, "perf-producer"), "--bootstrap-server", addr, "--topic", topic,
		"--payload-file", file, "--payload-order", "sequence", "--throughput", "-1", "--compression", codec, "--acks", "all")
}

func millracePut(e *harness.Env, addr, topic, file, codec string) error {
	return e.Tool(file, "", filepath.Join(e.Bin, "millrace"), "produce", topic, "--bootstrap-server", addr, "--compression", codec)
}

func millraceGet(e *harness.Env, addr, topic, file string) error {
	return e.Tool("", file, filepath.Join(e.Bin, "millrace"), "consume", topic, "--bootstrap-server", addr, "--from-beginning", "--to-end")
}

func pythonPut(e *harness.Env, addr, topic, file, codec string) error {
	return pythonRun(e, "produce", addr, topic, file, codec)
}

func pythonGet(e *harness.Env, addr, topic, file string) error {
	return pythonRun(e, "consume", addr, topic, file)
}

func pythonRun(e *harness.Env, args ...string) error {
	py, err := harness.NeedPython(e.Cache)
	if err != nil {
		return err
	}
	script := filepath.Join(e.Root, "tools", "compat", "core", "kafka_python.py")
	return e.Tool("", filepath.Join(e.Dir, "python.out"), py, append([]string{script}, args...)...)
}

// franzGet reads with franz-go from the start to the end as it was at the beginning.
func franzGet(e *harness.Env, addr, topic, file string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	if err := harness.ReadAll(addr, topic, 0, func(r *kgo.Record) error {
		w.Write(r.Value)
		return w.WriteByte('\n')
	}); err != nil {
		return err
	}
	return w.Flush()
}
