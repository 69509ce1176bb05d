package broker

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Claim: a configuration file that says nothing of admin.listener has the admin port
// on 127.0.0.1:9644; if that is taken, a second broker on the machine starts without
// one and says so; an address that was named must be had.
// Method: take the port, start brokers from files.
func TestDefaultAdminListener(t *testing.T) {
	const address = "127.0.0.1:9644"
	if taken, err := net.Listen("tcp", address); err == nil {
		defer taken.Close()
	} // else another program has it, which is as good
	start := func(lines ...string) (*Broker, *logLines, error) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "server.properties")
		text := strings.Join(append(lines, "listeners=PLAINTEXT://127.0.0.1:0", "log.dirs="+t.TempDir()), "\n")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		config, _, err := LoadConfig(file, nil)
		if err != nil {
			t.Fatal(err)
		}
		log := &logLines{}
		config.Logger = slog.New(slog.NewTextHandler(log, nil))
		b, err := Start(context.Background(), config)
		if err == nil {
			t.Cleanup(func() { stopAdmin(t, b) })
		}
		return b, log, err
	}
	b, log, err := start()
	if err != nil {
		t.Fatal("the default port is taken, and the broker does not start:", err)
	}
	if b.Ready().Admin != "" || log.count("admin.listener="+address) != 1 {
		t.Errorf("admin %q; the log: %s", b.Ready().Admin, log)
	}
	var wrong *ConfigError
	if _, _, err := start("admin.listener=" + address); !errors.As(err, &wrong) || wrong.Key != "admin.listener" {
		t.Errorf("a named address that is taken: %v", err)
	}
	if b, log, err := start("admin.listener="); err != nil || b.Ready().Admin != "" || log.count("admin.listener") != 0 {
		t.Errorf("no admin port: %v, %s", err, log)
	}
	if c := DefaultConfig(); c.Admin != address {
		t.Errorf("the default is %q", c.Admin)
	}
}
