package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	_ "net/http/pprof" // for --pprof
	"strings"
	"time"

	"github.com/spf13/cobra"

	"millrace/coord/zk"
	"millrace/tools/internal/cli"
)

func newCoordinator() *cobra.Command {
	var file, level, profiles string
	var overrides []string
	cmd := &cobra.Command{
		Use:   "coordinator [--config zoo.cfg] [--override key=value ...]",
		Short: "Run the coordination service alone, in ZooKeeper's place",
		Long: `Run the coordination service until SIGTERM or SIGINT, which stop it cleanly with exit
status 0. It speaks ZooKeeper 3.9's client protocol; sessions outlive a restart.

Without --config it serves 127.0.0.1:2181 from ./coordination. The file is a zoo.cfg, with
ZooKeeper's keys; a key that has no effect here is warned about by name. When clients are
accepted, one line goes to standard output; a script can wait for it:

  ready coordinator=127.0.0.1:2181 in=12ms

Everything else is logged to standard error.

Keys:
` + coordinatorHelp(),
		Example: `  millrace coordinator
  millrace coordinator --config /etc/zookeeper/conf/zoo.cfg
  millrace coordinator --override clientPort=0 --override dataDir=/tmp/c --override 4lw.commands.whitelist='*'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var l slog.Level
			if err := l.UnmarshalText([]byte(level)); err != nil {
				return cli.Usagef("--log-level must be debug, info, warn or error")
			}
			log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: l}))
			c, err := loadCoordinator(file, overrides, log)
			if err != nil {
				return err
			}
			c.Logger = log
			if profiles != "" {
				go http.ListenAndServe(profiles, nil) // ends with the process
			}
			return coordinate(cmd.Context(), cmd.OutOrStdout(), c.Options)
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "a zoo.cfg file, with ZooKeeper's keys")
	cmd.Flags().StringArrayVar(&overrides, "override", nil, "one key=value that wins over the file (repeatable)")
	cmd.Flags().StringVar(&level, "log-level", "info", "debug, info, warn or error")
	cmd.Flags().StringVar(&profiles, "pprof", "", "address at which to serve profiles")
	cmd.Flags().MarkHidden("pprof") // for benchmarks/coordination
	return cmd
}

func coordinatorHelp() string {
	var b strings.Builder
	for _, k := range coordinatorKeys {
		fmt.Fprintf(&b, "  %-26s %s\n", k.name, k.help)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// coordinate serves until ctx ends or the disk fails.
func coordinate(ctx context.Context, out io.Writer, o zk.Options) error {
	s, err := zk.Start(o)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "ready coordinator=%s in=%dms\n", s.Addr(), time.Since(processBegun).Milliseconds())
	select {
	case <-ctx.Done():
		o.Logger.Info("stopping")
	case <-s.Done():
	}
	err = s.Close()
	return errors.Join(s.Err(), err)
}
