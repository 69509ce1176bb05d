package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"millrace/coord/zk/server"
	"millrace/coord/zk/store"
	"millrace/engine"
	"millrace/engine/vfs"
	"millrace/tools/internal/cli"
)

func newCoordinator() *cobra.Command {
	var file, level string
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
			c.server.Logger = log
			return coordinate(cmd.Context(), cmd.OutOrStdout(), c)
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "a zoo.cfg file, with ZooKeeper's keys")
	cmd.Flags().StringArrayVar(&overrides, "override", nil, "one key=value that wins over the file (repeatable)")
	cmd.Flags().StringVar(&level, "log-level", "info", "debug, info, warn or error")
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
func coordinate(ctx context.Context, out io.Writer, c coordinatorConfig) (err error) {
	log := c.server.Logger
	s, closeStore, err := openCoordinator(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeStore()) }()
	c.server.Store = s
	if c.server.Secret, err = coordinatorSecret(c.dir); err != nil {
		return err
	}
	if c.server.Listener, err = net.Listen("tcp", c.address()); err != nil {
		return err
	}
	run, err := server.Start(c.server)
	if err != nil {
		c.server.Listener.Close()
		return err
	}
	fmt.Fprintf(out, "ready coordinator=%s in=%dms\n", run.Addr(), time.Since(processBegun).Milliseconds())
	select {
	case <-ctx.Done():
		log.Info("stopping")
	case <-run.Done():
	}
	run.Close()
	return run.Err()
}

// openCoordinator takes up the tree in the config's folders, which nobody else may have
// open. shut closes all that was opened.
func openCoordinator(c coordinatorConfig) (_ *store.Store, shut func() error, err error) {
	disk := vfs.OS()
	var open []func() error
	shut = func() (err error) {
		for i := len(open) - 1; i >= 0; i-- {
			err = errors.Join(err, open[i]())
		}
		return err
	}
	defer func() {
		if err != nil {
			shut()
		}
	}()
	for i, dir := range []string{c.dir, c.logDir} {
		if i > 0 && c.logDir == c.dir {
			break
		}
		if err := disk.MkdirAll(dir); err != nil {
			return nil, nil, err
		}
		lock, err := disk.Lock(filepath.Join(dir, ".lock"))
		if err != nil {
			return nil, nil, err
		}
		open = append(open, lock.Close)
	}
	log, err := engine.OpenLog(filepath.Join(c.logDir, "log-0"), engine.LogOptions{Config: store.LogConfig(), Logger: c.server.Logger})
	if err != nil {
		return nil, nil, err
	}
	open = append(open, log.Close)
	s, err := store.Open(log, store.Options{Dir: filepath.Join(c.dir, "snapshots"), SnapshotEvery: c.snapEvery, Keep: c.snapKeep, Logger: c.server.Logger})
	if err != nil {
		return nil, nil, err
	}
	open = append(open, func() error { s.Close(); return nil })
	return s, shut, nil
}

// coordinatorSecret is what session passwords are made with. It is kept, so that
// sessions can be resumed after a restart; who can read it can take sessions over.
func coordinatorSecret(dir string) ([]byte, error) {
	name := filepath.Join(dir, "secret")
	secret, err := os.ReadFile(name)
	if err == nil && len(secret) != secretSize {
		return nil, fmt.Errorf("%s: %d bytes, want %d: remove it if all sessions may end", name, len(secret), secretSize)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return secret, err
	}
	secret = make([]byte, secretSize)
	rand.Read(secret)
	return secret, writeSecret(dir, name, secret)
}

// writeSecret makes the file whole or not at all.
func writeSecret(dir, name string, secret []byte) error {
	tmp := name + ".tmp"
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(secret)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(tmp, name); err != nil {
		return err
	}
	return vfs.OS().SyncDir(dir)
}
