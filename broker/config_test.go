package broker

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Claim: every row of the table has a type, a text, a default that its own rule
// allows, and a reader unless it says that it is not acted on.
// Method: walk the table.
func TestConfigTableIsSound(t *testing.T) {
	for _, row := range ConfigKeys() {
		if row.Name == "" || row.Type == "" || row.Text == "" {
			t.Errorf("%+v: name, type or text is missing", row.Name)
		}
		if (row.set == nil) != row.Unsupported {
			t.Errorf("%s: read %v, unsupported %v", row.Name, row.set != nil, row.Unsupported)
		}
		if row.set != nil && row.Default != "" {
			if err := row.set(&Config{}, row.Default); err != nil {
				t.Errorf("%s: its default %q: %v", row.Name, row.Default, err)
			}
		}
	}
	for _, chain := range configSynonyms {
		for _, key := range chain {
			if LookupConfigKey(key) == nil {
				t.Errorf("synonym %s has no row", key)
			}
		}
	}
}

// Claim: a bad value stops the start and the error names key, value and range.
// Method: one bad value for each kind of row.
func TestBadValuesAreNamed(t *testing.T) {
	for _, bad := range []string{
		"num.partitions=0", "fetch.max.bytes=12", "auto.create.topics.enable=yes", "millrace.durability=maybe", "log.cleanup.policy=shred",
		"listeners=PLAINTEXT://host", "listeners=A://:1,A://:2", "max.connections.per.ip.overrides=x", "log.cleaner.min.cleanable.ratio=2",
		"log.dirs=/a,/a", "socket.request.max.bytes=4294967296", "listeners=SSL://:9093", "listeners=OTHER://:9093", "connections.max.idle.ms=-2",
	} {
		_, _, err := LoadConfig("", []string{bad})
		var config *ConfigError
		key, value, _ := strings.Cut(bad, "=")
		if !errors.As(err, &config) || config.Key != key || !strings.Contains(err.Error(), value) || config.Rule == "" {
			t.Errorf("%s: error %v does not name key, value and rule", bad, err)
		}
	}
}

// Claim: a file in Java's format is read, overrides win, unknown and inert keys
// warn, misspelt ones are suggested, and synonyms rank as in Kafka.
// Method: one file with all of it.
func TestLoadConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "server.properties")
	text := "# comment\nlisteners = PLAINTEXT://localhost:9092\nnum.partitons=3\nnum.network.threads=3\nfoo.bar=1\n" +
		"log.dir=/x\nlog.dirs=/y,\\\n  /z\nbroker.id=4\nnode.id=5\nconnections.max.idle.ms=1000\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	c, warnings, err := LoadConfig(file, []string{"connections.max.idle.ms=2000"})
	if err != nil {
		t.Fatal(err)
	}
	if c.Socket.IdleMax != 2*time.Second || c.NodeID != 5 || strings.Join(c.LogDirs, " ") != "/y /z" || c.Listeners[0].Port != 9092 {
		t.Errorf("idle %v, node %d, dirs %v, listeners %v", c.Socket.IdleMax, c.NodeID, c.LogDirs, c.Listeners)
	}
	var all []string
	for _, w := range warnings {
		all = append(all, w.String())
	}
	for _, text := range []string{"foo.bar: unknown key", "did you mean num.partitions?", "num.network.threads: known to Kafka"} {
		if !strings.Contains(strings.Join(all, "\n"), text) {
			t.Errorf("no warning says %q in %q", text, all)
		}
	}
	if v, given := c.Get("connections.max.idle.ms"); v != "2000" || !given {
		t.Errorf("Get: %q, %v", v, given)
	}
	if v, given := c.Get("fetch.max.bytes"); v != "57671680" || given {
		t.Errorf("Get of a default: %q, %v", v, given)
	}
}

// Claim: a wildcard is never advertised: given, it stops the start; not given, a
// host name takes its place. Loopback told from a wildcard bind warns. Each
// listener tells its own address.
// Method: the case's configurations, and Metadata through two listeners.
func TestField_F117_AdvertisedListeners(t *testing.T) {
	for _, bad := range []string{"PLAINTEXT://0.0.0.0:9092", "PLAINTEXT://:9092", "PLAINTEXT://[::]:9092", "NOPE://host:1"} {
		_, _, err := LoadConfig("", []string{"listeners=PLAINTEXT://:9092", "advertised.listeners=" + bad})
		if err == nil || !strings.Contains(err.Error(), "advertised.listeners") || !strings.Contains(err.Error(), bad) {
			t.Errorf("%s: error %v", bad, err)
		}
	}
	c, warnings, err := LoadConfig("", []string{"listeners=PLAINTEXT://0.0.0.0:9092"})
	if err != nil || c.Advertised[0].Host == "" || c.Advertised[0].wildcard() {
		t.Errorf("nothing advertised: %v, error %v", c.Advertised, err)
	}
	if len(warnings) < 2 {
		t.Errorf("warnings %v, want one about the wildcard", warnings)
	}
	_, warnings, _ = LoadConfig("", []string{"listeners=PLAINTEXT://0.0.0.0:9092", "advertised.listeners=PLAINTEXT://localhost:9092", "log.dirs=/x"})
	if len(warnings) != 1 || !strings.Contains(warnings[0].Message, "dial themselves") {
		t.Errorf("loopback from a wildcard bind: warnings %v", warnings)
	}

	b := startBroker(t, "listener.security.protocol.map=INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
		"listeners=INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0", "advertised.listeners=INSIDE://in.example:1111,OUTSIDE://out.example:2222")
	for listener, want := range map[string]string{"INSIDE": "in.example", "OUTSIDE": "out.example"} {
		c := b.dialTo(listener)
		resp := c.ask(kmsg.NewPtrMetadataRequest(), 9).(*kmsg.MetadataResponse)
		if len(resp.Brokers) != 1 || resp.Brokers[0].Host != want {
			t.Errorf("through %s: %+v, want %s", listener, resp.Brokers, want)
		}
	}
}

// Claim: a start that fails leaves nothing running and names what was wrong.
// Method: a port that is taken, then the same directory without it.
func TestFailedStartLeavesNothing(t *testing.T) {
	b := startBroker(t)
	dir := t.TempDir()
	config, _, err := LoadConfig("", []string{"listeners=PLAINTEXT://" + b.Addr(""), "log.dirs=" + dir})
	if err != nil {
		t.Fatal(err)
	}
	config.Logger = slog.New(slog.DiscardHandler)
	if _, err := Start(context.Background(), config); err == nil || !strings.Contains(err.Error(), b.Addr("")) {
		t.Errorf("start on a taken port: %v", err)
	}
	startBrokerIn(t, dir)
}
