package broker

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/engine/batch"
	"millrace/wire"
)

// Claim: an ApiVersions request newer than ours is answered so that any client
// can read it, and the connection goes on.
// Method: key 18, version 99, correlation 7; then our newest on the same socket.
func TestField_F030_NewerApiVersions(t *testing.T) {
	b := startBroker(t)
	c := b.dial()
	c.next = 6
	c.write(c.frameOf(wire.KeyAPIVersions, 99, []byte{0, 1, 2, 3, 4, 5}))
	correlation, rest := c.read()
	if correlation != 7 {
		t.Fatalf("correlation %d, want 7", correlation)
	}
	resp := c.decode(kmsg.NewPtrApiVersionsRequest(), 0, rest).(*kmsg.ApiVersionsResponse)
	if resp.ErrorCode != wire.ErrUnsupportedVersion || len(resp.ApiKeys) != 1 || resp.ApiKeys[0].ApiKey != 18 {
		t.Fatalf("code %d, keys %v, want 35 and key 18", resp.ErrorCode, resp.ApiKeys)
	}
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "test", "1.0"
	resp = c.ask(req, resp.ApiKeys[0].MaxVersion).(*kmsg.ApiVersionsResponse)
	if resp.ErrorCode != 0 || len(resp.ApiKeys) != len(wire.APIs) {
		t.Errorf("second try: code %d, %d keys, want all %d", resp.ErrorCode, len(resp.ApiKeys), len(wire.APIs))
	}
	req.ClientSoftwareName = "no spaces allowed"
	if resp = c.ask(req, 3).(*kmsg.ApiVersionsResponse); resp.ErrorCode != wire.ErrInvalidRequest {
		t.Errorf("bad software name: code %d, want 42", resp.ErrorCode)
	}
}

// Claim: everything in the table of APIs is served, and nothing else (W2).
// Method: compare both tables.
func TestTablesAgree(t *testing.T) {
	for _, api := range wire.APIs {
		if !served(api.Key) {
			t.Errorf("%s is in wire.APIs and not served", api.Name)
		}
	}
	for key := range handlers {
		if _, ok := wire.Lookup(key); !ok {
			t.Errorf("key %d is served and not in wire.APIs", key)
		}
	}
}

// Claim: what we do not speak closes the connection with a line that names api,
// version and client; answers before it are still sent.
// Method: an unknown key, and a version too new, each behind a good request.
func TestUnsupportedRequestsCloseWithALine(t *testing.T) {
	b := startBroker(t)
	for _, bad := range []struct{ key, version int16 }{{999, 0}, {wire.KeyMetadata, 99}, {wire.KeyProduce, 14}} {
		c := b.dial()
		c.write(c.frame(kmsg.NewPtrApiVersionsRequest(), 0), c.frameOf(bad.key, bad.version, []byte{0, 0, 0, 0}))
		if correlation, _ := c.read(); correlation != 1 {
			t.Errorf("answer to %d, want 1", correlation)
		}
		if _, _, err := c.tryRead(5 * time.Second); err == nil || isTimeout(err) {
			t.Errorf("key %d v%d: the connection stayed open: %v", bad.key, bad.version, err)
		}
		time.Sleep(logEvery) // lines of a kind are limited
	}
	for _, text := range []string{`api="key 999"`, "api=Metadata version=99 client_id=test", "api=Produce version=14"} {
		if b.log.count(text) == 0 {
			t.Errorf("no line says %s", text)
		}
	}
}

func isTimeout(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}

