package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// Run executes a root command and returns the exit status. SIGINT and SIGTERM
// cancel the command's context: each command ends in its own orderly way, and a
// second signal ends the process at once.
//
// Errors are printed here and nowhere else, as one line on standard error.
func Run(root *cobra.Command) int {
	ctx, stop := Signals()
	defer stop()
	return Execute(ctx, root)
}

// Signals gives a context that ends with SIGINT or SIGTERM. stop must be called.
func Signals() (ctx context.Context, stop context.CancelFunc) {
	ctx, stop = signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // from then on the signals have their default effect again
	return ctx, stop
}

// Execute is Run without the signals, for tests.
func Execute(ctx context.Context, root *cobra.Command) int {
	started := false
	root.SilenceErrors, root.SilenceUsage = true, true
	root.PersistentPreRun = func(*cobra.Command, []string) { started = true }
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &Error{ExitUsage, err} })

	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return ExitOK
	}
	// Whatever fails before a command's own code runs (unknown command, wrong
	// number of arguments) is the command line's fault; cobra has no type for it.
	if own := (*Error)(nil); !started && !errors.As(err, &own) {
		err = &Error{ExitUsage, err}
	}
	status := Status(err)
	fmt.Fprintf(root.ErrOrStderr(), "%s: %v\n", cmd.CommandPath(), err)
	if status == ExitUsage {
		fmt.Fprintf(root.ErrOrStderr(), "Try '%s --help'.\n", cmd.CommandPath())
	}
	return status
}
