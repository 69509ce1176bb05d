// Package clients holds the checks of clients in other languages: each is driven by a program of its own (below go, python and
// node), which is told an act and answers in lines of JSON; what it says is compared here, and with what franz-go sees.
package clients

import (
	"regexp"
	"slices"
	"time"

	"millrace/tools/compat/harness"
)

// client is a foreign client and what it can do.
type client struct {
	title      string // with its version, the table's heading
	version    string // of the protocol, for a client that is told
	program    func(e *harness.Env) ([]string, error)
	codecs     []string
	idempotent bool
	oldFormat  bool // writes and reads message sets of before 0.11: no headers
	noTime     bool // cannot choose the timestamp

	most    int                  // longer values are cut to it, 0: they are not
	framed  bool                 // writes Snappy in the blocks of Java's library
	bare    bool                 // reads only Snappy without them
	without func(r *record) bool // shapes that the client cannot write
	blur    func(l *line)        // what the client's reader does not tell apart

	protocols []string       // of consumer groups
	admin     []string       // steps of its admin act; none: it has no admin
	noTxn     *regexp.Regexp // how the client says that the broker has no transactions
	noMatrix  bool
}

var (
	allCodecs = []string{"none", "gzip", "snappy", "lz4", "zstd"}
	// unsupported is FindCoordinator's answer, and InitProducerId's, in the clients' words.
	unsupported = regexp.MustCompile(`(?i)unsupported.?version|version of API is not supported`)
	// tooLarge is the refusal of a message that is larger than the broker takes, in the clients' words.
	tooLarge = regexp.MustCompile(`(?i)message.?size.?too.?large|message.?too.?large|larger than the max|too large`)
	allAdmin = []string{"create topic", "describe topic", "describe config", "alter config", "add partitions", "delete topic", "list offsets", "delete records",
		"list groups", "describe group", "group's offsets", "alter group's offsets", "delete group"}
)

func list() []client {
	goes := func(name string) func(e *harness.Env) ([]string, error) {
		return func(e *harness.Env) ([]string, error) { return goProgram(e, name) }
	}
	python := func(name string) func(e *harness.Env) ([]string, error) {
		return func(e *harness.Env) ([]string, error) { return pythonProgram(e, name) }
	}
	node := func(name string) func(e *harness.Env) ([]string, error) {
		return func(e *harness.Env) ([]string, error) { return nodeProgram(e, name) }
	}
	classic, both := []string{"classic"}, []string{"classic", "consumer"}
	out := []client{
		{title: "kcat (librdkafka)", program: goes("kcat"), codecs: allCodecs, idempotent: true, noTime: true, protocols: classic},
		{title: "confluent-kafka-go 2.11.1 (librdkafka)", program: goes("confluent"), codecs: allCodecs, idempotent: true, protocols: both, admin: allAdmin},
		{title: "franz-go", program: goes("franz"), codecs: allCodecs, idempotent: true, protocols: both},
		{title: "segmentio/kafka-go 0.4.51", program: goes("segmentio"), framed: true, codecs: allCodecs, without: emptyBytes, blur: emptyAsNull, protocols: classic, admin: slices.DeleteFunc(slices.Clone(allAdmin), func(s string) bool { return s == "delete records" })},
		{title: "kafka-python", program: python("kafkapython.py"), framed: true, without: nullHeader, codecs: allCodecs, idempotent: true, protocols: classic, admin: allAdmin},
		{title: "confluent-kafka-python (librdkafka)", program: python("confluent.py"), codecs: allCodecs, idempotent: true, protocols: both, admin: allAdmin},
		{title: "aiokafka", program: python("aio.py"), framed: true, codecs: allCodecs, idempotent: true, protocols: classic, admin: slices.DeleteFunc(slices.Clone(allAdmin), func(s string) bool { return s == "alter group's offsets" || s == "delete group" })},
		{title: "kafkajs 2.2.4", program: node("kafkajs.js"), without: nullHeader, codecs: allCodecs, idempotent: true, protocols: classic, admin: allAdmin,
			noTxn: regexp.MustCompile(`Failed to find group coordinator`)},
		{title: "@platformatic/kafka 1.35.0", program: node("platformatic.js"), bare: true, codecs: allCodecs[:4], idempotent: true, protocols: both, admin: allAdmin},
	}
	for _, v := range []string{"0.10.2.0", "1.1.0", "2.3.0", "2.8.0", "3.6.0", "4.1.0"} {
		c := client{title: "sarama 1.61.1 as " + v, version: v, program: goes("sarama"), framed: true, codecs: allCodecs, idempotent: true, protocols: classic, admin: allAdmin, noMatrix: v != "4.1.0"}
		switch v {
		case "0.10.2.0":
			c.oldFormat, c.idempotent = true, false
			c.codecs, c.admin = allCodecs[:4], nil
		case "1.1.0":
			c.codecs = allCodecs[:4]
		}
		out = append(out, c)
	}
	for i := range out {
		if out[i].noTxn == nil {
			out[i].noTxn = unsupported
		}
	}
	return out
}

// nullHeader: the client refuses a header without a value.
func nullHeader(r *record) bool {
	return slices.ContainsFunc(r.Headers, func(h header) bool { return h.Value == nil })
}

// emptyBytes: the client sends what is empty as null.
func emptyBytes(r *record) bool {
	empty := func(b []byte) bool { return b != nil && len(b) == 0 }
	return empty(r.Key) || empty(r.Value) || slices.ContainsFunc(r.Headers, func(h header) bool { return empty(h.Value) })
}

// Checks are all of the package's.
func Checks() []harness.Check {
	var out []harness.Check
	add := func(client, name string, limit time.Duration, run func(e *harness.Env) error) {
		out = append(out, harness.Check{Client: client, Name: name, Limit: limit, Run: run})
	}
	for _, c := range list() {
		add(c.title, "each codec in and out, values compared", 3*time.Minute, func(e *harness.Env) error { return values(e, c) })
		add(c.title, "sizes up to the limit, and one past it", 2*time.Minute, func(e *harness.Env) error { return limits(e, c) })
		for _, p := range c.protocols {
			add(c.title, "group of two on six partitions, "+p+" protocol: takeover, restarts", 5*time.Minute, func(e *harness.Env) error { return group(e, c, p) })
		}
		if c.admin != nil {
			add(c.title, "administration", 2*time.Minute, func(e *harness.Env) error { return administer(e, c) })
		}
		if c.idempotent {
			add(c.title, "transactions", 2*time.Minute, func(e *harness.Env) error { return transact(e, c) })
		}
	}
	out = append(out, docChecks()...)
	add("every client", "what each wrote with each codec comes out of every other", 8*time.Minute, matrix)
	return out
}

// emptyAsNull: the client's reader gives null for what is empty.
func emptyAsNull(l *line) {
	null := func(s **string) {
		if *s != nil && **s == "" {
			*s = nil
		}
	}
	null(&l.Key)
	null(&l.Value)
	for i := range l.Headers {
		null(&l.Headers[i][1])
	}
}
