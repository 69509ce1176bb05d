package script

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"

	"millrace/tools/internal/cli"
)

// options is a command with an option of each kind.
type options struct {
	list   bool
	topic  string
	state  Maybe
	number Whole
	ran    bool
}

func command(o *options, f func(*cobra.Command) error) *cobra.Command {
	cmd := &cobra.Command{Use: "kafka-x.sh", Short: "This tool is for tests.", RunE: func(cmd *cobra.Command, _ []string) error {
		o.ran = true
		return f(cmd)
	}}
	fs := cmd.Flags()
	fs.BoolVar(&o.list, "list", false, "list")
	fs.StringVarP(&o.topic, "topic", "t", "", "topic")
	o.state.Register(fs, "state", "state")
	o.number.Register(fs, 32, "shift-by", "shift")
	return cmd
}

// Claim: a command line is read as Kafka's scripts read it.
// Method: each way to give an option, and what is refused, in Kafka's words.
func TestExpandReadsAsKafkasScripts(t *testing.T) {
	for _, c := range []struct{ args, want, refused string }{
		{"--list --topic a", "--list --topic=a", ""},
		{"--topic=a=b", "--topic=a=b", ""},
		{"-list -topic a -t b", "--list --topic=a --topic=b", ""},
		{"--state", "--state", ""},
		{"--state --list", "--state --list", ""},
		{"--state stable,empty --list", "--state=stable,empty --list", ""},
		{"--shift-by -5", "--shift-by=-5", ""},
		{"--topic --list", "--topic=--list", ""},
		{"cluster-id --list x", "cluster-id --list x", ""},
		{"--list -- --topic", "--list -- --topic", ""},
		{"--lis", "", "lis is not a recognized option"},
		{"--nope=1", "", "nope is not a recognized option"},
		{"-x", "", "x is not a recognized option"},
		{"--topic", "", "Option topic requires an argument"},
	} {
		got, err := Expand(command(&options{}, nil).Flags(), strings.Fields(c.args))
		var usage *UsageError
		switch {
		case c.refused != "" && (!errors.As(err, &usage) || usage.Why != c.refused):
			t.Errorf("%s: %v", c.args, err)
		case c.refused == "" && (err != nil || !slices.Equal(got, strings.Fields(c.want))):
			t.Errorf("%s: %q, %v", c.args, got, err)
		}
	}
}

// Claim: a script ends with Kafka's exit statuses: 1 for whatever fails, 0 for help and
// version; what is wrong with the command line is said with the help behind it.
// Method: one end of each kind.
func TestExecuteEndsAsKafkasScripts(t *testing.T) {
	for _, c := range []struct {
		args   string
		err    error
		want   int
		says   string
		ran    bool
		helped bool
	}{
		{"--list", nil, 0, "", true, false},
		{"", errors.New("it broke"), 1, "it broke", true, false},
		{"", cli.Unreachablef("nobody there"), 1, "nobody there", true, false},
		{"", Usagef("not like that"), 1, "not like that", true, true},
		{"", &Failed{7}, 7, "", true, false},
		{"--nope", nil, 1, "nope is not a recognized option", false, true},
		{"--shift-by x", nil, 1, "Cannot parse argument 'x' of option shift-by", false, true},
		{"--shift-by 3000000000", nil, 1, "Cannot parse argument '3000000000' of option shift-by", false, true},
		{"--help", nil, 0, "", false, false},
		{"--version", nil, 0, "", false, false},
		{"stray words --list", nil, 0, "", true, false},
	} {
		var errs bytes.Buffer
		o := &options{}
		cmd := command(o, func(*cobra.Command) error { return c.err })
		cmd.SetOut(io.Discard)
		cmd.SetErr(&errs)
		got := Execute(t.Context(), cmd, strings.Fields(c.args))
		helped := strings.Contains(errs.String(), "This tool is for tests.")
		if got != c.want || o.ran != c.ran || helped != c.helped || !strings.HasPrefix(errs.String(), c.says) {
			t.Errorf("%q, %v: status %d, ran %v, said %q", c.args, c.err, got, o.ran, errs.String())
		}
	}
}

// Claim: the option with and without a value differ, and the number knows if it was given.
// Method: parse and look.
func TestOptionValues(t *testing.T) {
	o := &options{}
	var args []string
	cmd := command(o, func(cmd *cobra.Command) error { args = Args(cmd); return nil })
	if Execute(t.Context(), cmd, []string{"--state", "--shift-by", "-3"}) != 0 || !o.state.Given || o.state.Value != "" || o.number.Value != -3 || !o.number.Given {
		t.Errorf("%+v", o)
	}
	if !slices.Equal(args, []string{"--state", "--shift-by", "-3"}) {
		t.Errorf("the command line is %q", args)
	}
	o = &options{}
	if Execute(t.Context(), command(o, func(*cobra.Command) error { return nil }), []string{"--state", "empty"}) != 0 || o.state.Value != "empty" || o.number.Given {
		t.Errorf("%+v", o)
	}
}

// Claim: refusals name the options as Kafka does.
// Method: both kinds.
func TestRequireAndExclude(t *testing.T) {
	cmd := command(&options{}, nil)
	if err := cmd.ParseFlags([]string{"--list", "--topic=a"}); err != nil {
		t.Fatal(err)
	}
	fs := cmd.Flags()
	for _, c := range []struct {
		err  error
		want string
	}{
		{Require(fs, "list", "topic"), ""},
		{Require(fs, "list", "state"), `Missing required argument "[state]"`},
		{Exclude(fs, "list", "state"), ""},
		{Exclude(fs, "state", "list"), ""},
		{Exclude(fs, "list", "state", "topic"), `Option "[topic]" can't be used with option "[list]"`},
	} {
		if c.want == "" && c.err != nil || c.want != "" && (c.err == nil || c.err.Error() != c.want) {
			t.Errorf("got %v, want %q", c.err, c.want)
		}
	}
	if got := Bracketed(Given(fs, "list", "state", "topic")...); got != "[list], [topic]" {
		t.Errorf("got %s", got)
	}
}

// Claim: the broker's own words come first, then what Kafka's clients say for a code.
// Method: with and without words.
func TestSay(t *testing.T) {
	for _, c := range []struct {
		err           error
		message, want string
	}{
		{kerr.InvalidConfig, "no such setting", "no such setting"},
		{kerr.UnknownTopicOrPartition, "", "This server does not host this topic-partition."},
		{kerr.InvalidConfig, "", kerr.InvalidConfig.Description},
		{errors.New("x"), "", "x"},
	} {
		if got := Say(c.err, c.message); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// Claim: properties are name=value; a bare name means the empty value.
// Method: a few.
func TestPairs(t *testing.T) {
	got, err := Pairs([]string{"a=1", "b=c=d", "key.separator"})
	if err != nil || got["a"] != "1" || got["b"] != "c=d" || got["key.separator"] != "" || len(got) != 3 {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := Pairs([]string{"=1"}); err == nil {
		t.Error("a pair without a name was taken")
	}
}
