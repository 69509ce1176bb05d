package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// filePart is a payload as a log slice is one.
type filePart struct {
	bytes    []byte
	broken   error // of ReadInto and SendTo
	cut      int   // SendTo sends this many bytes too few
	sent     int   // times
	released int
}

func (p *filePart) Size() int { return len(p.bytes) }
func (p *filePart) ReadInto(dst []byte) error {
	copy(dst, p.bytes)
	return p.broken
}
func (p *filePart) SendTo(c net.Conn) (int64, error) {
	p.sent++
	if p.broken != nil {
		return 0, p.broken
	}
	n, err := c.Write(p.bytes[:len(p.bytes)-p.cut])
	return int64(n), err
}
func (p *filePart) Release() { p.released++ }

// recorder is a connection that notes its writes.
type recorder struct {
	net.Conn
	writes [][]byte
	fail   error
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.fail != nil {
		return 0, r.fail
	}
	r.writes = append(r.writes, bytes.Clone(b))
	return len(b), nil
}

func (r *recorder) all() []byte { return bytes.Join(r.writes, nil) }

func fetchOf(parts ...*filePart) *FetchResponse {
	r := &FetchResponse{Topics: []FetchTopicResult{{Name: "orders", ID: [16]byte{1}}}}
	for i, p := range parts {
		r.Topics[0].Partitions = append(r.Topics[0].Partitions, FetchPartitionResult{Index: int32(i), HighWatermark: 9, LastStable: 9, PreferredReplica: -1, Payload: p})
	}
	return r
}

func part(size int, fill byte) *filePart { return &filePart{bytes: bytes.Repeat([]byte{fill}, size)} }

// readFetch decodes one frame off b with kmsg.
func readFetch(t *testing.T, b []byte, version int16) (*kmsg.FetchResponse, []byte) {
	t.Helper()
	n := int(binary.BigEndian.Uint32(b))
	if n > len(b)-4 {
		t.Fatalf("frame says %d, %d are there", n, len(b)-4)
	}
	head := 8
	if version >= 12 {
		head = 9
	}
	got := kmsg.NewPtrFetchResponse()
	got.Version = version
	if err := got.ReadFrom(b[head : 4+n]); err != nil {
		t.Fatal(err)
	}
	return got, b[4+n:]
}

// Claim: whatever mixture of copied and sent payloads an answer has, in every
// version, the client gets the same bytes, and every payload is released once.
// Method: all mixtures of three sizes around the threshold, decoded by kmsg.
func TestSentAndCopiedPayloadsGiveTheSameAnswer(t *testing.T) {
	const threshold = 100
	sizes := []int{0, threshold - 1, threshold}
	for version := int16(0); version <= 18; version++ {
		for mix := range 27 {
			parts := []*filePart{part(sizes[mix%3], 'a'), part(sizes[mix/3%3], 'b'), part(sizes[mix/9], 'c')}
			conn := &recorder{}
			w := NewWriter(conn)
			h := Header{Key: KeyFetch, Version: version, Correlation: 7}
			if err := fetchOf(parts...).Send(w, h, threshold); err != nil {
				t.Fatal(err)
			}
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			got, rest := readFetch(t, conn.all(), version)
			if len(rest) != 0 || w.Sent() != int64(len(conn.all())) {
				t.Fatalf("v%d mix %d: %d bytes too many, %d counted", version, mix, len(rest), w.Sent())
			}
			for i, p := range parts {
				if !bytes.Equal(got.Topics[0].Partitions[i].RecordBatches, p.bytes) {
					t.Fatalf("v%d mix %d: partition %d differs", version, mix, i)
				}
				if p.released != 1 || (p.sent == 1) != (len(p.bytes) >= threshold) {
					t.Fatalf("v%d mix %d: partition %d released %d, sent %d times", version, mix, i, p.released, p.sent)
				}
			}
		}
	}
}

