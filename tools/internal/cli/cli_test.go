package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Claim: each error has the exit status that the help documents.
// Method: one error of each kind, bare and wrapped.
func TestErrorsHaveTheirExitStatus(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, ExitOK},
		{errors.New("x"), ExitFailure},
		{Usagef("x"), ExitUsage},
		{NotFoundf("x"), ExitNotFound},
		{Unreachablef("x"), ExitUnreachable},
		{kerr.UnknownTopicOrPartition, ExitNotFound},
		{kerr.TopicAlreadyExists, ExitNotFound},
		{kerr.MessageTooLarge, ExitFailure},
		{kerr.RequestTimedOut, ExitUnreachable},
		{kgo.ErrRecordTimeout, ExitUnreachable},
		{context.DeadlineExceeded, ExitUnreachable},
		{context.Canceled, ExitFailure},
	} {
		if got := Status(c.err); got != c.want {
			t.Errorf("%v: got %d, want %d", c.err, got, c.want)
		}
		if c.err != nil && Status(fmt.Errorf("around: %w", c.err)) != c.want {
			t.Errorf("%v wrapped lost its status", c.err)
		}
	}
}

// Claim: what is wrong before a command runs is usage (2), with a hint; what fails
// in it keeps its own status; errors are printed once.
// Method: a small command tree.
func TestCommandLineErrorsAreUsage(t *testing.T) {
	for _, c := range []struct {
		args string
		want int
	}{
		{"do", ExitOK},
		{"do --fail", ExitFailure},
		{"do --nope", ExitUsage},
		{"do extra", ExitUsage},
		{"other", ExitUsage},
		{"do --help", ExitOK},
	} {
		var fail bool
		root := &cobra.Command{Use: "root"}
		do := &cobra.Command{Use: "do", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error {
			if fail {
				return errors.New("failed on purpose")
			}
			return nil
		}}
		do.Flags().BoolVar(&fail, "fail", false, "")
		root.AddCommand(do)
		var printed bytes.Buffer
		root.SetErr(&printed)
		root.SetOut(io.Discard)
		root.SetArgs(strings.Fields(c.args))
		got := Execute(context.Background(), root)
		hint := strings.Contains(printed.String(), "--help'")
		if got != c.want || hint != (c.want == ExitUsage) || (got != ExitOK) != (printed.Len() > 0) {
			t.Errorf("%q: got %d, printed %q", c.args, got, printed.String())
		}
	}
}

// Claim: sizes and times are read as Kafka's tools take them and as people write them.
// Method: a table of both, and of what is refused.
func TestSizesAndTimes(t *testing.T) {
	for text, want := range map[string]Size{"0": 0, "16384": 16384, "64KiB": 65536, "1MB": 1e6, "1.5 KiB": 1536} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	for text, want := range map[string]time.Duration{"0": 0, "5000": 5 * time.Second, "30s": 30 * time.Second, "1.5s": 1500 * time.Millisecond} {
		if got, err := ParseMillis(text); err != nil || got.Duration() != want {
			t.Errorf("%q: %v, %v", text, got.Duration(), err)
		}
	}
	for _, text := range []string{"", "x", "-1", "10 parsecs"} {
		if _, err := ParseSize(text); err == nil {
			t.Errorf("size %q was taken", text)
		}
		if _, err := ParseMillis(text); err == nil {
			t.Errorf("time %q was taken", text)
		}
	}
}

// Claim: delimiters are read as people type them in a shell.
// Method: a table.
func TestUnescape(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "x": "x", `\n`: "\n", `\t`: "\t", `\0`: "\x00", `\x1f`: "\x1f", `\\`: `\`, `"`: `"`, "\n": "\n", `a\nb`: "a\nb",
	} {
		if got, err := Unescape(text); err != nil || got != want {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{`\q`, `\x1`, `\`} {
		if got, err := Unescape(text); err == nil {
			t.Errorf("%q was taken as %q", text, got)
		}
	}
}
