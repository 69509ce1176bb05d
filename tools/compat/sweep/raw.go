package sweep

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// raw is a request that no table of versions allows, as bytes.
type raw struct {
	name         string
	key, version int16
	flexible     bool
	body         []byte
	frame        []byte // instead of all that, with the length in front
}

// strays are what a broker meets from clients that are newer than it, or that are none.
func strays() []raw {
	length := func(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
	return []raw{
		{name: "ApiVersions v99", key: 18, version: 99, flexible: true, body: []byte("what nobody can read")},
		{name: "ApiVersions v5", key: 18, version: 5, flexible: true, body: []byte{1, 1, 0}},
		{name: "ApiVersions v-1", key: 18, version: -1},
		{name: "Metadata v99", key: 3, version: 99, flexible: true},
		{name: "Metadata v-1", key: 3, version: -1},
		{name: "LeaderAndIsr v0, which clients do not send", key: 4},
		{name: "an unknown request", key: 999},
		{name: "request -1", key: -1},
		{name: "a body that ends too soon", key: 3, version: 9, flexible: true, body: []byte{2, 5, 't'}},
		{name: "an array that is longer than the frame", key: 3, version: 1, body: []byte{0x7f, 0xff, 0xff, 0xff}},
		{name: "a frame of no bytes", frame: length(0)},
		{name: "a frame of 2 GiB", frame: length(0x7fffffff)},
		{name: "a frame of negative length", frame: length(0xffffffff)},
		{name: "a frame that ends within the header", frame: append(length(3), 0, 18, 0)},
		{name: "an HTTP request", frame: []byte("GET / HTTP/1.1\r\n\r\n")},
	}
}

// outcomeOf sends a stray on a connection of its own and says what came of it.
func outcomeOf(addr string, r raw) (string, error) {
	c, err := dial(addr)
	if err != nil {
		return "", err
	}
	defer c.close()
	if r.frame != nil {
		if _, err := c.Write(r.frame); err != nil {
			return "", err
		}
	} else if err := c.sendBody(r.key, r.version, r.flexible, r.body); err != nil {
		return "", err
	}
	b, what := c.frame(5 * time.Second)
	if b == nil {
		return what, nil
	}
	refusal := kmsg.NewPtrApiVersionsRequest()
	resp, err := strictly(refusal, b[4:])
	if err != nil {
		return "answered: " + err.Error(), nil
	}
	a := resp.(*kmsg.ApiVersionsResponse)
	what = fmt.Sprintf("answered with a body of version 0, code %d, %d ranges", a.ErrorCode, len(a.ApiKeys))
	if len(a.ApiKeys) == 1 {
		what += fmt.Sprintf(": of %d, %d to %d", a.ApiKeys[0].ApiKey, a.ApiKeys[0].MinVersion, a.ApiKeys[0].MaxVersion)
	}
	return what, nil
}

// strays compares what both brokers do with requests that they do not serve.
func (j *judge) strays(ours, kafka string) error {
	for _, r := range strays() {
		a, err := outcomeOf(ours, r)
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		b, err := outcomeOf(kafka, r)
		if err != nil {
			return fmt.Errorf("%s: Kafka: %w", r.name, err)
		}
		if o := (outcome{story: "strays", step: r.name, key: r.key}); a != b && !j.excused(o, difference{"outcome", a, b}) {
			j.tell("strays: %s: Millrace: %s, Kafka: %s", r.name, a, b)
		}
	}
	return nil
}
