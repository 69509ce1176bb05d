package zookeeper

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"millrace/tools/compat/harness"
)

// curator runs java/CuratorRecipes.java, which says OK or FAIL for each recipe.
func curator(e *harness.Env, s *target) error {
	dir, classes, err := harness.Classes(e, Libs, source("CuratorRecipes.java"))
	if err != nil {
		return err
	}
	cmd, err := e.Java(dir, "256M", []string{classes}, quiet, "CuratorRecipes", s.addr)
	if err != nil {
		return err
	}
	out, err := harness.Output(cmd, "", 0)
	if err == nil && strings.Count(out, "OK ") != 21 {
		err = fmt.Errorf("not 21 recipes passed")
	}
	if err != nil {
		return fmt.Errorf("%w: %s", err, failures(out, "FAIL"))
	}
	return nil
}

func source(name string) string { return filepath.Join("zookeeper", "java", name) }

// failures are the lines with the mark.
func failures(out, mark string) string {
	var lines []string
	for l := range strings.SplitSeq(out, "\n") {
		if strings.Contains(l, mark) {
			lines = append(lines, strings.TrimSpace(l))
		}
	}
	return strings.Join(lines, "; ")
}

const kazooVersion = "2.11.0"

// kazooLeftOut are tests that cannot pass against one server that runs elsewhere; none does on Apache ZooKeeper.
var kazooLeftOut = []string{
	"test_update_host_list", // waits for the server that the list no longer names to be seen as lost; two servers
	"TestSSLClient",         // TLS keys of its own cluster
	"TestReconfig",          // members of an ensemble
	"TestReadOnlyMode",      // stops two of three servers
	"test_eventlet_handler", // the packages eventlet and gevent, which repeat the tests with
	"test_gevent_handler",   // other threads on the client's side
	"SelectTestCase",        // of Python's select, no server
}

var kazooEnv struct {
	sync.Mutex
	python string
}

// needKazoo makes a virtual environment with kazoo, its tests and what they import.
func needKazoo(cache string) (string, error) {
	kazooEnv.Lock()
	defer kazooEnv.Unlock()
	if kazooEnv.python != "" {
		return kazooEnv.python, nil
	}
	venv := filepath.Join(cache, "kazoo-"+kazooVersion)
	python := filepath.Join(venv, "bin", "python")
	if exec.Command(python, "-c", "import kazoo.testing, pytest, OpenSSL").Run() != nil {
		p, err := exec.LookPath("python3")
		if err != nil {
			return "", harness.Skip{Reason: "python3 is not installed"}
		}
		if out, err := exec.Command(p, "-m", "venv", "--clear", venv).CombinedOutput(); err != nil {
			return "", harness.Skip{Reason: fmt.Sprintf("python3 -m venv: %v: %s", err, harness.LastLine(out))}
		}
		if out, err := exec.Command(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "kazoo[test]=="+kazooVersion).CombinedOutput(); err != nil {
			return "", harness.Skip{Reason: fmt.Sprintf("pip install kazoo: %v: %s", err, harness.LastLine(out))}
		}
	}
	kazooEnv.python = python
	return python, nil
}

var passed = regexp.MustCompile(`(\d+) passed`)

// kazoo runs the tests that come in kazoo's package, through python/kazoo_external.py.
func kazoo(e *harness.Env, s *target) error {
	python, err := needKazoo(e.Cache)
	if err != nil {
		return err
	}
	cmd := e.Command(python, "-B", "-m", "pytest", "-p", "kazoo_external", "-p", "no:cacheprovider", "-q", "--tb=line", "--show-capture=no", "--pyargs", "kazoo.tests",
		"-k", "not "+strings.Join(kazooLeftOut, " and not "))
	// Without CI: under it the tests ask for the versions of kazoo's own.
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "CI=") }), "ZK_TARGET="+s.addr, "ZOOKEEPER_VERSION=3.9.5", "PYTHONPATH="+filepath.Join(e.Root, "tools", "compat", "zookeeper", "python"))
	out, err := harness.Output(cmd, "", 0)
	if err != nil {
		return fmt.Errorf("%w: %s", err, failures(out, "FAILED"))
	}
	n := passed.FindStringSubmatch(out)
	if n == nil {
		return fmt.Errorf("no test passed: %s", harness.LastLine([]byte(out)))
	}
	e.Note("%s tests passed", n[1])
	return nil
}

