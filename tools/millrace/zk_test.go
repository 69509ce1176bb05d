package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/coord/zk"
	"millrace/coord/zk/server"
	"millrace/coord/zk/tree"
	"millrace/tools/compat/harness"
	"millrace/tools/compat/zookeeper"
	"millrace/tools/internal/cli"
)

// coordination runs the service in this process and gives its address.
func coordination(t *testing.T) string {
	t.Helper()
	s, err := zk.Start(zk.Options{Dir: t.TempDir(), Address: "127.0.0.1:0", Config: server.Config{Rules: tree.ExtendedTypes, Words: []string{"*"},
		SuperDigest: "super:D/InIHSb7yEEbrWz8b9l71RjZJU="}}) // super:test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s.Addr().String()
}

// realZooKeeper is Apache ZooKeeper's address; it is opt-in.
func realZooKeeper(t *testing.T) string {
	if os.Getenv("MILLRACE_ZOOKEEPER") == "" {
		t.Skip("opt-in: set MILLRACE_ZOOKEEPER=1; it runs a real ZooKeeper (java)")
	}
	s, err := zookeeper.Start("../../.cache", t.TempDir())
	var skip harness.Skip
	if errors.As(err, &skip) {
		t.Skip(skip)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s.Addr
}

// both runs a test against our service and against ZooKeeper.
func both(t *testing.T, f func(t *testing.T, at string)) {
	t.Run("ours", func(t *testing.T) { f(t, coordination(t)) })
	t.Run("ZooKeeper", func(t *testing.T) { f(t, realZooKeeper(t)) })
}

// fails runs a command that must end with this status and say this.
func fails(t *testing.T, status int, says string, args ...string) {
	t.Helper()
	got, out, errs := command(strings.NewReader(""), args...)
	if got != status || !strings.Contains(errs, says) {
		t.Errorf("%v: exit status %d, want %d: %s%s", args, got, status, out, errs)
	}
}

// Claim: a person can make, see, change and delete nodes of every kind; each no has its
// status and its reason.
// Method: the life of a few nodes, in words, against both services.
func TestZkCommands(t *testing.T) {
	both(t, func(t *testing.T, at string) {
		zk := func(args ...string) string {
			t.Helper()
			return must(t, "from stdin", append(append([]string{"zk"}, args...), "--server", at)...)
		}
		expect := func(want string, args ...string) {
			t.Helper()
			if got := zk(args...); got != want {
				t.Errorf("%v: %q, want %q", args, got, want)
			}
		}
		no := func(status int, says string, args ...string) {
			t.Helper()
			fails(t, status, says, append(append([]string{"zk"}, args...), "--server", at)...)
		}
		expect("/a/b\n", "create", "/a/b", "hello", "--parents")
		no(cli.ExitNotFound, "exists already", "create", "/a/b")
		no(cli.ExitNotFound, "--parents", "create", "/x/y")
		expect("hello\n", "get", "/a/b")
		expect("/a/b\t1\n", "set", "/a/b", "-")
		expect("from stdin", "get", "/a/b", "--exact")
		no(cli.ExitFailure, "another version", "set", "/a/b", "x", "--version", "7")
		no(cli.ExitNotFound, "no such node", "get", "/nothing")
		expect("/a/s-0000000001\n", "create", "/a/s-", "--sequential")
		expect("/a/c\n", "create", "/a/c", "--container")
		expect("/a/t\n", "create", "/a/t", "--ttl", "1h")
		expect("b\nc\ns-0000000001\nt\n", "ls", "/a")
		expect("/a\n/a/b\n/a/c\n/a/s-0000000001\n/a/t\n", "ls", "/a", "-R")
		expect("b\tpersistent\t1\t10\t0\nc\tpersistent\t0\t0\t0\ns-0000000001\tpersistent\t0\t0\t0\nt\tpersistent\t0\t0\t0\n", "ls", "/a", "--long")
		if s := zk("stat", "/a/t"); !strings.HasPrefix(s, "kind\tpersistent\nversion\t0\n") {
			t.Error(s)
		}
		no(cli.ExitFailure, "has children", "delete", "/a")
		expect("/mine\n", "create", "/mine", "secret", "--auth", "digest:me:pw", "--acl", "auth::cdrwa")
		no(cli.ExitFailure, "access list", "get", "/mine")
		expect("secret\n", "get", "/mine", "--auth", "digest:me:pw")
		expect("secret\n", "get", "/mine", "--auth", "digest:super:test")
		no(cli.ExitFailure, "does not take", "get", "/mine", "--auth", "nosuch:me:pw")
		expect("digest:me:xlpJGzVhaayvpHfFn/RwowgwqI4=:cdrwa\n", "acl", "/mine", "--auth", "digest:me:pw")
		expect("ip:127.0.0.1:r\nworld:anyone:cdrwa\n", "acl", "/a", "world:anyone:cdrwa", "ip:127.0.0.1:r")
		var rows []struct{ Path, Data string }
		if err := json.Unmarshal([]byte(zk("dump", "/a", "--json")), &rows); err != nil || len(rows) != 5 || rows[1].Data != "from stdin" {
			t.Errorf("%v, %+v", err, rows)
		}
		if got := must(t, "", "zk", "get", "/b", "-s", at+"/a"); got != "from stdin\n" {
			t.Errorf("below a chroot: %q", got)
		}
		if got := must(t, "", "zk", "ls", "-R", "-s", at+"/a"); got != "/\n/b\n/c\n/s-0000000001\n/t\n" {
			t.Errorf("below a chroot: %q", got)
		}
		expect("deleted: 5\n", "delete", "/a", "-R")
		no(cli.ExitNotFound, "no such node", "ls", "/a")
	})
}

// Claim: wrong paths, access lists and combinations are told before a server is asked; a
// server that is not there is status 4.
func TestZkUsage(t *testing.T) {
	for _, args := range [][]string{
		{"get"}, {"get", "a"}, {"get", "/a/"}, {"get", "/a//b"}, {"set", "/a"}, {"delete", "/"}, {"delete", "/zookeeper", "-R"}, {"delete", "/a", "-R", "--version", "1"},
		{"create", "/a", "--acl", "world"}, {"create", "/a", "--acl", "world:anyone:xyz"}, {"create", "/a", "--ephemeral", "--container"},
		{"create", "/a", "--container", "--sequential"}, {"import"}, {"export"}, {"export", "-", "a"},
	} {
		fails(t, cli.ExitUsage, "", append([]string{"zk"}, append(args, "-s", "127.0.0.1:1")...)...)
	}
	fails(t, cli.ExitUnreachable, "127.0.0.1:1", "zk", "get", "/", "-s", "127.0.0.1:1")
	for _, c := range []string{"", " get", " ls", " stat", " dump", " set", " create", " delete", " acl", " watch", " export", " import"} {
		if out := must(t, "", strings.Fields("zk"+c+" --help")...); !strings.Contains(out, "Examples:") {
			t.Errorf("zk%s: no example", c)
		}
	}
}

// background runs a command whose output can be read line by line until the test cancels it.
func background(t *testing.T, args ...string) (lines func() string, cancel func() int) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	r, w := io.Pipe()
	root := newRoot()
	root.SetOut(w)
	root.SetErr(w)
	root.SetIn(strings.NewReader(""))
	root.SetArgs(args)
	done := make(chan int, 1)
	go func() { // ends with the command
		done <- cli.Execute(ctx, root)
		w.Close()
	}()
	t.Cleanup(func() { stop(); r.Close() })
	buf := []byte{}
	lines = func() string {
		t.Helper()
		for {
			if i := strings.IndexByte(string(buf), '\n'); i >= 0 {
				line := string(buf[:i])
				buf = buf[i+1:]
				return line
			}
			part := make([]byte, 4096)
			n, err := r.Read(part)
			if buf = append(buf, part[:n]...); err != nil {
				t.Fatalf("%v: %v, %q", args, err, buf)
			}
		}
	}
	return lines, func() int {
		stop()
		go io.Copy(io.Discard, r) // ends with the command's output
		return <-done
	}
}

