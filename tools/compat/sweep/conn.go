package sweep

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"reflect"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// conn sends frames that it builds itself and judges what comes back byte for byte.
type conn struct {
	net.Conn
	last int32 // correlation id of the newest request
	next int32 // correlation id that the next answer must have
}

func dial(addr string) (*conn, error) {
	c, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c}, nil
}

func (c *conn) close() { c.Conn.Close() }

// maxAnswer is more than any answer of the sweep has.
const maxAnswer = 64 << 20

// clientID is what all requests carry.
const clientID = "sweep"

// send writes one request in its version.
func (c *conn) send(req kmsg.Request) error {
	return c.sendBody(req.Key(), req.GetVersion(), req.IsFlexible(), req.AppendTo(nil))
}

func (c *conn) sendBody(key, version int16, flexible bool, body []byte) error {
	c.last++
	b := binary.BigEndian.AppendUint32(nil, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(key))
	b = binary.BigEndian.AppendUint16(b, uint16(version))
	b = binary.BigEndian.AppendUint32(b, uint32(c.last))
	b = binary.BigEndian.AppendUint16(b, uint16(len(clientID)))
	b = append(b, clientID...)
	if flexible {
		b = append(b, 0)
	}
	b = append(b, body...)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	c.SetWriteDeadline(time.Now().Add(answerWait))
	_, err := c.Write(b)
	return err
}

// receive reads the answer to req: nil and what happened instead if there is none or it is not exactly what its version says.
func (c *conn) receive(req kmsg.Request, limit time.Duration) (kmsg.Response, string) {
	frame, what := c.frame(limit)
	if frame == nil {
		return nil, what
	}
	body, err := headerOff(frame, req)
	if err != nil {
		return nil, "malformed: " + err.Error()
	}
	resp, err := strictly(req, body)
	if err != nil {
		return nil, "malformed: " + err.Error()
	}
	return resp, "answered"
}

// frame reads one answer, whose correlation id must be the next in turn.
func (c *conn) frame(limit time.Duration) ([]byte, string) {
	c.next++
	c.SetReadDeadline(time.Now().Add(limit))
	var size [4]byte
	if _, err := io.ReadFull(c, size[:]); errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, "no answer"
	} else if err != nil {
		return nil, "closed"
	}
	n := binary.BigEndian.Uint32(size[:])
	if n < 4 || n > maxAnswer {
		return nil, fmt.Sprintf("malformed: a frame of %d bytes", n)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(c, b); err != nil {
		return nil, "malformed: closed within a frame"
	}
	if id := int32(binary.BigEndian.Uint32(b)); id != c.next {
		return nil, fmt.Sprintf("malformed: correlation id %d, want %d", id, c.next)
	}
	return b, ""
}

// quiet says what became of a request that has no answer: the answer to an ApiVersions request must come next.
func (c *conn) quiet() string {
	c.next = c.last
	probe := kmsg.NewPtrApiVersionsRequest()
	if c.send(probe) != nil {
		return "closed"
	}
	if _, what := c.receive(probe, answerWait); what != "answered" {
		return what
	}
	return "no answer"
}

// headerOff takes off the response header: a correlation id and, in flexible versions of all APIs but ApiVersions, tagged fields,
// of which there must be none.
func headerOff(frame []byte, req kmsg.Request) ([]byte, error) {
	b := frame[4:]
	if !req.IsFlexible() || req.Key() == 18 {
		return b, nil
	}
	if len(b) == 0 || b[0] != 0 {
		return nil, fmt.Errorf("the response header has no empty block of tagged fields: % x", b[:min(len(b), 8)])
	}
	return b[1:], nil
}

// strictly decodes an answer. Encoded again it must be the same bytes: so all were used, none is left, lengths have their
// shortest form and nothing is null that must not be. Tagged fields must all be known.
func strictly(req kmsg.Request, body []byte) (kmsg.Response, error) {
	resp := req.ResponseKind()
	if err := resp.ReadFrom(body); err != nil {
		return nil, fmt.Errorf("%w in % x", err, body[:min(len(body), 64)])
	}
	if again := resp.AppendTo(nil); !bytes.Equal(again, body) {
		at := 0
		for at < len(again) && at < len(body) && again[at] == body[at] {
			at++
		}
		return nil, fmt.Errorf("%d bytes are decoded as %+v, which is %d bytes and differs from byte %d on: % x", len(body), resp, len(again), at, body[at:min(len(body), at+16)])
	}
	if n := unknownTags(reflect.ValueOf(resp).Elem()); n > 0 {
		return nil, fmt.Errorf("%d tagged fields that the version does not have", n)
	}
	return resp, nil
}

// unknownTags counts tagged fields without a name, at any depth.
func unknownTags(v reflect.Value) int {
	n := 0
	switch v.Kind() {
	case reflect.Struct:
		if t, ok := v.Interface().(kmsg.Tags); ok {
			return t.Len()
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				n += unknownTags(v.Field(i))
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Struct {
			for i := range v.Len() {
				n += unknownTags(v.Index(i))
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			n += unknownTags(v.Elem())
		}
	}
	return n
}

// ranges asks what a broker advertises.
func ranges(addr string) (map[int16]span, error) {
	c, err := dial(addr)
	if err != nil {
		return nil, err
	}
	defer c.close()
	req := kmsg.NewPtrApiVersionsRequest()
	if err := c.send(req); err != nil {
		return nil, err
	}
	resp, what := c.receive(req, answerWait)
	if resp == nil {
		return nil, fmt.Errorf("ApiVersions v0: %s", what)
	}
	all := map[int16]span{}
	for _, k := range resp.(*kmsg.ApiVersionsResponse).ApiKeys {
		all[k.ApiKey] = span{k.MinVersion, k.MaxVersion}
	}
	return all, nil
}
