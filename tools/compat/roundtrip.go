package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// pythonMost is the size in MB up to which kafka-python reads everything.
const pythonMost = 50

var codecs = []string{"none", "gzip", "snappy", "lz4", "zstd"}

// client sends a file's lines to a topic's partition 0, or reads them back into a file.
type client struct {
	name string
	put  func(e *env, addr, topic, file, codec string) error
	get  func(e *env, addr, topic, file string) error
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
func roundTripChecks() []check {
	var out []check
	for i, p := range clients() {
		if p.put == nil {
			continue
		}
		for j, codec := range codecs {
			out = append(out, check{
				name: "real file: " + p.name + " in, " + codec, short: i%len(codecs) == j || p.name == "millrace", limit: 15 * time.Minute,
				run: func(e *env) error { return roundTrip(e, p, codec) },
			})
		}
	}
	return out
}

func roundTrip(e *env, p client, codec string) error {
	file, err := corpus(e)
	if err != nil {
		return err
	}
	m, err := startMillrace(e)
	if err != nil {
		return err
	}
	defer m.kill()
	if err := createTopic(m.addr, "file", 1); err != nil {
		return err
	}
	if err := p.put(e, m.addr, "file", file, codec); err != nil {
		return err
	}
	for _, c := range clients() {
		if c.get == nil || c.name == "kafka-python" && e.mb > pythonMost && p.name != "kcat" {
			continue // it reads a large file once for each codec: that takes minutes
		}
		got := filepath.Join(e.dir, "out-"+c.name)
		if err := c.get(e, m.addr, "file", got); err != nil {
			return fmt.Errorf("reading with %s: %w", c.name, err)
		}
		if err := sameFile(file, got); err != nil {
			return fmt.Errorf("%s in, %s out: %w", p.name, c.name, err)
		}
		if err := os.Remove(got); err != nil {
			return err
		}
	}
	return m.stop()
}

func createTopic(addr, topic string, partitions int32) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	_, err = kadm.NewClient(cl).CreateTopic(ctx, partitions, 1, nil, topic)
	return err
}

func kcatPut(e *env, addr, topic, file, codec string) error {
	kcat, err := needKcat()
	if err != nil {
		return err
	}
	return tool(e.dir, file, "", kcat, "-P", "-b", addr, "-t", topic, "-p", "0", "-z", codec, "-X", "acks=all", "-X", "enable.idempotence=true")
}

func kcatGet(e *env, addr, topic, file string) error {
	kcat, err := needKcat()
	if err != nil {
		return err
	}
	return tool(e.dir, "", file, kcat, "-C", "-q", "-e", "-b", addr, "-t", topic, "-p", "0", "-o", "beginning")
}

func perfProducerPut(e *env, addr, topic, file, codec string) error {
	return tool(e.dir, "", filepath.Join(e.dir, "perf.out"), filepath.Join(e.bin, "perf-producer"), "--bootstrap-server", addr, "--topic", topic,
		"--payload-file", file, "--payload-order", "sequence", "--throughput", "-1", "--compression", codec, "--acks", "all")
}

func millracePut(e *env, addr, topic, file, codec string) error {
	return tool(e.dir, file, "", filepath.Join(e.bin, "millrace"), "produce", topic, "--bootstrap-server", addr, "--compression", codec)
}

func millraceGet(e *env, addr, topic, file string) error {
	return tool(e.dir, "", file, filepath.Join(e.bin, "millrace"), "consume", topic, "--bootstrap-server", addr, "--from-beginning", "--to-end")
}

func pythonPut(e *env, addr, topic, file, codec string) error {
	return pythonRun(e, "produce", addr, topic, file, codec)
}

func pythonGet(e *env, addr, topic, file string) error {
	return pythonRun(e, "consume", addr, topic, file)
}

func pythonRun(e *env, args ...string) error {
	py, err := needPython(e.cache)
	if err != nil {
		return err
	}
	script := filepath.Join(filepath.Dir(e.bin), "tools", "compat", "kafka_python.py")
	return tool(e.dir, "", filepath.Join(e.dir, "python.out"), py, append([]string{script}, args...)...)
}

// franzGet reads with franz-go from the start to the end as it was at the beginning.
func franzGet(e *env, addr, topic, file string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	if err := readAll(addr, topic, 0, func(r *kgo.Record) error {
		w.Write(r.Value)
		return w.WriteByte('\n')
	}); err != nil {
		return err
	}
	return w.Flush()
}

// readAll calls each for every record of a partition, in order, up to the end as it is now.
func readAll(addr, topic string, partition int32, each func(*kgo.Record) error) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {partition: kgo.NewOffset().AtStart()}}))
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, topic)
	if err != nil {
		return err
	}
	end, ok := ends.Lookup(topic, partition)
	if !ok || end.Err != nil {
		return fmt.Errorf("end offset of %s-%s: %v", topic, strconv.Itoa(int(partition)), end.Err)
	}
	for next := int64(0); next < end.Offset; {
		fs := cl.PollFetches(ctx)
		if errs := fs.Errors(); len(errs) > 0 {
			return errs[0].Err
		}
		for _, r := range slices.Collect(fs.RecordsAll()) {
			if err := each(r); err != nil {
				return err
			}
			next = r.Offset + 1
		}
	}
	return nil
}
