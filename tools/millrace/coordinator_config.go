package main

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/magiconair/properties"

	"millrace/coord/zk"
	"millrace/coord/zk/tree"
	"millrace/tools/internal/cli"
)

// coordinatorConfig is what the keys of a zoo.cfg come to.
type coordinatorConfig struct {
	host, port string
	zk.Options
}

// coordinatorKey is one key of ZooKeeper's configuration: what it does, for the help,
// and how it is set.
type coordinatorKey struct {
	name, help string
	set        func(c *coordinatorConfig, value string) error
}

var coordinatorKeys = []coordinatorKey{
	{"clientPort", "the port of clients (2181); 0 is a free one", func(c *coordinatorConfig, v string) error {
		_, err := within(v, 0, math.MaxUint16)
		c.port = v
		return err
	}},
	{"clientPortAddress", "the address it is bound to; without it all of the machine's if there is a file, else 127.0.0.1", func(c *coordinatorConfig, v string) error { c.host = v; return nil }},
	{"dataDir", "the folder of snapshots and log; never one of Apache ZooKeeper's", func(c *coordinatorConfig, v string) error { c.Dir = v; return nil }},
	{"tickTime", "ms: how finely sessions expire (2000)", ticks(func(c *coordinatorConfig) *time.Duration { return &c.Tick }, 1)},
	{"minSessionTimeout", "ms (2 ticks)", ticks(func(c *coordinatorConfig) *time.Duration { return &c.MinTimeout }, -1)},
	{"maxSessionTimeout", "ms (20 ticks)", ticks(func(c *coordinatorConfig) *time.Duration { return &c.MaxTimeout }, -1)},
	{"maxClientCnxns", "connections from one address (60); 0 is no limit", func(c *coordinatorConfig, v string) (err error) {
		if c.MaxPerHost, err = within(v, 0, math.MaxInt32); c.MaxPerHost == 0 {
			c.MaxPerHost = -1
		}
		return err
	}},
	{"4lw.commands.whitelist", "four-letter words that are answered (srvr); * is all", func(c *coordinatorConfig, v string) error {
		c.Words = []string{}
		for _, w := range strings.Split(v, ",") {
			if w = strings.TrimSpace(w); w != "" {
				c.Words = append(c.Words, w)
			}
		}
		return nil
	}},
	{"jute.maxbuffer", "bytes of the largest request (1048575)", func(c *coordinatorConfig, v string) (err error) {
		c.MaxRequest, err = within(v, 1024, 1<<30)
		return err
	}},
	{"enforceQuota", "true: hard quotas are enforced (false)", rule(tree.EnforceQuota, "true", "false")},
	{"extendedTypesEnabled", "true: TTL nodes may be made (false)", rule(tree.ExtendedTypes, "true", "false")},
	{"skipACL", "yes: access lists are not looked at (no)", rule(tree.SkipACL, "yes", "no")},
	{"DigestAuthenticationProvider.superDigest", "user:digest of who may do everything", setSuper},
	{"superDigest", "the same, shorter", setSuper},
	{"snapCount", "transactions from one snapshot to the next (100000)", func(c *coordinatorConfig, v string) (err error) {
		c.SnapshotEvery, err = within(v, 2, math.MaxInt32)
		return err
	}},
	{"autopurge.snapRetainCount", "snapshots kept (3)", func(c *coordinatorConfig, v string) (err error) {
		c.Keep, err = within(v, 1, 1000)
		return err
	}},
}

func setSuper(c *coordinatorConfig, v string) error {
	if user, digest, ok := strings.Cut(v, ":"); !ok || user == "" || digest == "" {
		return errors.New("must read user:digest")
	}
	c.SuperDigest = v
	return nil
}

// within reads a decimal within the limits, both inclusive.
func within(v string, low, high int) (int, error) {
	n, err := strconv.Atoi(v)
	if err != nil || n < low || n > high {
		return 0, fmt.Errorf("must be a number from %d to %d", low, high)
	}
	return n, nil
}

