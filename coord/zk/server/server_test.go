package server

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"millrace/coord/zk/proto"
	"millrace/coord/zk/store"
	"millrace/coord/zk/tree"
	"millrace/engine"
)

// service is a server over a directory that outlives it.
type service struct {
	t     testing.TB
	dir   string
	log   *engine.Log
	store *store.Store
	*Server
}

func serve(t testing.TB, dir string, change ...func(*Config)) *service {
	t.Helper()
	log, err := engine.OpenLog(filepath.Join(dir, "log-0"), engine.LogOptions{Config: store.LogConfig()})
	if err != nil {
		t.Fatal(err)
	}
	st, err := store.Open(log, store.Options{Dir: filepath.Join(dir, "snapshots")})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Listener: l, Tick: 50 * time.Millisecond, MaxTimeout: time.Hour, Words: []string{"*"}}
	for _, f := range change {
		f(&cfg)
	}
	s, err := Start(st, []byte("secret"), cfg)
	if err != nil {
		t.Fatal(err)
	}
	one := &service{t, dir, log, st, s}
	t.Cleanup(one.stop)
	return one
}

func (s *service) stop() {
	s.Close()
	s.store.Close()
	s.log.Close()
}

// client speaks frames.
type client struct {
	t testing.TB
	net.Conn
	a   proto.ConnectResponse
	xid int32
}

func (s *service) dial() *client {
	s.t.Helper()
	nc, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(time.Minute))
	return &client{t: s.t, Conn: nc}
}

func (c *client) put(body []byte) {
	c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
}

func (c *client) get() ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err := io.ReadFull(c, b)
	return b, err
}

// connect opens a session, or resumes one.
func (s *service) connect(timeout time.Duration, old ...proto.ConnectResponse) *client {
	s.t.Helper()
	c := s.dial()
	q := proto.ConnectRequest{Timeout: int32(timeout.Milliseconds()), Passwd: make([]byte, proto.PasswdSize)}
	for _, a := range old {
		q.Session, q.Passwd = a.Session, a.Passwd
	}
	c.put(proto.AppendConnect(nil, &q))
	b, err := c.get()
	if err == nil {
		c.a, err = proto.ParseConnected(b)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

func (c *client) ask(q proto.Request) {
	c.xid++
	if q.ACL == nil {
		q.ACL = proto.OpenACL
	}
	c.put(proto.AppendRequest(nil, c.xid, &q))
}

// do asks and waits for the answer; a notification before it fails the test.
func (c *client) do(q proto.Request) (proto.Reply, proto.Result) {
	c.t.Helper()
	c.ask(q)
	b, err := c.get()
	if err != nil {
		c.t.Fatal(q.Op, err)
	}
	h, body, _ := proto.ParseReply(b)
	if h.Xid != c.xid {
		c.t.Fatalf("%v: answer to %d, want %d", q.Op, h.Xid, c.xid)
	}
	if h.Err != proto.OK {
		return h, proto.Result{}
	}
	res, err := proto.ParseResult(q.Op, body)
	if err != nil {
		c.t.Fatal(err)
	}
	return h, res
}

func create(path string, mode proto.Mode) proto.Request {
	return proto.Request{Op: proto.OpCreate, Path: path, Mode: mode}
}

func exists(path string) proto.Request { return proto.Request{Op: proto.OpExists, Path: path} }

// eventually waits for a condition.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
	}
}

// Claim (W3): requests sent without waiting are answered in order, and a read sees the
// writes of its connection that came before it.
func TestPipelinedRequestsKeepTheirOrder(t *testing.T) {
	s := serve(t, t.TempDir())
	c := s.connect(time.Minute)
	const many = 300
	go func() { // ends when all is sent
		for i := range many {
			c.ask(create(fmt.Sprint("/n", i), proto.Persistent))
			c.ask(exists(fmt.Sprint("/n", i)))
		}
	}()
	for i := int32(1); i <= 2*many; i++ {
		b, err := c.get()
		if err != nil {
			t.Fatal(err)
		}
		if h, _, _ := proto.ParseReply(b); h.Xid != i || h.Err != proto.OK {
			t.Fatalf("answer %d: %+v", i, h)
		}
	}
}

