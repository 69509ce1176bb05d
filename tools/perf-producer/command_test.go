package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"millrace/tools/internal/cli"
)

// planOf resolves a command line without running it.
func planOf(t *testing.T, args string) (*plan, string, error) {
	t.Helper()
	o := &options{}
	cmd := newCommand()
	cmd.ResetFlags()
	o.register(cmd.Flags())
	var warned bytes.Buffer
	cmd.SetErr(&warned)
	if err := cmd.ParseFlags(strings.Fields(args)); err != nil {
		t.Fatal(err)
	}
	if err := o.connection.OnlyProperties(cmd.Flags().Args()); err != nil {
		return nil, "", err
	}
	p, err := o.plan(cmd, cmd.Flags().Args())
	return p, warned.String(), err
}

// Claim: a command line written for Kafka's tool is understood as it is.
// Method: the example of its help, and our flags beside it.
func TestKafkasCommandLineIsUnderstood(t *testing.T) {
	p, warned, err := planOf(t, "--topic a,b --topic c --num-records 10 --throughput -1 --record-size 100 --print-metrics "+
		"--producer-props acks=1 linger.ms=10 batch.size=32768 odd.name=1")
	if err != nil {
		t.Fatal(err)
	}
	s := p.settings
	if strings.Join(p.topics, " ") != "a b c" || p.records != 10 || p.throughput != -1 || !p.metrics ||
		s.Acks != 1 || s.Linger != 10*time.Millisecond || s.BatchSize != 32768 || s.LargestRecord != 100 {
		t.Errorf("got %+v, %+v", p, s)
	}
	if !strings.Contains(warned, "odd.name") {
		t.Errorf("no warning of the unknown property: %q", warned)
	}
	p, _, err = planOf(t, "--topic a --num-records 1 --payload-monotonic --acks 0 --compression lz4 --batch-size 1KiB --linger-ms 2 --idempotence=false")
	if err != nil {
		t.Fatal(err)
	}
	if s := p.settings; s.Acks != 0 || s.Compression != "lz4" || s.BatchSize != 1024 || s.Linger != 2*time.Millisecond || *s.Idempotence {
		t.Errorf("got %+v", s)
	}
}

