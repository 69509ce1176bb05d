// Command kcat drives kcat, that is the distribution's librdkafka, and tells of it in the lines of the other programs.
package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"millrace/tools/compat/clients/go/report"
)

func main() {
	if out, err := exec.Command("kcat", "-V").Output(); err == nil {
		_, version, _ := strings.Cut(string(out), "Version ")
		version, _, _ = strings.Cut(version, " (")
		_, library, _ := strings.Cut(string(out), "librdkafka ")
		library, _, _ = strings.Cut(library, " ")
		report.Version("kcat " + version + " with librdkafka " + library)
	}
	report.Main(report.Acts{"produce": produce, "consume": consume, "limit": limit, "member": member, "transaction": transaction})
}

// run gives kcat a file's content as one message, or standard input.
func run(stdin io.Reader, args ...string) error {
	cmd := exec.Command("kcat", args...)
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = stdin, &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return nil
}

func produce(ctx context.Context, bootstrap string, a report.Args) error {
	records, err := report.Read(a.File)
	if err != nil {
		return err
	}
	base := []string{"-P", "-b", bootstrap, "-t", a.Topic, "-p", "0", "-z", a.Codec, "-X", "enable.idempotence=" + strconv.FormatBool(a.Idempotent), "-X", "linger.ms=5"}
	for i := 0; i < len(records); {
		if r := records[i]; i < a.Single || len(r.Headers) > 0 {
			if err := one(base, a.File+".one", r); err != nil {
				return err
			}
			i++
			continue
		}
		var lines bytes.Buffer
		for ; i < len(records) && len(records[i].Headers) == 0; i++ {
			if records[i].Key != nil {
				fmt.Fprintf(&lines, "%s\t", records[i].Key)
			}
			lines.Write(append(records[i].Value, '\n'))
		}
		if err := run(&lines, append(base, "-K", "\\t")...); err != nil {
			return err
		}
	}
	return nil
}

// one sends a record by itself: the value is a file's content, so that it may hold any byte.
func one(base []string, file string, r report.Record) error {
	args := append([]string{}, base...)
	if len(r.Value) == 0 { // kcat does not send an empty file; a line that ends behind its key it does
		if r.Value == nil {
			args = append(args, "-Z")
		}
		return run(strings.NewReader(string(r.Key)+"\t\n"), append(args, "-K", "\\t")...)
	}
	if err := os.WriteFile(file, r.Value, 0o600); err != nil {
		return err
	}
	if r.Key != nil {
		args = append(args, "-k", string(r.Key))
	}
	for _, h := range r.Headers {
		if h.Value == nil {
			args = append(args, "-H", h.Key)
		} else {
			args = append(args, "-H", h.Key+"="+string(h.Value))
		}
	}
	return run(nil, append(args, file)...)
}

// format prints what parse reads: lengths before bytes.
const format = "%p %o %T %K %S %h\n%k%s\n"

func consume(ctx context.Context, bootstrap string, a report.Args) error {
	for topic, n := range a.Topics {
		out, err := exec.Command("kcat", "-C", "-q", "-b", bootstrap, "-t", topic, "-p", "0", "-o", "beginning", "-c", strconv.Itoa(n), "-f", format).Output()
		if err != nil {
			return err
		}
		for r := bufio.NewReader(bytes.NewReader(out)); n > 0; n-- {
			if err := parse(r, topic); err != nil {
				return fmt.Errorf("%s: %w", topic, err)
			}
		}
	}
	return nil
}

// parse reads a message in format and tells of it.
func parse(in *bufio.Reader, topic string) error {
	head, err := in.ReadString('\n')
	if err != nil {
		return err
	}
	f := strings.SplitN(strings.TrimSuffix(head, "\n"), " ", 6)
	if len(f) != 6 {
		return fmt.Errorf("a message begins with %q", head)
	}
	var n [5]int64
	for i := range n {
		if n[i], err = strconv.ParseInt(f[i], 10, 64); err != nil {
			return err
		}
	}
	r := report.Record{Time: n[2]}
	if r.Key, err = take(in, n[3]); err != nil {
		return err
	}
	if r.Value, err = take(in, n[4]); err != nil {
		return err
	}
	if _, err := in.ReadByte(); err != nil {
		return err
	}
	if f[5] != "" {
		for h := range strings.SplitSeq(f[5], ",") {
			k, v, _ := strings.Cut(h, "=")
			header := report.Header{Key: k, Value: []byte(v)}
			if v == "NULL" {
				header.Value = nil
			}
			r.Headers = append(r.Headers, header)
		}
	}
	report.Got(topic, int32(n[0]), n[1], r)
	return nil
}

// take reads n bytes; -1 is null.
func take(in io.Reader, n int64) ([]byte, error) {
	if n < 0 {
		return nil, nil
	}
	b := make([]byte, n)
	_, err := io.ReadFull(in, b)
	return b, err
}

func limit(ctx context.Context, bootstrap string, a report.Args) error {
	base := []string{"-P", "-b", bootstrap, "-t", a.Topic, "-p", "0", "-X", "message.max.bytes=4194304"}
	report.Must("fits", one(base, a.File, report.Record{Value: make([]byte, a.Fit)}))
	report.Step("over", one(base, a.File, report.Record{Value: make([]byte, a.Over)}))
	return nil
}

// member passes SIGTERM on, at which kcat leaves the group.
func member(ctx context.Context, bootstrap string, a report.Args) error {
	cmd := exec.CommandContext(ctx, "kcat", "-b", bootstrap, "-q", "-u", "-E", "-f", format, "-X", "auto.offset.reset=earliest", "-X", "auto.commit.interval.ms=100",
		"-X", "session.timeout.ms=6000", "-X", "heartbeat.interval.ms=500", "-G", a.Group, a.Topic)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	in := bufio.NewReader(out)
	for err == nil {
		err = parse(in, a.Topic)
	}
	if ctx.Err() != nil {
		cmd.Wait()
		return nil
	}
	return fmt.Errorf("kcat ended: %w, %v", err, cmd.Wait())
}

// transaction: all of a run's messages are one, which is committed at the end of its input. Only the log says why there is no
// coordinator, which librdkafka looks for until its time is up.
func transaction(ctx context.Context, bootstrap string, a report.Args) error {
	err := run(strings.NewReader("1\n2\n3\n"), "-P", "-b", bootstrap, "-t", a.Topic, "-p", "0", "-X", "transactional.id=t1", "-m", "5", "-d", "eos")
	if err == nil {
		return nil
	}
	for line := range strings.Lines(err.Error()) {
		if _, why, ok := strings.Cut(line, "Failed to find transaction coordinator"); ok {
			return fmt.Errorf("init_transactions timed out; its log: no transaction coordinator%s", strings.TrimSpace(why))
		}
	}
	return err
}
