// Package report is what the programs of this module share: how the checks ask for an act, and the JSON lines they get back.
//
//	PROGRAM ACT BOOTSTRAP '{"topic":"t", …}'
//
// Acts: produce, consume, limit, member, admin, transaction. A line is an object with "step"; see Step and Got.
package report

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// Args is what an act may need; an act ignores the rest.
type Args struct {
	Topic      string         `json:"topic"`
	Group      string         `json:"group"`
	Codec      string         `json:"codec"`
	File       string         `json:"file"`   // produce: a JSON line per record
	Single     int            `json:"single"` // produce: that many are sent and waited for one by one, the others at once
	Idempotent bool           `json:"idempotent"`
	Topics     map[string]int `json:"topics"` // consume: topics and how many records of partition 0
	Fit        int            `json:"fit"`    // limit: a value of this size is taken
	Over       int            `json:"over"`   // limit: and one of this size refused
	Protocol   string         `json:"protocol"`
	Version    string         `json:"version"` // the protocol version the client is told to speak
}

// Record is a line of a produce act's file.
type Record struct {
	Key     []byte   `json:"k"`
	Value   []byte   `json:"v"`
	Headers []Header `json:"h"`
	Time    int64    `json:"t"` // ms
}

// Header is one of a record's; a nil value is null.
type Header struct {
	Key   string `json:"k"`
	Value []byte `json:"v"`
}

// Read reads a produce act's file.
func Read(path string) ([]Record, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []Record
	for d := json.NewDecoder(f); d.More(); {
		var r Record
		if err := d.Decode(&r); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

var out = struct {
	sync.Mutex
	w *bufio.Writer
}{w: bufio.NewWriterSize(os.Stdout, 1<<16)}

func line(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	out.Lock()
	defer out.Unlock()
	out.w.Write(append(b, '\n'))
	out.w.Flush()
}

// Step tells how a step ended; an error is its detail.
func Step(name string, err error, detail ...any) {
	d := fmt.Sprint(detail...)
	if err != nil {
		d = err.Error()
	}
	line(map[string]any{"step": name, "ok": err == nil, "detail": d})
}

// Version tells which release of the client this is, where the module file does not.
func Version(v string) { Step("version", nil, v) }

// Must is a Step whose failure ends the program.
func Must(name string, err error, detail ...any) {
	Step(name, err, detail...)
	if err != nil {
		os.Exit(1)
	}
}

// Want is a step that compares a value.
func Want(name string, err error, got, want any) {
	if err == nil && fmt.Sprint(got) != fmt.Sprint(want) {
		err = fmt.Errorf("got %v, want %v", got, want)
	}
	Must(name, err, got)
}

// Show is a value as the lines carry it: null, base64, or the digest of what is long.
func Show(b []byte) *string {
	if b == nil {
		return nil
	}
	s := base64.StdEncoding.EncodeToString(b)
	if len(b) > 64 {
		sum := sha256.Sum256(b)
		s = fmt.Sprintf("sha256:%s:%d", hex.EncodeToString(sum[:]), len(b))
	}
	return &s
}

// Got tells of a record that was read.
func Got(topic string, partition int32, offset int64, r Record) {
	headers := make([][2]*string, len(r.Headers))
	for i, h := range r.Headers {
		headers[i] = [2]*string{&h.Key, Show(h.Value)}
	}
	line(map[string]any{"step": "got", "ok": true, "topic": topic, "p": partition, "o": offset, "k": Show(r.Key), "v": Show(r.Value), "h": headers, "t": r.Time})
}

// Acts are a program's, by name. The context of member ends with SIGTERM.
type Acts map[string]func(ctx context.Context, bootstrap string, a Args) error

// Main runs the act of the command line.
func Main(acts Acts) {
	if len(os.Args) != 4 || acts[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: ACT BOOTSTRAP JSON")
		os.Exit(2)
	}
	var a Args
	Must("arguments", json.Unmarshal([]byte(os.Args[3]), &a))
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	Must("end", acts[os.Args[1]](ctx, os.Args[2], a))
}