// ticks sets a time in ms; -1 leaves the default, as in ZooKeeper.
func ticks(field func(*coordinatorConfig) *time.Duration, low int) func(*coordinatorConfig, string) error {
	return func(c *coordinatorConfig, v string) error {
		n, err := within(v, low, math.MaxInt32)
		*field(c) = time.Duration(max(n, 0)) * time.Millisecond
		return err
	}
}

func rule(r tree.Rules, on, off string) func(*coordinatorConfig, string) error {
	return func(c *coordinatorConfig, v string) error {
		switch strings.ToLower(v) {
		case on:
			c.Rules |= r
		case off:
			c.Rules &^= r
		default:
			return fmt.Errorf("must be %s or %s", on, off)
		}
		return nil
	}
}

// set applies one key. ZooKeeper takes most of these as Java system properties too,
// whose names begin with "zookeeper."; files have both.
func (c *coordinatorConfig) set(key, value string) (known bool, err error) {
	name := strings.TrimPrefix(key, "zookeeper.")
	if strings.HasPrefix(name, "server.") || name == "dynamicConfigFile" {
		return true, cli.Usagef("%s=%s: this is one service on one node; an ensemble of several is not built yet. Take the server.N lines out to run it alone", key, value)
	}
	i := slices.IndexFunc(coordinatorKeys, func(k coordinatorKey) bool { return k.name == name })
	if i < 0 {
		return false, nil
	}
	if err := coordinatorKeys[i].set(c, strings.TrimSpace(value)); err != nil {
		return true, cli.Usagef("%s=%s: %v", key, value, err)
	}
	return true, nil
}

// loadCoordinator reads a zoo.cfg ("" none), then the overrides, which win.
func loadCoordinator(file string, overrides []string, log *slog.Logger) (coordinatorConfig, error) {
	c := coordinatorConfig{port: "2181"}
	apply := func(key, value string) error {
		known, err := c.set(key, value)
		if err == nil && !known {
			log.Warn("configuration: a key without effect here", "key", key, "value", value)
		}
		return err
	}
	if file == "" {
		c.host, c.Dir = "127.0.0.1", "./coordination"
	} else {
		text, err := os.ReadFile(file)
		if err != nil {
			return c, err
		}
		loader := properties.Loader{Encoding: properties.UTF8, DisableExpansion: true}
		p, err := loader.LoadBytes(text)
		if err != nil {
			return c, cli.Usagef("%s: %v", file, err)
		}
		for _, key := range p.Keys() {
			value, _ := p.Get(key)
			if err := apply(key, value); err != nil {
				return c, err
			}
		}
	}
	for _, o := range overrides {
		key, value, ok := strings.Cut(o, "=")
		if !ok || key == "" {
			return c, cli.Usagef("--override %q is not of the form key=value", o)
		}
		if err := apply(strings.TrimSpace(key), value); err != nil {
			return c, err
		}
	}
	return c, c.check()
}

func (c *coordinatorConfig) check() error {
	if c.Dir == "" {
		return cli.Usagef("dataDir is not set")
	}
	tick := c.Tick
	if tick == 0 {
		tick = 2 * time.Second
	}
	low, high := c.MinTimeout, c.MaxTimeout
	if low == 0 {
		low = 2 * tick
	}
	if high == 0 {
		high = 20 * tick
	}
	if low > high {
		return cli.Usagef("minSessionTimeout is %v and maxSessionTimeout %v: the first must not be the larger", low, high)
	}
	if _, err := os.Stat(filepath.Join(c.Dir, "version-2")); err == nil {
		return cli.Usagef("%s has data of Apache ZooKeeper (version-2), whose files are not read here: use another dataDir, and 'millrace zk export' and 'import' to bring the tree over", c.Dir)
	}
	c.Address = net.JoinHostPort(c.host, c.port)
	return nil
}