// Claim: bytes that are not Kafka's close the connection within a second, with a
// line that guesses what they are; memory does not grow and others go on.
// Method: the case's openings, many at once.
func TestField_F129_GarbageFrames(t *testing.T) {
	b := startBroker(t)
	size := func(n uint32) []byte { return append(binary.BigEndian.AppendUint32(nil, n), "and some more"...) }
	openings := map[string][]byte{
		"http": []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "tls": {0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3},
		"minus one": size(0xffffffff), "zero": size(0), "two gigabytes": size(0x7fffffff), "one too many": size(104857601), "negative": size(0xaaaaaaaa),
	}
	before := heap()
	var wait sync.WaitGroup
	for name, opening := range openings {
		for range 50 {
			wait.Go(func() {
				nc, err := net.Dial("tcp", b.Addr(""))
				if err != nil {
					t.Error(err)
					return
				}
				defer nc.Close()
				_, _ = nc.Write(opening)
				_ = nc.SetReadDeadline(time.Now().Add(5 * time.Second))
				if _, err := io.ReadAll(nc); isTimeout(err) {
					t.Errorf("%s: still open after 5 s", name)
				}
			})
		}
	}
	wait.Wait()
	if grown := heap() - before; grown > 50<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
	if lines := b.log.count("closing a connection"); lines == 0 || lines > 10 {
		t.Errorf("%d lines for %d connections, want a few", lines, 50*len(openings))
	}
	time.Sleep(logEvery)
	nc := b.dial().nc
	_, _ = nc.Write(openings["http"])
	_, _ = io.ReadAll(nc)
	if b.log.count("HTTP") == 0 {
		t.Error("no line says that it looks like HTTP")
	}
	if resp := b.dial().ask(kmsg.NewPtrApiVersionsRequest(), 0).(*kmsg.ApiVersionsResponse); resp.ErrorCode != 0 {
		t.Errorf("the next client got code %d", resp.ErrorCode)
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Claim: many clients that announce large requests and send them slowly hold
// little memory, and others are served meanwhile.
// Method: 200 sockets announce 50 MB and send a byte now and then; a producer of
// ordinary and of large requests works beside them.
func TestField_F131_MemoryBound(t *testing.T) {
	b := startBroker(t, "queued.max.request.bytes=67108864", "socket.request.max.bytes=52428800", "max.message.bytes=4000000", "message.max.bytes=4000000")
	b.topic("t", 1)
	before := heap()
	stop := make(chan struct{})
	var wait sync.WaitGroup
	for range 200 {
		c := b.dial()
		c.write(binary.BigEndian.AppendUint32(nil, 50<<20))
		wait.Go(func() {
			tick := time.NewTicker(100 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-stop:
					return
				case <-tick.C:
					_, _ = c.nc.Write([]byte{'x'})
				}
			}
		})
	}
	c := b.dial()
	for i := range 20 {
		records := values(batch.None, "x")
		if i%4 == 0 {
			records = sized(3 << 20)
		}
		begun := time.Now()
		if p := b.produce(c, 9, "t", 0, records); p.ErrorCode != 0 {
			t.Fatalf("produce: %s", wire.ErrorName(p.ErrorCode))
		}
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("a produce took %v", took)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if used := b.budget.used.Load(); used > b.budget.limit {
		t.Errorf("%d bytes reserved, the bound is %d", used, b.budget.limit)
	}
	if grown := heap() - before; grown > 64<<20 {
		t.Errorf("the heap grew by %d MiB for 200 slow clients", grown>>20)
	}
	close(stop)
	wait.Wait()
}

// Claim: idle connections end with FIN after connections.max.idle.ms; a held
// fetch is not idle; -1 switches it off.
// Method: an idle socket, one with a fetch that waits longer than the limit.
func TestField_F119_IdleConnections(t *testing.T) {
	b := startBroker(t, "connections.max.idle.ms=500")
	b.topic("t", 1)
	begun := time.Now()
	idle, busy := b.dial(), b.dial()
	idle.ask(kmsg.NewPtrApiVersionsRequest(), 0)
	req := b.fetchOf(11, want{topic: "t"})
	req.MaxWaitMillis = 1500
	busy.write(busy.frame(req, 11))
	_ = idle.nc.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := idle.nc.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the idle connection ended with %v, want EOF", err)
	}
	if took := time.Since(begun); took < 450*time.Millisecond || took > 1200*time.Millisecond {
		t.Errorf("closed after %v, want about 500 ms", took)
	}
	if resp := busy.answer(req, 11).(*kmsg.FetchResponse); resp.ErrorCode != 0 {
		t.Errorf("the held fetch got code %d", resp.ErrorCode)
	}
	if took := time.Since(begun); took < 1400*time.Millisecond {
		t.Errorf("the held fetch was answered after %v", took)
	}

	never := startBroker(t, "connections.max.idle.ms=-1")
	c := never.dial()
	if _, _, err := c.tryRead(1200 * time.Millisecond); !isTimeout(err) {
		t.Errorf("with -1 the connection ended: %v", err)
	}
}

// Claim: a client that takes no answers does not hold its connection for ever.
// Method: fetch more than the sockets hold, read nothing.
func TestClientThatTakesNoAnswersIsClosed(t *testing.T) {
	b := startBroker(t, "connections.max.idle.ms=500", "socket.send.buffer.bytes=65536")
	b.topic("t", 1, "max.message.bytes=20000000")
	for range 3 {
		b.mustProduce("t", 0, sized(8<<20))
	}
	c := b.dial()
	req := b.fetchOf(11, want{topic: "t", max: 50 << 20})
	c.write(c.frame(req, 11))
	for deadline := time.Now().Add(10 * time.Second); b.log.count("takes no answers") == 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the connection stays, with its pinned segment")
		}
	}
}