// Claim: answers appended one after another leave in that order (W3), all that
// need no file in one write.
// Method: kmsg, Produce and Fetch answers; count writes, read correlation ids.
func TestAnswersLeaveTogetherAndInOrder(t *testing.T) {
	conn := &recorder{}
	w := NewWriter(conn)
	w.RespondProduce(Header{Key: KeyProduce, Version: 9, Correlation: 1}, &ProduceResponse{})
	w.Respond(Header{Key: KeyMetadata, Version: 9, Correlation: 2}, kmsg.NewPtrMetadataResponse())
	if err := fetchOf(part(10, 'a')).Send(w, Header{Key: KeyFetch, Version: 12, Correlation: 3}, 100); err != nil {
		t.Fatal(err)
	}
	w.RespondProduce(Header{Key: KeyProduce, Version: 9, Correlation: 4}, &ProduceResponse{})
	if len(conn.writes) != 0 || w.Buffered() == 0 {
		t.Errorf("%d writes before Flush", len(conn.writes))
	}
	if err := w.Flush(); err != nil || len(conn.writes) != 1 {
		t.Fatalf("%d writes, %v", len(conn.writes), err)
	}
	requireOrder(t, conn.all(), 4)

	conn.writes = nil // with a file range in the middle: head, range, and the rest together
	w.RespondProduce(Header{Key: KeyProduce, Version: 9, Correlation: 1}, &ProduceResponse{})
	if err := fetchOf(part(200, 'a'), part(1, 'b')).Send(w, Header{Key: KeyFetch, Version: 12, Correlation: 2}, 100); err != nil {
		t.Fatal(err)
	}
	w.RespondProduce(Header{Key: KeyProduce, Version: 9, Correlation: 3}, &ProduceResponse{})
	if err := w.Flush(); err != nil || len(conn.writes) != 3 {
		t.Fatalf("%d writes, %v", len(conn.writes), err)
	}
	requireOrder(t, conn.all(), 3)
}

func requireOrder(t *testing.T, b []byte, n int) {
	t.Helper()
	for want := 1; want <= n; want++ {
		if got := binary.BigEndian.Uint32(b[4:]); got != uint32(want) {
			t.Fatalf("answer %d came in place of %d", got, want)
		}
		b = b[4+binary.BigEndian.Uint32(b):]
	}
	if len(b) != 0 {
		t.Fatalf("%d bytes behind the last answer", len(b))
	}
}

// Claim: a payload that cannot be read spoils its own partition only.
// Method: break the second of three; old versions get the code they know.
func TestUnreadablePayloadAnswersItsPartitionAlone(t *testing.T) {
	for version, want := range map[int16]int16{4: ErrNotLeaderOrFollower, 12: ErrKafkaStorageError} {
		parts := []*filePart{part(5, 'a'), part(5, 'b'), part(5, 'c')}
		parts[1].broken = errors.New("bad sector")
		conn := &recorder{}
		w := NewWriter(conn)
		r := fetchOf(parts...)
		if err := r.Send(w, Header{Key: KeyFetch, Version: version}, 100); err != nil {
			t.Fatal(err)
		}
		_ = w.Flush()
		got, _ := readFetch(t, conn.all(), version)
		for i, p := range got.Topics[0].Partitions {
			if broken := i == 1; broken != (p.ErrorCode == want) || broken == (len(p.RecordBatches) == 5) || broken != (p.HighWatermark == -1) {
				t.Errorf("v%d partition %d: %+v", version, i, p)
			}
			if parts[i].released != 1 {
				t.Errorf("v%d partition %d released %d times", version, i, parts[i].released)
			}
		}
		if r.Topics[0].Partitions[1].ReadError == nil {
			t.Errorf("v%d: the reason is lost", version)
		}
	}
}

