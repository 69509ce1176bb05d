package sweep

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/engine/batch"
	"millrace/tools/compat/harness"
)

const (
	randomRequests = 20_000
	randomClients  = 4
	seedVariable   = "MILLRACE_SWEEP_SEED" // repeats the requests of a run that printed it
)

// runRandom sends well-formed requests with random contents to a broker: every answer must decode strictly, none may be late, a
// connection may only end with a line in the log that names it, and the broker must be there at the end.
func runRandom(e *harness.Env) error {
	m, err := harness.StartMillrace(e, "group.initial.rebalance.delay.ms=0", "offsets.topic.num.partitions=4", fmt.Sprint("broker.id=", node))
	if err != nil {
		return err
	}
	return Random(e, m.Addr, filepath.Join(e.Dir, "broker.log"))
}

// Random does so against a broker whose log is the file.
func Random(e *harness.Env, addr, log string) error {
	seed := uint64(time.Now().UnixNano())
	if s, err := strconv.ParseUint(os.Getenv(seedVariable), 10, 64); err == nil {
		seed = s
	}
	e.Note("%d requests, %s=%d", randomRequests, seedVariable, seed)
	served, err := ranges(addr)
	if err != nil {
		return err
	}
	var clients sync.WaitGroup
	failed := make([]error, randomClients)
	closed := make([]int, randomClients)
	start := time.Now()
	for i := range randomClients {
		clients.Go(func() {
			closed[i], failed[i] = newRandomClient(seed, i, served).run(addr, log, randomRequests/randomClients)
		})
	}
	clients.Wait()
	if err := errors.Join(failed...); err != nil {
		return fmt.Errorf("seed %d: %w", seed, err)
	}
	if _, err := ranges(addr); err != nil {
		return fmt.Errorf("seed %d: the broker after all of them: %w", seed, err)
	}
	lines, err := os.ReadFile(log)
	if err != nil {
		return err
	}
	if i := bytes.Index(lines, []byte("panic")); i >= 0 {
		return fmt.Errorf("seed %d: a panic in the log: %s", seed, short(string(lines[i:])))
	}
	total := 0
	for _, n := range closed {
		total += n
	}
	e.Note("%.0f requests a second; %d connections were closed, none without a reason in the log", randomRequests/time.Since(start).Seconds(), total)
	return nil
}

// randomClient makes and sends requests on one connection at a time.
type randomClient struct {
	r      *rand.Rand
	served map[int16]span
	keys   []int16
	names  []string
	ids    [][16]byte
}

func newRandomClient(seed uint64, i int, served map[int16]span) *randomClient {
	c := &randomClient{r: rand.New(rand.NewPCG(seed, uint64(i))), served: served}
	for key := range served {
		c.keys = append(c.keys, key)
	}
	slices.Sort(c.keys)
	c.names = []string{"", "r1", "r2", "r3", "r4", "no/slash", "..", "range", "consumer", "client-id", "user", "ip", "retention.ms", "cleanup.policy", "compact", "1000", "-1", "1", strings.Repeat("x", 300), "\x00\xff", "r.*", "uniform"}
	c.ids = [][16]byte{{}, strange}
	return c
}

// run sends n requests and returns how many connections the broker closed.
func (c *randomClient) run(addr, log string, n int) (closed int, err error) {
	var k *conn
	for i := range n {
		if k == nil {
			if k, err = dial(addr); err != nil {
				return closed, fmt.Errorf("after %d requests: %w", i, err)
			}
		}
		req := c.request()
		what := c.exchange(k, req)
		switch {
		case what == "answered":
		case what == "closed":
			line := "client=" + k.LocalAddr().String() + " "
			if p, ok := req.(*kmsg.ProduceRequest); ok && p.Acks == 0 {
				line = "a produce with acks=0 failed" // closing is its only answer, and there are so many that not each has a line
			}
			if err := harness.Within(5*time.Second, func() error { return logged(log, line) }); err != nil {
				return closed, fmt.Errorf("request %d, %s: closed and %w", i, describe(req), err)
			}
			closed++
			k.close()
			k = nil
		default:
			return closed, fmt.Errorf("request %d, %s: %s", i, describe(req), what)
		}
	}
	k.close()
	return closed, nil
}