// Claim: max.connections and max.connections.per.ip are kept.
// Method: one more than allowed of each.
func TestConnectionLimits(t *testing.T) {
	for _, limit := range []string{"max.connections", "max.connections.per.ip"} {
		b := startBroker(t, limit+"=2")
		first, second := b.dial(), b.dial()
		first.ask(kmsg.NewPtrApiVersionsRequest(), 0)
		second.ask(kmsg.NewPtrApiVersionsRequest(), 0)
		third := b.dial()
		if _, _, err := third.tryRead(5 * time.Second); err == nil || isTimeout(err) {
			t.Errorf("%s: a third connection was taken", limit)
		}
		if b.log.count(limit+"=2") == 0 {
			t.Errorf("%s: no line says why", limit)
		}
		first.nc.Close()
		for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			c := b.dial()
			_, _ = c.nc.Write(c.frame(kmsg.NewPtrApiVersionsRequest(), 0))
			if _, _, err := c.tryRead(time.Second); err == nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: no connection is taken after one has gone", limit)
			}
		}
	}
}

// Claim (F127): clients get no more descriptors than leave the logs some, whatever max.connections says.
// Method: places for two; a third connection.
func TestField_F127_ClientsLeaveDescriptors(t *testing.T) {
	b := startBroker(t)
	b.conns.mu.Lock()
	b.conns.most = len(b.conns.open) + 2
	b.conns.mu.Unlock()
	b.dial().ask(kmsg.NewPtrApiVersionsRequest(), 0)
	b.dial().ask(kmsg.NewPtrApiVersionsRequest(), 0)
	third := b.dial()
	if _, _, err := third.tryRead(5 * time.Second); err == nil || isTimeout(err) {
		t.Error("a third connection was taken")
	}
	if b.log.count("RLIMIT_NOFILE (ulimit -n") == 0 {
		t.Error("no line names the limit")
	}
}

// Claim: a panic in a handler costs its connection, with the stack in the log,
// and nothing else.
// Method: a handler that panics.
func TestPanicClosesOnlyItsConnection(t *testing.T) {
	before := byKey[wire.KeyMetadata]
	byKey[wire.KeyMetadata] = func(*Broker, *requestContext, kmsg.Request) kmsg.Response { panic("planted") }
	t.Cleanup(func() { byKey[wire.KeyMetadata] = before }) // after the broker has stopped
	b := startBroker(t)
	b.topic("t", 1)
	good := b.dial()
	good.ask(kmsg.NewPtrApiVersionsRequest(), 0)
	c := b.dial()
	// A produce that is queued before the panic must still be written.
	c.write(c.frame(b.produceTo(9, -1, "t", 0, values(batch.None, "x")), 9), c.frame(kmsg.NewPtrMetadataRequest(), 4))
	for {
		if _, _, err := c.tryRead(5 * time.Second); err != nil {
			if isTimeout(err) {
				t.Error("the connection stayed open")
			}
			break
		}
	}
	good.ask(kmsg.NewPtrApiVersionsRequest(), 0)
	if b.log.count("planted") == 0 || b.log.count("conn_test.go") == 0 {
		t.Error("the log does not show the panic and its stack")
	}
	if end := b.end("t", 0); end != 1 {
		t.Errorf("end offset %d, want 1", end)
	}
}

