// Package testbroker gives tests of the tools a broker to talk to.
package testbroker

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"millrace/broker"
	"millrace/tools/internal/cli"
)

// Variable names a broker to use instead, host:port. The tools are for any Kafka
// broker, and this is how their tests run against another one.
const Variable = "MILLRACE_TEST_BOOTSTRAP"

// Start gives the address of a broker that lives as long as the test: one in this
// process with a data directory of its own, or the one that Variable names.
func Start(tb testing.TB) string {
	tb.Helper()
	if address := os.Getenv(Variable); address != "" {
		return address
	}
	return StartIn(tb, tb.TempDir())
}

// StartIn is Start with a broker in this process over these data directories.
func StartIn(tb testing.TB, dirs ...string) string {
	tb.Helper()
	config, _, err := broker.LoadConfig("", []string{
		"listeners=PLAINTEXT://127.0.0.1:0",
		"admin.listener=",
		"node.id=1",
		"group.initial.rebalance.delay.ms=0", // members of tests come alone
		"log.dirs=" + strings.Join(dirs, ","),
	})
	if err != nil {
		tb.Fatal(err)
	}
	config.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	b, err := broker.Start(ctx, config)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := b.Stop(ctx); err != nil {
			tb.Error("stopping the broker:", err)
		}
	})
	return b.Addr("")
}

// Topic makes a topic with a name of its own and gives the name.
func Topic(tb testing.TB, address string, partitions int32, configs map[string]*string) string {
	tb.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(address))
	if err != nil {
		tb.Fatal(err)
	}
	defer cl.Close()
	name := "tools-" + time.Now().UTC().Format("150405.000000000")
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if _, err := kadm.NewClient(cl).CreateTopic(ctx, partitions, 1, configs, name); err != nil {
		tb.Fatal(err)
	}
	return name
}

// Lines is text of about size bytes that looks like a real file: lines of many
// lengths, empty ones, long ones, bytes that are no UTF-8, and no repetition that
// would make codecs look better than they are. It ends with a newline.
func Lines(size int) []byte {
	state := uint64(0x9E3779B97F4A7C15)
	next := func() uint64 { // xorshift: the same text in every run
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
		return state
	}
	out := make([]byte, 0, size+8192)
	for len(out) < size {
		length := int(next() % 120)
		switch next() % 100 {
		case 0:
			length = 0
		case 1:
			length = int(next() % 8000)
		}
		for range length {
			b := byte('a' + next()%26)
			if next()%50 == 0 {
				b = byte(next())
			}
			if b == '\n' {
				b = ' '
			}
			out = append(out, b)
		}
		out = append(out, '\n')
	}
	return out
}

// Run runs a command to its end, within a minute, and gives its standard output. Any
// other exit status than want ends the test.
func Run(tb testing.TB, cmd *cobra.Command, want int, args ...string) string {
	tb.Helper()
	var out, errs bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	cmd.SetArgs(args)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if got := cli.Execute(ctx, cmd); got != want {
		tb.Fatalf("exit status %d, want %d: %s%s", got, want, errs.String(), out.String())
	}
	return out.String()
}