// Claim: watch tells every change below a node in order; an ephemeral node lives as long
// as the command that made it; an interrupt is a clean end of both.
func TestZkWatchAndEphemeral(t *testing.T) {
	both(t, func(t *testing.T, at string) {
		must(t, "", "zk", "create", "/w", "-s", at)
		events, end := background(t, "zk", "watch", "/w", "-R", "-s", at, "--session-timeout", "4s")
		events() // watching
		next := func(event, path string) {
			t.Helper()
			if got := events(); !strings.HasPrefix(got, event+"\t"+path+"\t0x") {
				t.Errorf("%q, want %s %s", got, event, path)
			}
		}
		holder, release := background(t, "zk", "create", "/w/e", "--ephemeral", "-s", at)
		if got := holder(); got != "/w/e" {
			t.Fatal(got)
		}
		next("created", "/w/e")
		must(t, "", "zk", "set", "/w", "x", "-s", at)
		next("changed", "/w")
		if status := release(); status != cli.ExitOK {
			t.Errorf("exit status %d", status)
		}
		next("deleted", "/w/e")
		if testing.Short() {
			return
		}
		time.Sleep(5 * time.Second) // longer than the session's time-out, which pings must keep alive
		must(t, "", "zk", "delete", "/w", "-s", at)
		next("deleted", "/w")
		if status := end(); status != cli.ExitOK {
			t.Errorf("exit status %d", status)
		}
	})
}