// Claim: once a frame is broken nothing more is sent, and every payload is
// released all the same.
// Method: a payload that fails, one that sends too little, a dead connection.
func TestABrokenFrameEndsTheConnection(t *testing.T) {
	for name, spoil := range map[string]func(*filePart, *recorder){
		"fails":      func(p *filePart, _ *recorder) { p.broken = errors.New("gone") },
		"short":      func(p *filePart, _ *recorder) { p.cut = 1 },
		"connection": func(_ *filePart, c *recorder) { c.fail = io.ErrClosedPipe },
	} {
		parts := []*filePart{part(200, 'a'), part(200, 'b')}
		conn := &recorder{}
		spoil(parts[0], conn)
		w := NewWriter(conn)
		if err := fetchOf(parts...).Send(w, Header{Key: KeyFetch, Version: 12}, 100); err == nil {
			t.Errorf("%s: no error", name)
		}
		before := len(conn.writes)
		late := part(1, 'x')
		if fetchOf(late).Send(w, Header{Key: KeyFetch, Version: 12}, 100) == nil || w.Flush() == nil || w.Err() == nil {
			t.Errorf("%s: the writer goes on", name)
		}
		if len(conn.writes) != before || parts[0].released != 1 || parts[1].released != 1 || late.released != 1 {
			t.Errorf("%s: %d writes after, released %d %d %d", name, len(conn.writes)-before, parts[0].released, parts[1].released, late.released)
		}
	}
}

// Claim: the outgoing buffer stays bounded however many small payloads an
// answer has, and a giant one is not kept.
// Method: 40 payloads of 60 KB, below a threshold of 64 KiB.
func TestTheOutgoingBufferIsBounded(t *testing.T) {
	var parts []*filePart
	for i := range 40 {
		parts = append(parts, part(60_000, byte(i)))
	}
	conn := &recorder{}
	w := NewWriter(conn)
	if err := fetchOf(parts...).Send(w, Header{Key: KeyFetch, Version: 12}, 64<<10); err != nil {
		t.Fatal(err)
	}
	if cap(w.buf) > keepBuffer {
		t.Errorf("buffer of %d bytes", cap(w.buf))
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	got, _ := readFetch(t, conn.all(), 12)
	for i, p := range got.Topics[0].Partitions {
		if !bytes.Equal(p.RecordBatches, parts[i].bytes) {
			t.Fatalf("partition %d differs", i)
		}
	}
	w.Append(func(dst []byte) []byte { return append(dst, make([]byte, keepBuffer+1)...) })
	if err := w.Flush(); err != nil || w.buf != nil {
		t.Errorf("%v, %d bytes kept", err, cap(w.buf))
	}
}

// Claim: over TCP, with MSG_MORE, everything arrives whole, also when the
// socket is full, and a write deadline ends a send to a client that reads
// nothing.
// Method: a slow reader on a real socket; then one that never reads.
func TestSendingOverTCP(t *testing.T) {
	server, client := tcpPair(t)
	want := make(chan []byte, 1)
	go func() { // ends when the server side is closed
		b, _ := io.ReadAll(&slowReader{client})
		want <- b
	}()
	w := NewWriter(server)
	if w.more == nil {
		t.Fatal("no MSG_MORE on a TCP connection")
	}
	var sent []byte
	for i := range 3 {
		parts := []*filePart{part(1<<20, byte(i)), part(10, 'x'), part(300_000, 'y')}
		r := fetchOf(parts...)
		sent = r.AppendTo(append(sent, 0, 0, 0, 0, 0, 0, 0, 0, 0), 12)
		if err := r.Send(w, Header{Key: KeyFetch, Version: 12}, 64<<10); err != nil {
			t.Fatal(err)
		}
		w.Append(func(dst []byte) []byte { return append(dst, make([]byte, 300_000)...) })
		sent = append(sent, make([]byte, 300_000)...)
		if err := w.flushMore(w.buf); err != nil { // a big one through MSG_MORE
			t.Fatal(err)
		}
		w.buf = w.buf[:0]
	}
	server.Close()
	if got := <-want; len(got) != len(sent) || !bytes.Equal(got[len(got)-300_000:], sent[len(sent)-300_000:]) {
		t.Errorf("%d bytes arrived of %d", len(got), len(sent))
	}

	server, _ = tcpPair(t)
	_ = server.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
	w = NewWriter(server)
	var timeout net.Error
	if err := w.flushMore(make([]byte, 64<<20)); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("a client that reads nothing: %v", err)
	}
}

type slowReader struct{ c net.Conn }

func (r *slowReader) Read(b []byte) (int, error) { return r.c.Read(b[:min(len(b), 64<<10)]) }

