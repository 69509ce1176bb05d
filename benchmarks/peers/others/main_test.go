package main

import (
	"errors"
	"testing"
	"time"
)

// fake acknowledges at once, on another goroutine, and fails the message of that number (0: none).
type fake struct {
	ack    func([]byte, error)
	n      int
	broken int
}

var errBroken = errors.New("broken")

func (f *fake) publish(value []byte) error {
	f.n++
	var err error
	if f.n == f.broken {
		err = errBroken
	}
	go f.ack(value, err) // ends at once
	return nil
}

func (f *fake) read(count int) (int, int64, error) { return count, int64(100 * count), nil }
func (f *fake) prepare() error                     { return nil }
func (f *fake) close()                             {}

// Claim: every op counts exactly the messages that were acknowledged, with latencies, and an error of any of them fails the whole.
func TestOpsCountAcknowledgedMessages(t *testing.T) {
	o := options{conns: 3, rate: 2000, count: 77, size: 100, window: 10, duration: 50 * time.Millisecond}
	for _, op := range []string{"first", "one", "full", "open", "read"} {
		o.op = op
		var clients []*fake
		res, err := measure(o, func(_ options, ack func([]byte, error)) (client, error) {
			f := &fake{ack: ack}
			clients = append(clients, f)
			return f, nil
		})
		if err != nil {
			t.Errorf("%s: %v", op, err)
		}
		sent := 0
		for _, f := range clients {
			sent += f.n
		}
		if op == "read" {
			sent = o.count
		}
		if res.Count != int64(sent) || sent == 0 {
			t.Errorf("%s: counted %d of %d", op, res.Count, sent)
		}
		if (op == "one" || op == "full" || op == "open") && res.P50 < 1 {
			t.Errorf("%s: no latency: %+v", op, res)
		}
	}
	for _, op := range []string{"one", "full", "open"} {
		o.op = op
		_, err := measure(o, func(_ options, ack func([]byte, error)) (client, error) { return &fake{ack: ack, broken: 3}, nil })
		if !errors.Is(err, errBroken) {
			t.Errorf("%s: a failed message gave %v", op, err)
		}
	}
}
