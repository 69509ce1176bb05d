package script

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"millrace/tools/internal/cli"
	"millrace/tools/internal/client"
)

// Set implements pflag.Value.
func (w *Whole) Set(v string) error {
	n, err := strconv.ParseInt(v, 10, w.bits)
	if err != nil {
		return errors.New("not a number")
	}
	w.Given, w.Value = true, n
	return nil
}

// String implements pflag.Value.
func (w *Whole) String() string {
	if !w.Given {
		return ""
	}
	return strconv.FormatInt(w.Value, 10)
}

// Type implements pflag.Value.
func (w *Whole) Type() string { return "number" }

// UsageError is a command line that Kafka's scripts refuse. They say why, show
// their help on standard error, and end with exit status 1.
type UsageError struct{ Why string }

func (e *UsageError) Error() string { return e.Why }

// Usagef makes a UsageError.
func Usagef(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }

// Failed is a failure that was already written where Kafka's script writes it.
type Failed struct{ Status int }

func (e *Failed) Error() string { return "failed" }

// Execute runs cmd as Kafka's script of that name: its way of reading args, and its
// exit status, which is 1 for whatever goes wrong.
func Execute(ctx context.Context, cmd *cobra.Command, args []string) int {
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.CompletionOptions.DisableDefaultCmd = true
	cmd.Args = cobra.ArbitraryArgs
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return flagError(err) })
	ctx = context.WithValue(ctx, argsKey{}, args)
	cmd.Version = client.Version()
	cmd.InitDefaultHelpFlag()
	cmd.InitDefaultVersionFlag()
	expanded, err := Expand(cmd.Flags(), args)
	if err == nil {
		if expanded == nil {
			expanded = []string{} // nil would mean the process's own
		}
		cmd.SetArgs(expanded)
		err = cmd.ExecuteContext(ctx)
	}
	var usage *UsageError
	var failed *Failed
	switch {
	case err == nil:
		return cli.ExitOK
	case errors.As(err, &failed):
		return failed.Status
	case errors.As(err, &usage):
		fmt.Fprintln(cmd.ErrOrStderr(), usage.Why)
		writeHelp(cmd)
	default:
		fmt.Fprintln(cmd.ErrOrStderr(), err)
	}
	return cli.ExitFailure
}

type argsKey struct{}

// Args is the command line as it was given to Execute.
func Args(cmd *cobra.Command) []string {
	args, _ := cmd.Context().Value(argsKey{}).([]string)
	return args
}

func writeHelp(cmd *cobra.Command) {
	w := cmd.ErrOrStderr()
	fmt.Fprintf(w, "%s\n\nOptions:\n", cmd.Short)
	_, _ = io.WriteString(w, cmd.LocalFlags().FlagUsages())
}

// flagError says in Kafka's words what pflag says in its own.
func flagError(err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		return Usagef("Cannot parse argument '%s' of option %s", invalid.GetValue(), invalid.GetFlag().Name)
	}
	return &UsageError{err.Error()}
}

// Require refuses a command line without one of these options.
func Require(fs *pflag.FlagSet, names ...string) error {
	for _, name := range names {
		if !fs.Changed(name) {
			return Usagef("Missing required argument \"[%s]\"", name)
		}
	}
	return nil
}

// Exclude refuses a command line that has option and one of the others.
func Exclude(fs *pflag.FlagSet, option string, others ...string) error {
	if !fs.Changed(option) {
		return nil
	}
	for _, other := range others {
		if fs.Changed(other) {
			return Usagef("Option \"[%s]\" can't be used with option \"[%s]\"", other, option)
		}
	}
	return nil
}

// Given lists those of the options that were given.
func Given(fs *pflag.FlagSet, names ...string) []string {
	var out []string
	for _, name := range names {
		if fs.Changed(name) {
			out = append(out, name)
		}
	}
	return out
}

// Bracketed writes options as Kafka's messages do: [a], [b].
func Bracketed(names ...string) string {
	return "[" + strings.Join(names, "], [") + "]"
}

// Pairs reads name=value properties. A name without '=' means the empty value.
func Pairs(list []string) (map[string]string, error) {
	out := map[string]string{}
	for _, pair := range list {
		name, value, _ := strings.Cut(pair, "=")
		if name == "" {
			return nil, Usagef("Invalid command line properties: %s", strings.Join(list, " "))
		}
		out[name] = value
	}
	return out, nil
}