// Claim: a session is resumed by its password and nothing else, its ephemerals stay, and
// the older connection ends; also after a restart of the service.
func TestSessionsAreResumed(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, dir)
	first := s.connect(time.Minute)
	first.do(create("/e", proto.Ephemeral))
	second := s.connect(time.Minute, first.a)
	if second.a.Session != first.a.Session {
		t.Fatalf("%+v", second.a)
	}
	if _, err := first.get(); err == nil {
		t.Fatal("the older connection goes on")
	}
	thief := first.a
	thief.Passwd = bytes.Repeat([]byte{1}, proto.PasswdSize)
	if c := s.connect(time.Minute, thief); c.a.Session != 0 || c.a.Timeout != 0 {
		t.Fatalf("resumed with a wrong password: %+v", c.a)
	}
	s.stop()

	s = serve(t, dir)
	third := s.connect(time.Minute, first.a)
	if third.a.Session != first.a.Session {
		t.Fatalf("after a restart: %+v", third.a)
	}
	if h, _ := third.do(exists("/e")); h.Err != proto.OK {
		t.Fatal(h.Err)
	}
	third.do(proto.Request{Op: proto.OpCloseSession})
	if h, _ := s.connect(time.Minute).do(exists("/e")); h.Err != proto.ErrNoNode {
		t.Fatalf("the session is closed and its ephemeral: %v", h.Err)
	}
}

// Claim: a silent session expires, with its ephemerals, also one that nobody came back to
// after a restart; one that pings does not.
func TestSilentSessionsExpire(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, dir)
	s.connect(time.Millisecond).do(create("/old", proto.Ephemeral)) // the least there is: two ticks
	s.stop()
	s = serve(t, dir)
	silent, alive := s.connect(time.Millisecond), s.connect(time.Minute)
	silent.do(create("/silent", proto.Ephemeral))
	alive.do(create("/alive", proto.Ephemeral))
	for _, path := range []string{"/old", "/silent"} {
		eventually(t, path+" is still there", func() bool {
			h, _ := alive.do(exists(path))
			return h.Err == proto.ErrNoNode
		})
	}
	if _, err := silent.get(); err == nil {
		t.Fatal("the connection of an expired session goes on")
	}
	if c := s.connect(time.Minute, silent.a); c.a.Session != 0 {
		t.Fatal("an expired session is resumed")
	}
	if h, _ := alive.do(exists("/alive")); h.Err != proto.OK {
		t.Fatal(h.Err)
	}
}

// Claim: an acknowledged write is there after a restart, under the zxid it was told, and a
// client that has seen more than we have is not served (C2).
func TestNothingGoesBack(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, dir)
	h, _ := s.connect(time.Minute).do(create("/a", proto.Persistent))
	s.stop()
	s = serve(t, dir)
	if _, res := s.connect(time.Minute).do(exists("/a")); res.Stat.Czxid != h.Zxid {
		t.Fatalf("czxid %d, was told %d", res.Stat.Czxid, h.Zxid)
	}
	c := s.dial()
	c.put(proto.AppendConnect(nil, &proto.ConnectRequest{LastZxidSeen: h.Zxid + 100, Timeout: 1000, Passwd: make([]byte, 16)}))
	if b, err := c.get(); err == nil {
		t.Fatalf("answered %x", b)
	}
}

// Claim: a watcher that does not read is cut off and costs a bounded amount; others and
// the writer are not held up.
func TestSlowWatchersAreCutOff(t *testing.T) {
	s := serve(t, t.TempDir())
	slow, writer := s.connect(time.Hour), s.connect(time.Hour)
	slow.do(proto.Request{Op: proto.OpAddWatch, Path: "/", Kind: proto.WatchPersistentRecursive})
	long := "/" + strings.Repeat("x", 200_000)
	writer.do(create(long, proto.Persistent))
	set := proto.Request{Op: proto.OpSetData, Path: long, Version: -1}
	sets := 0
	eventually(t, "it is not cut off", func() bool {
		for range 20 {
			if h, _ := writer.do(set); h.Err != proto.OK {
				t.Fatal(h.Err)
			}
			sets++
		}
		var size tree.Size
		s.store.View(func(t *tree.Tree) { size = t.Size() })
		return size.Watches == 0
	})
	t.Logf("cut off after %d events of 200 KB", sets)
}

