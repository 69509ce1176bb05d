package zookeeper

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"millrace/tools/compat/harness"
)

// junitLibs are ZooKeeper's tests and what runs them.
var junitLibs = harness.Libs{Name: "zookeeper-tests-3.9.5", Artifacts: append(slices.Clone(Libs.Artifacts), "org.apache.zookeeper:zookeeper:3.9.5:tests",
	"org.apache.commons:commons-collections4:4.4",
	"org.junit.platform:junit-platform-console-standalone:1.11.4", "org.hamcrest:hamcrest:2.2", "org.mockito:mockito-core:4.11.0")}

// junitGroup is what runs in one process, and the tests that do not pass on Apache ZooKeeper either when it is not in their own process.
type junitGroup struct {
	name    string
	classes []string // below org.apache.zookeeper
	leftOut []leftOut
}

// leftOut is a failure that counts for nothing: a pattern of "Class.test: what failed", and why.
type leftOut struct{ pattern, why string }

// junit runs a group's classes. java/ForwardingCnxnFactory.java passes what the tests send to their own server on to ours.
func junit(e *harness.Env, s *target, g junitGroup) error {
	dir, classes, err := harness.Classes(e, junitLibs, source("*.java"), source("org/apache/zookeeper/test/*.java"))
	if err != nil {
		return err
	}
	work := filepath.Join(e.Dir, "work")
	if err := os.MkdirAll(work, 0o755); err != nil {
		return err
	}
	// Groups that run side by side must not find the same port free, so each has a range of its own.
	nth := 1 + slices.IndexFunc(junitGroups, func(o junitGroup) bool { return o.name == g.name })
	args := []string{quiet, fmt.Sprintf("-Dtest.junit.threads=%d", len(junitGroups)), fmt.Sprintf("-Dzookeeper.junit.threadid=%d", nth), "-Dbuild.test.dir=" + work, "-Dtest.data.dir=" + work, "-Dzookeeper.serverCnxnFactory=ForwardingCnxnFactory", "-Dzk.target=" + s.addr, "-Dzk.auth=super:test",
		"-Dzookeeper.4lw.commands.whitelist=*", "-Dzookeeper.extendedTypesEnabled=true", "-Dzookeeper.DigestAuthenticationProvider.superDigest=" + superDigest,
		"org.junit.platform.console.ConsoleLauncher", "execute", "--disable-banner", "--disable-ansi-colors", "--details=tree", "--details-theme=ascii"}
	for _, c := range g.classes {
		args = append(args, "-c", "org.apache.zookeeper."+c)
	}
	cmd, err := e.Java(dir, "256M", []string{classes}, args...)
	if err != nil {
		return err
	}
	out, err := harness.Output(cmd, "", 0)
	failed, left := judge(out, g.leftOut)
	ok := successful.FindStringSubmatch(out)
	switch {
	case len(failed) > 0:
		return errors.New(strings.Join(failed, "; "))
	case ok == nil || ok[1] == "0":
		return errors.Join(err, fmt.Errorf("no test passed: %s", harness.LastLine([]byte(out))))
	}
	e.Note("%s tests passed", ok[1])
	for _, l := range g.leftOut {
		if n := left[l.pattern]; n > 0 {
			e.Note("left out: %d of %s: %s", n, l.pattern, l.why)
		}
	}
	return nil
}

// A test in the launcher's tree: its name (an invocation of a test with parameters has a number instead), then [OK], [X] and
// why, or [S] for one that skipped itself. Classes are above their tests.
var (
	classLine  = regexp.MustCompile(`^[| '+-]*[+'|]-- (\w+) \[`)
	testLine   = regexp.MustCompile(`[+']-- (\w+)\(.*?\)`)
	failedLine = regexp.MustCompile(`[+']-- (.*?) \[X\] ?(.*)$`)
	successful = regexp.MustCompile(`(\d+) tests successful`)
)

// judge says which tests failed that should not have, and how many failures each pattern left out.
func judge(out string, leaveOut []leftOut) (failed []string, left map[string]int) {
	left = map[string]int{}
	class, test := "", ""
	for l := range strings.SplitSeq(out, "\n") {
		if m := testLine.FindStringSubmatch(l); m != nil {
			test = m[1]
		} else if m := classLine.FindStringSubmatch(l); m != nil {
			class = m[1]
		}
		m := failedLine.FindStringSubmatch(l)
		if m == nil {
			continue
		}
		what := fmt.Sprintf("%s.%s: %s", class, test, m[2])
		i := slices.IndexFunc(leaveOut, func(o leftOut) bool { return regexp.MustCompile("^" + o.pattern).MatchString(what) })
		if i < 0 {
			failed = append(failed, what)
		} else {
			left[leaveOut[i].pattern]++
		}
	}
	return failed, left
}

const (
	inside  = "looks into the server of its own process"
	setting = "changes a setting of the server of its own process"
	client  = "the client refuses the path by now"
)

// junitGroups are the classes that talk to a server and nothing of its inside. What is left out fails on Apache ZooKeeper too.
var junitGroups = []junitGroup{
	{"operations", []string{"test.ClientTest", "test.AsyncOpsTest", "test.AsyncTest", "test.MultiOperationTest", "test.MultiAsyncTransactionTest", "test.CheckTest", "test.CreateTest", "test.GetChildren2Test",
		"GetAllChildrenNumberTest", "GetEphemeralsTest", "test.NullDataTest", "test.StatTest", "test.SyncCallTest", "test.FourLetterWordsTest"}, []leftOut{
		{`ClientTest.testPathValidation`, client}, {`AsyncOpsTest.testAsyncMultiSequential_NoSideEffect`, inside}, {`CheckTest.testCluster`, "needs an ensemble"}}},
	{"chroot", []string{"test.ChrootTest", "test.ChrootAsyncTest", "test.ChrootClientTest"}, []leftOut{{`ChrootClientTest.testPathValidation`, client}}},
	{"access", []string{"test.ACLTest", "test.ACLCountTest", "test.ACLRootTest", "test.AuthTest", "test.PersistentWatcherACLTest"}, nil},
	{"watches", []string{"test.WatcherTest", "test.WatcherFuncTest", "test.PersistentWatcherTest", "test.PersistentRecursiveWatcherTest", "test.WatchEventWhenAutoResetTest", "test.DisconnectedWatcherTest", "RemoveWatchesTest", "RemoveWatchesCmdTest"},
		[]leftOut{{`WatcherTest.testWatcherCount: expected: <0>`, inside}, {`RemoveWatchesTest.*: expect watcher for path`, inside}}},
	{"sessions", []string{"test.SessionTest", "test.SessionTimeoutTest", "test.SessionInvalidationTest", "test.ClientRetryTest"}, []leftOut{
		{`SessionTest.testMinMaxSessionTimeout`, setting}, {`SessionTest.testMaximumCnxnPerIP`, setting}, {`SessionTest.testSessionTimeoutAccess`, inside}, {`SessionTimeoutTest.testSessionRecoveredAfterMultipleFailedAttempts`, inside}}},
	{"quotas", []string{"test.ZooKeeperQuotaTest", "test.QuotasTest"}, []leftOut{{`ZooKeeperQuotaTest.*: expected: <1> but was: <0>`, "the quota was enforced; then it looks at the metrics of its own process"}}},
	{"hammers", []string{"test.AsyncHammerTest", "test.ClientHammerTest"}, nil},
}