func tcpPair(t *testing.T) (server, client net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if client, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close(); client.Close() })
	return server, client
}

// Claim: Produce and Fetch answers have these bytes.
// Method: golden transcripts, field by field.
func TestGoldenAnswers(t *testing.T) {
	produce := &ProduceResponse{ThrottleMs: 1, Topics: []ProduceTopicResult{{Name: "t", Partitions: []ProducePartitionResult{{
		Index: 2, Code: ErrInvalidRecord, BaseOffset: -1, LogAppendTime: -1, LogStart: 5,
		RecordErrors: []RecordError{{Index: 3, Message: "no"}}, ErrorMessage: "bad",
	}}}}}
	for version, want := range map[int16]string{
		0: "00000001 0001 74  00000001 00000002 0057 ffffffffffffffff",
		2: "00000001 0001 74  00000001 00000002 0057 ffffffffffffffff ffffffffffffffff  00000001",
		8: "00000001 0001 74  00000001 00000002 0057 ffffffffffffffff ffffffffffffffff 0000000000000005 00000001 00000003 0002 6e6f 0003 626164  00000001",
		9: "02 02 74  02 00000002 0057 ffffffffffffffff ffffffffffffffff 0000000000000005 02 00000003 03 6e6f 00 04 626164 00 00  00000001 00",
	} {
		requireBytes(t, fmt.Sprintf("Produce v%d", version), produce.AppendTo(nil, version), want)
	}
	fetch := &FetchResponse{SessionID: 9, Topics: []FetchTopicResult{{Name: "t", Partitions: []FetchPartitionResult{{
		Index: 2, HighWatermark: 7, LastStable: 6, LogStart: 5, PreferredReplica: -1, Bytes: []byte{0xaa, 0xbb},
	}}}}}
	for version, want := range map[int16]string{
		0:  "00000001 0001 74  00000001 00000002 0000 0000000000000007 00000002 aabb",
		1:  "00000000 00000001 0001 74  00000001 00000002 0000 0000000000000007 00000002 aabb",
		4:  "00000000 00000001 0001 74  00000001 00000002 0000 0000000000000007 0000000000000006 ffffffff 00000002 aabb",
		11: "00000000 0000 00000009 00000001 0001 74  00000001 00000002 0000 0000000000000007 0000000000000006 0000000000000005 ffffffff ffffffff 00000002 aabb",
		12: "00000000 0000 00000009 02 02 74  02 00000002 0000 0000000000000007 0000000000000006 0000000000000005 00 ffffffff 03 aabb 00 00 00",
	} {
		requireBytes(t, fmt.Sprintf("Fetch v%d", version), fetch.AppendTo(nil, version), want)
	}
}

func requireBytes(t *testing.T, what string, got []byte, want string) {
	t.Helper()
	want = string(bytes.ReplaceAll([]byte(want), []byte(" "), nil))
	if fmt.Sprintf("%x", got) != want {
		t.Errorf("%s:\ngot  %x\nwant %s", what, got, want)
	}
}

func BenchmarkFetchSend(b *testing.B) {
	for _, parts := range []int{1, 20} {
		b.Run(fmt.Sprintf("version=12/parts=%d/size=16KiB", parts), func(b *testing.B) {
			w := NewWriter(discard{})
			payload := part(16<<10, 'a')
			r := &FetchResponse{Topics: []FetchTopicResult{{Name: "orders", Partitions: make([]FetchPartitionResult, parts)}}}
			b.ReportAllocs()
			b.SetBytes(int64(parts * payload.Size()))
			for b.Loop() {
				for i := range r.Topics[0].Partitions {
					r.Topics[0].Partitions[i] = FetchPartitionResult{Index: int32(i), Payload: payload}
				}
				if r.Send(w, Header{Key: KeyFetch, Version: 12}, 64<<10) != nil || w.Flush() != nil {
					b.Fatal(w.Err())
				}
			}
		})
	}
}

type discard struct{ net.Conn }

func (discard) Write(b []byte) (int, error) { return len(b), nil }