// Claim: frames that are too large, negative, cut short or no requests end their
// connection, and nobody else's.
func TestBadFramesEndTheirConnection(t *testing.T) {
	s := serve(t, t.TempDir(), func(c *Config) { c.MaxRequest = 1000 })
	good := s.connect(time.Minute)
	for _, b := range [][]byte{{0x7f, 0xff, 0xff, 0xff}, {0xff, 0xff, 0xff, 0xff}, {0, 0, 3, 0xe9}, {0, 0, 0, 1, 9}} {
		c := s.connect(time.Minute)
		c.Write(b)
		if _, err := c.get(); err == nil {
			t.Fatalf("%x is answered", b)
		}
	}
	for op, want := range map[proto.Op]proto.Code{proto.OpCreate: proto.ErrMarshalling, proto.OpCheck: proto.ErrMarshalling,
		proto.OpDeleteContainer: proto.ErrMarshalling, proto.OpReconfig: proto.ErrReconfigDisabled} {
		good.xid++
		good.put(append(proto.AppendRequest(nil, good.xid, &proto.Request{Op: proto.OpSASL})[:4], byte(op>>24), byte(op>>16), byte(op>>8), byte(op), 1))
		b, err := good.get()
		if err != nil {
			t.Fatal(op, err)
		}
		if h, _, _ := proto.ParseReply(b); h.Xid != good.xid || h.Err != want {
			t.Errorf("%v: %+v, want %v", op, h, want)
		}
	}
	unknown := s.connect(time.Minute)
	if h, _ := unknown.do(proto.Request{Op: 99}); h.Err != proto.ErrUnimplemented {
		t.Errorf("operation 99: %v", h.Err)
	}
	if _, err := unknown.get(); err == nil {
		t.Error("the connection goes on after an operation that does not exist")
	}
	if h, _ := good.do(proto.Request{Op: proto.OpDeleteContainer, Path: "/zookeeper"}); h.Err != proto.ErrUnimplemented {
		t.Errorf("a client's deleteContainer: %v", h.Err)
	}
}

// Claim: one host has at most its number of connections.
func TestConnectionsPerHost(t *testing.T) {
	s := serve(t, t.TempDir(), func(c *Config) { c.MaxPerHost = 2 })
	first := s.connect(time.Minute)
	s.connect(time.Minute)
	if _, err := s.dial().get(); err == nil {
		t.Fatal("a third connection is served")
	}
	first.Close()
	eventually(t, "no connection is free again", func() bool {
		c := s.dial()
		defer c.Close()
		c.put(proto.AppendConnect(nil, &proto.ConnectRequest{Timeout: 1000, Passwd: make([]byte, 16)}))
		_, err := c.get()
		return err == nil
	})
}

// Claim: four-letter words are answered as text, and only those allowed.
func TestFourLetterWords(t *testing.T) {
	s := serve(t, t.TempDir(), func(c *Config) { c.Words = []string{"ruok", "srvr", "mntr", "dump", "wchp", "stat", "conf", "isro"} })
	c := s.connect(time.Minute)
	c.do(create("/e", proto.Ephemeral))
	c.do(proto.Request{Op: proto.OpExists, Path: "/e", Watch: true})
	for word, want := range map[string]string{"ruok": "imok", "isro": "rw", "srvr": "Mode: standalone", "mntr": "zk_ephemerals_count\t1", "dump": "\t/e",
		"wchp": "/e\n\t0x", "stat": version + "Clients:\n /127.0.0.1:", "conf": "tickTime=50", "cons": "not in the whitelist"} {
		c := s.dial()
		io.WriteString(c, word)
		b, err := io.ReadAll(c)
		if err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s: %q, %v", word, b, err)
		}
	}
}
