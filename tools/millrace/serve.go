package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"millrace/broker"
	"millrace/tools/internal/cli"
)

// processBegun is as near to the start of the process as Go code gets; the ready
// line counts from here.
var processBegun = time.Now()

// stopLimit bounds a clean stop. Connections are drained in a fraction of it; the
// rest is for syncing and closing a great many logs.
const stopLimit = 30 * time.Second

func newServe() *cobra.Command {
	var file, level string
	var overrides []string
	cmd := &cobra.Command{
		Use:   "serve [--config server.properties] [--override key=value ...]",
		Short: "Run the broker",
		Long: `Run the broker until SIGTERM or SIGINT, which stop it cleanly with exit status 0.

Without --config it serves PLAINTEXT://127.0.0.1:9092 from ./data. The admin port is
127.0.0.1:9644 unless admin.listener names another; if that port is taken and was not
named, the broker goes without. Port 0 lets the system choose a free one.

When clients are accepted, one line goes to standard output; a script can wait for it:

  ready id=1 listeners=PLAINTEXT://127.0.0.1:9092 coordinator=127.0.0.1:2181 in=42ms

Everything else is logged to standard error.`,
		Example: `  millrace serve
  millrace serve --config server.properties
  millrace serve --override listeners=PLAINTEXT://127.0.0.1:0 --override log.dirs=/tmp/m`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := loadConfig(file, overrides, cmd.ErrOrStderr(), level)
			if err != nil {
				return err
			}
			return serve(cmd.Context(), cmd, config)
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "a server.properties file, with Kafka's keys")
	cmd.Flags().StringArrayVar(&overrides, "override", nil, "one key=value that wins over the file (repeatable)")
	cmd.Flags().StringVar(&level, "log-level", "info", "debug, info, warn or error")
	return cmd
}

// withoutFile is what counts when no --config is given: a broker for the machine it
// runs on and nobody else, with its data where it was started. Keys not here have
// Kafka's defaults. log.dir, because both log.dir and log.dirs win over it.
var withoutFile = []string{
	"listeners=PLAINTEXT://127.0.0.1:9092",
	"log.dir=./data",
}

// firstID is the id of a broker that nobody gave one, in a new data directory.
const firstID = "1"

func loadConfig(file string, overrides []string, logs io.Writer, level string) (broker.Config, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return broker.Config{}, cli.Usagef("--log-level must be debug, info, warn or error")
	}
	logger := slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: l}))
	if file == "" {
		overrides = slices.Concat(withoutFile, overrides) // the later of two wins
	}
	config, warnings, err := broker.LoadConfig(file, overrides)
	for _, w := range warnings {
		logger.Warn("configuration", "key", w.Key, "message", w.Message)
	}
	var bad *broker.ConfigError
	if errors.As(err, &bad) {
		return config, &cli.Error{Status: cli.ExitUsage, Err: err}
	}
	if err != nil {
		return config, err
	}
	config.Logger = logger
	if file == "" && config.NodeID < 0 && !anyIdentity(config.LogDirs) {
		err = config.Set("node.id", firstID)
	}
	return config, err
}

// anyIdentity says whether a data directory already belongs to a broker.
func anyIdentity(dirs []string) bool {
	for _, dir := range dirs {
		if _, err := os.Stat(filepath.Join(dir, "meta.properties")); err == nil {
			return true
		}
	}
	return false
}

func serve(ctx context.Context, cmd *cobra.Command, config broker.Config) error {
	b, err := broker.Start(ctx, config)
	if err != nil {
		return err
	}
	fmt.Fprintln(cmd.OutOrStdout(), readyLine(b.Ready(), time.Since(processBegun)))

	failed := make(chan error, 1)
	go func() { failed <- b.Wait() }() // ends with the broker, which ends below or by itself
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	config.Logger.Info("stopping")
	limited, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	return b.Stop(limited)
}

// readyLine is what scripts wait for. Its listeners are those bound, with the
// ports that a 0 became.
func readyLine(r broker.Ready, in time.Duration) string {
	listeners := make([]string, len(r.Listeners))
	for i, l := range r.Listeners {
		listeners[i] = l.String()
	}
	return fmt.Sprintf("ready id=%d listeners=%s coordinator=%s in=%dms",
		r.NodeID, strings.Join(listeners, ","), r.Coordinator, in.Milliseconds())
}
