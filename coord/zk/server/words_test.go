package server

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/coord/zk/proto"
)

func (s *service) word(send string) string {
	s.t.Helper()
	c := s.dial()
	io.WriteString(c, send)
	b, err := io.ReadAll(c)
	if err != nil {
		s.t.Error(send, err)
	}
	return string(b)
}

// Claim: what monitoring reads is there under ZooKeeper's names and in its form, counts
// what it says, and is set back when asked.
func TestWordsOfMonitoring(t *testing.T) {
	s := serve(t, t.TempDir())
	c := s.connect(time.Minute)
	c.do(create("/a", proto.Persistent))
	mntr := s.word("mntr")
	for _, name := range []string{"version", "server_state", "avg_latency", "min_latency", "max_latency", "packets_received", "packets_sent", "bytes_received_count",
		"num_alive_connections", "outstanding_requests", "auth_failed_count", "znode_count", "watch_count", "ephemerals_count", "approximate_data_size",
		"global_sessions", "local_sessions", "uptime"} {
		if !regexp.MustCompile(`(?m)^zk_` + name + `\t\S+$`).MatchString(mntr) {
			t.Errorf("mntr has no %s: %s", name, mntr)
		}
	}
	if !strings.Contains(mntr, "zk_packets_received\t2\n") || !strings.Contains(mntr, "zk_packets_sent\t2\n") {
		t.Error(mntr)
	}
	cons := s.word("cons")
	if want := fmt.Sprintf(`(?m)^ /127\.0\.0\.1:\d+\[1\]\(queued=0,recved=2,sent=2,sid=0x%x,lop=CREA,est=\d+,to=60000,lcxid=0x1,lzxid=0x2,lresp=\d+,llat=\d+,minlat=\d+,avglat=\d+,maxlat=\d+\)$`,
		c.a.Session); !regexp.MustCompile(want).MatchString(cons) {
		t.Error(cons)
	}
	if got := s.word("srst") + s.word("crst"); got != "Server stats reset.\nConnection stats reset.\n" {
		t.Error(got)
	}
	if got := s.word("srvr"); !strings.Contains(got, "Received: 0\nSent: 0\n") {
		t.Error(got)
	}
	if got := s.word("cons"); !strings.Contains(got, "recved=0,sent=0,sid=") {
		t.Error(got)
	}
	if got := s.word("gtmk") + " " + s.word("stmk"+string(binary.BigEndian.AppendUint64(nil, 7))) + " " + s.word("gtmk"); got != "306 7 7" {
		t.Error(got)
	}
	if got := s.word("dirs"); !regexp.MustCompile(`^datadir_size: \d+\nlogdir_size: [1-9]\d*\n$`).MatchString(got) {
		t.Error(got)
	}
	if got := s.word("envi"); !strings.Contains(got, "zookeeper.version=3.9.0-millrace\n") {
		t.Error(got)
	}
	if got := s.word("dump"); !strings.Contains(got, fmt.Sprintf("\t0x%x\n", c.a.Session)) {
		t.Error(got)
	}
}

// Claim: a client with a hundred thousand watches is served as any other, and gets every
// event when all of them fire.
func TestHundredThousandWatches(t *testing.T) {
	many := 100_000
	if testing.Short() {
		many = 20_000
	}
	s := serve(t, t.TempDir())
	c, other := s.connect(time.Hour), s.connect(time.Hour)
	c.SetDeadline(time.Now().Add(5 * time.Minute))
	other.SetDeadline(time.Now().Add(5 * time.Minute))
	read := func(c *client, n int, want func(h proto.Reply, body []byte)) {
		for range n {
			b, err := c.get()
			if err != nil {
				t.Fatal(err)
			}
			h, body, _ := proto.ParseReply(b)
			want(h, body)
		}
	}
	path := func(i int) string { return fmt.Sprintf("/n%d", i) }
	for at := 0; at < many; at += 1000 {
		for i := at; i < at+1000; i++ {
			q := exists(path(i))
			q.Watch = true
			c.ask(q)
		}
		read(c, 1000, func(h proto.Reply, _ []byte) {
			if h.Err != proto.ErrNoNode {
				t.Fatal(h)
			}
		})
	}
	if got := s.word("wchs"); got != fmt.Sprintf("1 connections watching %d paths\nTotal watches:%d\n", many, many) {
		t.Fatal(got)
	}
	var busy sync.WaitGroup
	busy.Go(func() { // ends with its writes
		for at := 0; at < many; at += 1000 {
			for i := at; i < at+1000; i++ {
				other.ask(create(path(i), proto.Persistent))
			}
			read(other, 1000, func(h proto.Reply, _ []byte) {
				if h.Err != proto.OK {
					t.Error(h)
				}
			})
		}
	})
	next := 0
	read(c, many, func(h proto.Reply, body []byte) { // in the order of the changes
		e, err := proto.ParseEvent(body)
		if err != nil || h.Xid != proto.XidNotification || e.Type != proto.EventCreated || e.Path != path(next) {
			t.Fatal(err, h, e)
		}
		next++
	})
	busy.Wait()
	if got := s.word("wchs"); got != "0 connections watching 0 paths\nTotal watches:0\n" {
		t.Fatal(got)
	}
}

// logged is a log that may be read while it is written.
type logged struct {
	sync.Mutex
	bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.Lock()
	defer l.Unlock()
	return l.Buffer.Write(b)
}

func (l *logged) String() string {
	l.Lock()
	defer l.Unlock()
	return l.Buffer.String()
}

// Claim: a soft quota refuses nothing; that it is exceeded is logged, once in a while.
func TestSoftQuotasWarn(t *testing.T) {
	var log logged
	s := serve(t, t.TempDir(), func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	c := s.connect(time.Minute)
	for _, q := range []proto.Request{
		create("/q", proto.Persistent), create("/zookeeper/quota/q", proto.Persistent),
		{Op: proto.OpCreate, Path: "/zookeeper/quota/q/zookeeper_limits", Data: []byte("count=2,bytes=-1")},
		{Op: proto.OpCreate, Path: "/zookeeper/quota/q/zookeeper_stats", Data: []byte("count=0,bytes=0")},
		create("/q/1", proto.Persistent),
	} {
		if h, _ := c.do(q); h.Err != proto.OK {
			t.Fatal(q.Path, h.Err)
		}
	}
	if log.String() != "" {
		t.Fatal(log.String())
	}
	for _, path := range []string{"/q/2", "/q/3"} {
		if h, _ := c.do(create(path, proto.Persistent)); h.Err != proto.OK {
			t.Fatal(path, h.Err)
		}
	}
	eventually(t, "no warning", func() bool { return strings.Contains(log.String(), "path=/q what=count limit=2 usage=3") })
	c.do(create("/other", proto.Persistent))
	for _, path := range []string{"", "no-slash", "/q/"} { // refused, and no reason to fall over
		if h, _ := c.do(create(path, proto.Persistent)); h.Err != proto.ErrBadArguments {
			t.Fatalf("%q: %v", path, h.Err)
		}
	}
	if n := strings.Count(log.String(), "soft quota"); n != 1 {
		t.Fatal(log.String())
	}
}