// exchange sends a request and waits for what comes of it. Produce without acks has no answer, so that something must be asked after it.
func (c *randomClient) exchange(k *conn, req kmsg.Request) string {
	if k.send(req) != nil {
		return "closed"
	}
	if p, ok := req.(*kmsg.ProduceRequest); ok && p.Acks == 0 {
		if what := k.quiet(); what != "no answer" {
			return what
		}
		return "answered"
	}
	resp, what := k.receive(req, answerWait)
	if m, ok := resp.(*kmsg.MetadataResponse); ok {
		for _, t := range m.Topics {
			if len(c.ids) < 20 && !slices.Contains(c.ids, t.TopicID) {
				c.ids = append(c.ids, t.TopicID)
			}
		}
	}
	return what
}

// logged says whether the log holds the text.
func logged(log, text string) error {
	b, err := os.ReadFile(log)
	if err != nil {
		return err
	}
	if !bytes.Contains(b, []byte(text)) {
		return fmt.Errorf("no line in the log has %q", text)
	}
	return nil
}

func describe(req kmsg.Request) string {
	return fmt.Sprintf("%s v%d %+v", kafkaName(req.Key()), req.GetVersion(), req)
}

// request makes one of any kind in any version.
func (c *randomClient) request() kmsg.Request {
	key := c.keys[c.r.IntN(len(c.keys))]
	req := kmsg.RequestForKey(key)
	s := c.served[key]
	c.fill("", reflect.ValueOf(req).Elem())
	req.SetVersion(s.min + int16(c.r.IntN(int(s.max-s.min)+1)))
	c.tame(req)
	return req
}

func (c *randomClient) fill(field string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; name != "Version" && name != "UnknownTags" {
				c.fill(name, v.Field(i))
			}
		}
	case reflect.Pointer:
		if c.r.IntN(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			c.fill(field, v.Elem())
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes(c.bytes(field))
			return
		}
		n := c.r.IntN(4)
		if n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
		}
		for i := range n {
			c.fill(field, v.Index(i))
		}
	case reflect.Array:
		v.Set(reflect.ValueOf(c.ids[c.r.IntN(len(c.ids))]))
	case reflect.String:
		v.SetString(c.names[c.r.IntN(len(c.names))])
	case reflect.Bool:
		v.SetBool(c.r.IntN(2) == 0)
	case reflect.Float64:
		v.SetFloat([]float64{0, -1, 1e9, math.NaN(), math.Inf(1)}[c.r.IntN(5)])
	default:
		v.SetInt(c.number(v.Type().Bits()))
	}
}

// number is small as a rule, and sometimes the least or the greatest of its width.
func (c *randomClient) number(bits int) int64 {
	switch c.r.IntN(12) {
	case 0:
		return math.MaxInt64 >> (64 - bits)
	case 1:
		return math.MinInt64 >> (64 - bits)
	}
	return int64(c.r.IntN(6)) - 2
}

func (c *randomClient) bytes(field string) []byte {
	if c.r.IntN(4) == 0 {
		b := make([]byte, c.r.IntN(200))
		for i := range b {
			b[i] = byte(c.r.Uint32())
		}
		return b
	}
	if field != "Records" {
		return []byte{0, 0, 0, 0, 0, 0}[:c.r.IntN(7)]
	}
	return compressed(int16(c.r.IntN(4)), batch.None, c.r.IntN(3)+1, batch.Producer([]int64{-1, 7}[c.r.IntN(2)], 0, int32(c.r.IntN(3))))
}

// tame takes out what would make an answer late by its own wish, and quotas that would slow everybody.
func (c *randomClient) tame(req kmsg.Request) {
	switch r := req.(type) {
	case *kmsg.FetchRequest:
		r.MaxWaitMillis = int32(c.r.IntN(10))
	case *kmsg.JoinGroupRequest:
		r.SessionTimeoutMillis, r.RebalanceTimeoutMillis = []int32{-1, 6000}[c.r.IntN(2)], int32(c.r.IntN(50))
	case *kmsg.AlterClientQuotasRequest:
		r.ValidateOnly = true
	}
}