// Claim: a stop under load ends within 5 s, cleanly; what was acknowledged is
// there after the next start, and every answer that began is whole.
// Method: eight producers, stop in the middle, start again.
func TestStopUnderLoad(t *testing.T) {
	dir := t.TempDir()
	b := startBrokerIn(t, dir)
	b.topic("t", 4)
	var acked [4]int64
	var mu sync.Mutex
	var wait sync.WaitGroup
	for i := range 4 {
		for range 2 {
			c := b.dial()
			wait.Go(func() {
				for {
					if _, err := c.nc.Write(c.frame(b.produceTo(9, -1, "t", int32(i), values(batch.None, "x")), 9)); err != nil {
						return
					}
					_, rest, err := c.tryRead(10 * time.Second)
					if err != nil {
						if !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
							t.Errorf("an answer broke off: %v", err)
						}
						return
					}
					p := c.decode(kmsg.NewPtrProduceRequest(), 9, rest).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
					if p.ErrorCode == 0 {
						mu.Lock()
						acked[i] = max(acked[i], p.BaseOffset+1)
						mu.Unlock()
					}
				}
			})
		}
	}
	held := b.dial()
	req := b.fetchOf(11, want{topic: "t", offset: 0})
	req.MinBytes, req.MaxWaitMillis = 40<<20, 60_000
	held.write(held.frame(req, 11))
	time.Sleep(300 * time.Millisecond)
	begun := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := b.Stop(ctx); err != nil {
		t.Errorf("stop: %v", err)
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("the stop took %v", took)
	}
	wait.Wait()
	if _, _, err := held.tryRead(time.Second); err != nil {
		t.Errorf("the held fetch was not answered: %v", err)
	}
	again := startBrokerIn(t, dir)
	for i, n := range acked {
		if end := again.end("t", int32(i)); end < n {
			t.Errorf("partition %d ends at %d, %d was acknowledged", i, end, n)
		}
	}
}

// Claim: a small produce in steady state allocates nothing in the broker's own
// path.
// Method: one request answered again and again by a connection without client.
func TestProduceAllocatesNothing(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1, "millrace.durability=page-cache")
	server, other := net.Pipe()
	defer other.Close()
	go func() { _, _ = io.Copy(io.Discard, other) }()
	c := newConn(b.Broker, server, "PLAINTEXT")
	maker := &client{t: t}
	frame := maker.frame(b.produceTo(9, -1, "t", 0, values(batch.None, strings.Repeat("x", 100))), 9)[4:]
	buf := bytes.Clone(frame)
	c.rc.arrived = time.Now()
	run := func() {
		copy(buf, frame) // it was stamped
		if err := c.answer(buf); err != nil {
			t.Fatal(err)
		}
		if err := c.finishProduce(); err != nil {
			t.Fatal(err)
		}
		if err := c.flush(); err != nil {
			t.Fatal(err)
		}
	}
	for range 10 {
		run()
	}
	if n := testing.AllocsPerRun(200, run); n >= 1 {
		t.Errorf("%v allocations per request, want 0", n)
	}
}

// Claim: no body, whatever is in it, makes a handler panic or takes the broker
// down; the connection answers or closes.
// Method: every API and version with random bodies and cut valid ones.
func TestHostileBodies(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 2)
	random := rand.New(rand.NewPCG(3, 4))
	for _, api := range wire.APIs {
		for version := api.Min; version <= api.Max; version++ {
			valid := kmsg.RequestForKey(api.Key)
			switch api.Key {
			case wire.KeyProduce:
				valid = b.produceTo(version, 1, "t", 0, values(batch.None, "x"))
			case wire.KeyFetch:
				valid = b.fetchOf(version, want{topic: "t"}, want{topic: "t", partition: 1})
			}
			valid.SetVersion(version)
			body := valid.AppendTo(nil)
			for range 3 {
				hostile := bytes.Clone(body)
				switch random.IntN(3) {
				case 0:
					hostile = hostile[:random.IntN(len(hostile)+1)]
				case 1:
					if len(hostile) > 0 {
						hostile[random.IntN(len(hostile))] = byte(random.Uint32())
					}
				default:
					hostile = make([]byte, random.IntN(64))
					for i := range hostile {
						hostile[i] = byte(random.Uint32())
					}
				}
				c := b.dial()
				c.write(c.frameOf(api.Key, version, hostile))
				_, _, _ = c.tryRead(5 * time.Millisecond)
				_ = c.nc.Close()
			}
		}
	}
	if n := b.log.count("panicked"); n > 0 {
		t.Errorf("%d panics", n)
	}
	b.dial().ask(kmsg.NewPtrApiVersionsRequest(), 0)
}

// Claim: /healthz and /readyz answer, and /readyz says when a stop begins.
// Method: ask both.
func TestHealthEndpoints(t *testing.T) {
	b := startBroker(t, "admin.listener=127.0.0.1:0")
	transport := &http.Transport{DisableKeepAlives: true}
	client := &http.Client{Transport: transport}
	for path, code := range map[string]int{"/healthz": 200, "/readyz": 200, "/nothing": 404} {
		resp, err := client.Get("http://" + b.Ready().Admin + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != code {
			t.Errorf("%s: %d, want %d", path, resp.StatusCode, code)
		}
	}
}