// Claim: an export brought into an empty service is the same tree: data of any bytes,
// access lists, kinds; ephemerals are named and left out. Import overwrites only when told.
func TestZkExportImport(t *testing.T) {
	both(t, func(t *testing.T, at string) {
		for _, args := range [][]string{
			{"create", "/k/deep/er", "text ✓\nlines", "--parents"}, {"create", "/k/empty"}, {"create", "/k/c", "--container"}, {"create", "/k/t", "--ttl", "1h"},
			{"create", "/k/mine", "s", "--auth", "digest:me:pw", "--acl", "auth::cdrwa", "--acl", "world:anyone:r"},
		} {
			must(t, "", append([]string{"zk", "-s", at}, args...)...)
		}
		must(t, "\x00\xff\x01", "zk", "create", "/k/bytes", "-", "-s", at)
		holder, release := background(t, "zk", "create", "/k/eph", "--ephemeral", "-s", at)
		holder()
		file := filepath.Join(t.TempDir(), "tree.json")
		_, _, errs := command(strings.NewReader(""), "zk", "export", file, "-s", at)
		if !strings.Contains(errs, "1 ephemeral nodes are left out") || !strings.Contains(errs, "at 0x") {
			t.Error(errs)
		}
		release()
		to := coordination(t)
		must(t, "", "zk", "import", file, "-s", to, "--auth", "digest:super:test")
		var x, y zkExport
		for i, server := range []string{at, to} {
			v := []*zkExport{&x, &y}[i]
			if err := json.Unmarshal([]byte(must(t, "", "zk", "export", "-", "-s", server)), v); err != nil {
				t.Fatal(err)
			}
		}
		if fmt.Sprint(nodesText(x)) != fmt.Sprint(nodesText(y)) || !x.Exact || len(x.Nodes) != 9 {
			t.Errorf("exported %s\nimported %s", nodesText(x), nodesText(y))
		}
		fails(t, cli.ExitNotFound, "nothing was done", "zk", "import", file, "-s", to)
		must(t, "", "zk", "set", "/k/empty", "changed", "-s", to)
		if out := must(t, "", "zk", "import", file, "-s", to, "--overwrite", "--auth", "digest:super:test"); out != "made: 0\tset: 8\n" {
			t.Error(out)
		}
		if out := must(t, "", "zk", "get", "/k/empty", "-s", to, "--exact"); out != "" {
			t.Errorf("%q", out)
		}
		must(t, "", "zk", "export", file, "/k/deep", "-s", at)
		must(t, "", "zk", "import", file, "--at", "/elsewhere/d", "-s", to)
		if out := must(t, "", "zk", "get", "/elsewhere/d/er", "-s", to); out != "text ✓\nlines\n" {
			t.Errorf("%q", out)
		}
	})
}

// nodesText is an export's nodes without the zxid.
func nodesText(x zkExport) string {
	b, _ := json.Marshal(x.Nodes)
	return string(b)
}

// Claim: what an edited file says of kinds is what is made.
func TestZkImportKinds(t *testing.T) {
	s, err := zk.Start(zk.Options{Dir: t.TempDir(), Address: "127.0.0.1:0", Config: server.Config{Rules: tree.ExtendedTypes}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	text := `{"format":"millrace-zk-1","nodes":[{"path":"/c","kind":"container"},{"path":"/c/x"},{"path":"/t","kind":"ttl","ttl_ms":1}]}`
	at := s.Addr().String()
	if status, _, errs := command(strings.NewReader(text), "zk", "import", "-", "-s", at); status != cli.ExitOK {
		t.Fatal(errs)
	}
	must(t, "", "zk", "delete", "/c/x", "-s", at)
	var reapable []string
	s.View(func(tr *tree.Tree) { reapable = tr.Reapable(time.Now().Add(time.Hour).UnixMilli(), 10) })
	if slices.Sort(reapable); !slices.Equal(reapable, []string{"/c", "/t"}) {
		t.Errorf("to be reaped: %v", reapable)
	}
}

// Claim: files that are no exports are refused with their reason, and nothing is done.
func TestZkImportRefuses(t *testing.T) {
	at := coordination(t)
	for text, says := range map[string]string{
		`{}`:                               "format",
		`{"format":"millrace-zk-1","x":1}`: "unknown field",
		`{"format":"millrace-zk-1","nodes":[{"path":"a"}]}`:                         "is not a path",
		`{"format":"millrace-zk-1","nodes":[{"path":"/a","data_base64":"?"}]}`:      "data_base64",
		`{"format":"millrace-zk-1","nodes":[{"path":"/a","kind":"strange"}]}`:       "kind",
		`{"format":"millrace-zk-1","nodes":[{"path":"/a","acl":["world:anyone"]}]}`: "access list",
	} {
		status, _, errs := command(strings.NewReader(text), "zk", "import", "-", "-s", at)
		if status == cli.ExitOK || !strings.Contains(errs, says) {
			t.Errorf("%s: %d %s", text, status, errs)
		}
	}
	if out := must(t, "", "zk", "ls", "-s", at); out != "zookeeper\n" {
		t.Error(out)
	}
}