// Claim: a wrong command line is a usage error that says what is wrong.
// Method: one of each kind, with a word its message must have.
func TestWrongCommandLines(t *testing.T) {
	for args, word := range map[string]string{
		"--num-records 1 --record-size 1":                                                  "--topic",
		"--topic t --num-records 1":                                                        "exactly one",
		"--topic t --num-records 1 --record-size 1 --payload-monotonic":                    "exactly one",
		"--topic t --record-size 1":                                                        "--num-records",
		"--topic t --num-records 0 --record-size 1":                                        "--num-records",
		"--topic t --num-records 1 --record-size 1 --throughput 0":                         "never",
		"--topic t --num-records 1 --record-size 1 --producers 0":                          "--producers",
		"--topic t --num-records 5 --record-size 1 --warmup-records 5":                     "--warmup-records",
		"--topic t --num-records 1 --record-size 1 --payload-order sequence":               "--payload-file",
		"--topic t --payload-file x --payload-order sequence --producers 2":                "order",
		"--topic t --num-records 1 --payload-file - ":                                      "standard input",
		"--topic t --num-records 1 --record-size 2000000":                                  "max.request.size",
		"--topic t --num-records 1 --record-size 1 --transactional-id x":                   "transactions",
		"--topic t --num-records 1 --record-size 1 --producer-props transactional.id=x":    "transactions",
		"--topic t --num-records 1 --record-size 1 --acks 2":                               "acks",
		"--topic t --num-records 1 --record-size 1 stray=1":                                "stray",
		"--topic t --num-records 1 --record-size 1 --producer-props stray":                 "stray",
		"--topic t --num-records 1 --record-size 1 --payload-order shuffled":               "random or sequence",
		"--topic t --num-records 1 --record-size 1 --payload-file x --payload-delimiter ,": "exactly one",
	} {
		_, _, err := planOf(t, args)
		if cli.Status(err) != cli.ExitUsage || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// values draws n values of one producer's source.
func values(t *testing.T, p *plan, n int) (out []string, err error) {
	t.Helper()
	src := p.payload(0)
	for i := range n {
		v, err := src.append(nil, int64(i))
		if err != nil {
			return out, err
		}
		out = append(out, string(v))
	}
	return out, nil
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "payload")
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

// Claim: in sequence every record of the file is sent, in order, as many as there
// are; more start again from the top.
// Method: a file with an empty and an unterminated line.
func TestSequenceIsTheFileInOrder(t *testing.T) {
	p, _, err := planOf(t, "--topic t --payload-order sequence --payload-file "+writeFile(t, "one\n\nthree"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := values(t, p, 5)
	if err != nil || p.records != 3 || p.settings.LargestRecord != 5 || strings.Join(got, ",") != "one,,three,one," {
		t.Errorf("got %q, %v; %d records, longest %d", got, err, p.records, p.settings.LargestRecord)
	}
}

// Claim: by default records are picked from the file at random, whole ones.
// Method: draw many; every line comes, nothing else does.
func TestRandomPicksWholeRecords(t *testing.T) {
	p, _, err := planOf(t, `--topic t --num-records 9 --payload-delimiter ;; --payload-file `+writeFile(t, "a;;b;c;;"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := values(t, p, 200)
	seen := map[string]int{}
	for _, v := range got {
		seen[v]++
	}
	if err != nil || len(seen) != 2 || seen["a"] == 0 || seen["b;c"] == 0 {
		t.Errorf("got %v, %v", seen, err)
	}
}

// Claim: sizes and letters of random records, and the numbers of monotonic ones.
// Method: draw some.
func TestGeneratedRecords(t *testing.T) {
	p, _, _ := planOf(t, "--topic t --num-records 9 --record-size 1003")
	got, err := values(t, p, 3)
	if err != nil || len(got[0]) != 1003 || got[0] == got[1] || strings.Trim(got[2], "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		t.Errorf("got %.60q, %v", got, err)
	}
	p, _, _ = planOf(t, "--topic t --num-records 9 --payload-monotonic")
	if got, err := values(t, p, 3); err != nil || strings.Join(got, " ") != "0 1 2" {
		t.Errorf("got %q, %v", got, err)
	}
}

// Claim: a record too large for the client is refused before anything is sent, and
// an empty or missing file, too.
// Method: such files.
func TestUnusableFiles(t *testing.T) {
	long := writeFile(t, strings.Repeat("x", 5000)+"\n")
	_, _, err := planOf(t, "--topic t --payload-order sequence --command-property max.request.size=4000 --payload-file "+long)
	if cli.Status(err) != cli.ExitUsage || !strings.Contains(err.Error(), "max.request.size=4000") {
		t.Errorf("too long: %v", err)
	}
	if _, _, err = planOf(t, "--topic t --payload-order sequence --payload-file "+writeFile(t, "")); err == nil {
		t.Error("an empty file was taken")
	}
	if _, _, err = planOf(t, "--topic t --payload-order sequence --payload-file "+long+"x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
}

// Claim: with a throughput the intended start of record i is fixed by i alone; a
// sender that is late does not move it.
// Method: a fake clock; the sender oversleeps in between.
func TestIntendedStartsDoNotMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &run{plan: &plan{throughput: 10}, begun: time.Now()}
		for i := range int64(50) {
			if i == 20 {
				time.Sleep(1234 * time.Millisecond)
			}
			start, err := r.await(context.Background(), i)
			if err != nil || start.Sub(r.begun).Round(time.Microsecond) != time.Duration(i)*100*time.Millisecond {
				t.Fatalf("record %d: %v, %v", i, start.Sub(r.begun), err)
			}
			if time.Now().Before(start) {
				t.Fatalf("record %d left before its time", i)
			}
		}
		if took := time.Since(r.begun); took.Round(time.Microsecond) != 4900*time.Millisecond {
			t.Errorf("50 records at 10/s took %v: the lateness was not caught up", took)
		}
	})
}

// Claim: waiting for a start ends with the run.
// Method: a start far off, a context that ends.
func TestWaitEndsWithTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		r := &run{plan: &plan{throughput: 0.001}, begun: time.Now()}
		if _, err := r.await(ctx, 5); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

// Claim: the help shows every flag that works and none that does not.
// Method: read it.
func TestHelpTeaches(t *testing.T) {
	cmd := newCommand()
	var b bytes.Buffer
	cmd.SetOut(&b)
	cmd.SetErr(io.Discard)
	cmd.SetArgs([]string{"--help"})
	if got := cli.Execute(context.Background(), cmd); got != cli.ExitOK {
		t.Fatal(got)
	}
	for _, want := range []string{"--payload-order", "--producer-props", "Exit status", "--throughput 50000"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("help lacks %q", want)
		}
	}
	if strings.Contains(b.String(), "transactional-id") {
		t.Error("help shows what is not supported")
	}
}
