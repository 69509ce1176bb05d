package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"millrace/coord/zk/tree"
	"millrace/tools/internal/cli"
)

// Claim: the service runs alone until it is interrupted, says when it is ready, ends with
// status 0, and has its tree again after the next start.
func TestCoordinatorLives(t *testing.T) {
	dir := t.TempDir()
	ready := regexp.MustCompile(`^ready coordinator=(127\.0\.0\.1:\d+) in=\d+ms$`)
	for run := range 2 {
		lines, end := background(t, "coordinator", "--override", "clientPort=0", "--override", "dataDir="+dir, "--log-level", "error")
		m := ready.FindStringSubmatch(lines())
		if m == nil {
			t.Fatal("no ready line")
		}
		if run == 0 {
			must(t, "", "zk", "create", "/kept", "x", "-s", m[1])
		} else if got := must(t, "", "zk", "get", "/kept", "-s", m[1]); got != "x\n" {
			t.Error(got)
		}
		fails(t, cli.ExitFailure, dir, "coordinator", "--override", "clientPort=0", "--override", "dataDir="+dir) // one at a time
		if status := end(); status != cli.ExitOK {
			t.Errorf("exit status %d", status)
		}
	}
}

// Claim: a zoo.cfg means what it means to ZooKeeper; unknown keys are named; wrong values,
// ensembles and ZooKeeper's own data folders are refused.
func TestCoordinatorConfig(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "zoo.cfg")
	text := `# a comment
tickTime=500
dataDir=` + dir + `
clientPort=2182
clientPortAddress=10.1.2.3
maxClientCnxns=0
minSessionTimeout=-1
maxSessionTimeout=60000
4lw.commands.whitelist=srvr, mntr
jute.maxbuffer=2097152
zookeeper.enforceQuota=true
extendedTypesEnabled=true
DigestAuthenticationProvider.superDigest=super:xQJmxLMiHGwaqBvst5y6rkB6HQs=
snapCount=5000
autopurge.snapRetainCount=5
autopurge.purgeInterval=1
initLimit=10
`
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	var logs bytes.Buffer
	c, err := loadCoordinator(file, []string{"clientPort=2183"}, slog.New(slog.NewTextHandler(&logs, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if c.Tick != 500*time.Millisecond || c.Dir != dir || c.Address != "10.1.2.3:2183" || c.MaxPerHost != -1 || c.MinTimeout != 0 || c.MaxTimeout != time.Minute ||
		strings.Join(c.Words, " ") != "srvr mntr" || c.MaxRequest != 2<<20 || c.Rules != tree.EnforceQuota|tree.ExtendedTypes ||
		!strings.HasPrefix(c.SuperDigest, "super:") || c.SnapshotEvery != 5000 || c.Keep != 5 {
		t.Errorf("%+v", c)
	}
	for _, key := range []string{"autopurge.purgeInterval", "initLimit"} {
		if !strings.Contains(logs.String(), "key="+key) {
			t.Errorf("%s is not warned about: %s", key, logs.String())
		}
	}
	for override, says := range map[string]string{
		"server.1=a:2888:3888": "ensemble", "dynamicConfigFile=x": "ensemble", "tickTime=0": "tickTime=0", "clientPort=70000": "65535", "enforceQuota=maybe": "true or false",
		"superDigest=super": "user:digest", "dataDir=": "dataDir", "minSessionTimeout=70000": "larger", "nothing": "key=value", "snapCount=x": "number",
	} {
		fails(t, cli.ExitUsage, says, "coordinator", "--config", file, "--override", override)
	}
	if err := os.Mkdir(filepath.Join(dir, "version-2"), 0o755); err != nil {
		t.Fatal(err)
	}
	fails(t, cli.ExitUsage, "zk export", "coordinator", "--config", file)
}