// shell gives ZooKeeper's shell the same commands on this server and on Apache ZooKeeper, and compares what it prints.
func shell(e *harness.Env, s *target) error {
	reference, err := startReference(e)
	if err != nil {
		return err
	}
	defer reference.stop()
	want, err := shellSays(e, reference)
	if err != nil {
		return fmt.Errorf("Apache ZooKeeper: %w", err)
	}
	got, err := shellSays(e, s)
	if err != nil {
		return err
	}
	for i, w := range want {
		if i >= len(got) || got[i] != w {
			return fmt.Errorf("line %d: Apache ZooKeeper: %q; here: %q", i+1, w, strings.Join(got[min(i, len(got)):min(i+1, len(got))], ""))
		}
	}
	if len(got) > len(want) {
		return fmt.Errorf("more lines than from Apache ZooKeeper: %q", got[len(want)])
	}
	e.Note("%d lines alike", len(want))
	return nil
}

// shellCommands has every command of the shell that one server can answer, and their errors.
const shellCommands = `ls /
create /a "first data"
create /a again
create -s /a/s- x
create -s /a/s- y
create -e /a/eph z
create -c /a/container
create -t 100000 /a/ttl data
create /missing/parent x
ls /a
ls -s /a
ls -R /a
get /a
get -s /a
get -w /a
set /a second
set -s /a third
set -v 7 /a never
set -v 2 /a fourth
stat /a
stat -w /a
delete -v 9 /a/s-0000000000
delete /a/s-0000000000
delete /a
delete /nothing
getAcl /a
getAcl -s /a
setAcl /a world:anyone:cdrwa
setAcl -s /a/container world:anyone:r
create /a/container/no x
addauth digest user:secret
create /mine data auth:user:secret:cdrwa
getAcl /mine
setAcl /mine digest:user:wrong:r
sync /a
getEphemerals
getEphemerals /a
getAllChildrenNumber /a
addWatch -m PERSISTENT /a
set /a fifth
removewatches /a
removewatches /nothing
setquota -n 5 /a
listquota /a
setquota -b 100 /a
listquota /a
delquota /a
listquota /a
ls /zookeeper
ls /zookeeper/quota
whoami
version
config
history
deleteall /a
deleteall /mine
ls /
quit
`

// What differs between any two runs.
var (
	volatile = regexp.MustCompile(`0x[0-9a-f]+|\d\d:\d\d:\d\d|[A-Z][a-z]{2} [A-Z][a-z]{2} \d\d .*? \d{4}|127\.0\.0\.1:\d+|Node count: .*|zxid: .*`)
	prompt   = regexp.MustCompile(`\[zk: [^\]]*\] `)
)

func shellSays(e *harness.Env, s *target) ([]string, error) {
	dir, err := harness.NeedJava(e.Cache, Libs)
	if err != nil {
		return nil, err
	}
	cmd, err := e.Java(dir, "128M", nil, quiet, "org.apache.zookeeper.ZooKeeperMain", "-server", s.addr)
	if err != nil {
		return nil, err
	}
	both := &strings.Builder{}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(shellCommands), both, both
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	timer := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	defer timer.Stop()
	if err := cmd.Wait(); err != nil && cmd.ProcessState.ExitCode() < 0 {
		return nil, fmt.Errorf("the shell: %w: %s", err, both.String())
	}
	var lines []string
	for l := range strings.SplitSeq(both.String(), "\n") {
		l = volatile.ReplaceAllString(prompt.ReplaceAllString(l, ""), "*")
		if l = strings.TrimSpace(l); l != "" {
			lines = append(lines, l)
		}
	}
	return lines, nil
}
