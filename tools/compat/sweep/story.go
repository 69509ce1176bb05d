package sweep

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// span is a range of versions, both inclusive.
type span struct{ min, max int16 }

func (s span) clamp(v int16) int16 { return min(max(v, s.min), s.max) }

// story is what one conversation shows.
type story struct {
	name  string
	about []int16 // the APIs whose versions make the rounds; the others are asked in their newest. Empty: all of them
	once  bool    // told in its newest versions only: it makes what later stories stand on
	steps []step
}

// step is one request and its answer.
type step struct {
	name  string
	build func(c *moment) kmsg.Request
	after func(c *moment, r kmsg.Response) // keeps what later steps need

	from   int16                      // first version that can say it
	to     int16                      // last version that can say it; 0: all
	on     string                     // which connection; "" is the main one
	rounds int16                      // first round of the story that has it
	settle bool                       // repeated while the broker is not there yet: a topic just made, a coordinator just loading
	limit  time.Duration              // for the answer; 0: answerWait
	silent bool                       // no answer is due; a next answer on the connection proves that it lives
	sent   bool                       // the answer is not waited for: a later step with await takes it
	done   func(r kmsg.Response) bool // repeated until it says so: a change takes its time to arrive
	await  string                     // takes the answer of that step; build is nil
}

// moment is what a step is built from.
type moment struct {
	*side
	round   int16 // of the story: the version it is about
	version int16 // of the request on this side
	asked   int16 // of the request to Millrace
}

// its makes a name that ends in ~ one of this round alone.
func (c *moment) its(name string) string {
	if base, own := strings.CutSuffix(name, "~"); own {
		return fmt.Sprintf("%s-%d", base, c.round)
	}
	return name
}

// outcome is what a step came to on one side.
type outcome struct {
	story, step string
	key         int16
	round       int16
	version     int16
	resp        kmsg.Response // nil: see what
	took        time.Duration
	what        string // "answered", "closed", "no answer", or how the answer is malformed
}

// side is one broker and what the stories learned from it.
type side struct {
	name  string
	addr  string
	conns map[string]*conn
	ids   map[string][16]byte // topics' ids by name
	vars  map[string]any      // what steps hand on
	sent  map[string]pending
	log   io.Writer // of steps that take long
}

// slow is what is worth a line in the log.
const slow = time.Second

type pending struct {
	c    *conn
	req  kmsg.Request
	call func(r kmsg.Response)
}

func newSide(name, addr string, log io.Writer) *side {
	return &side{name: name, addr: addr, conns: map[string]*conn{}, ids: map[string][16]byte{}, vars: map[string]any{}, sent: map[string]pending{}, log: log}
}

// text and number read what an earlier step kept; nothing is "" and 0.
func (s *side) text(name string) string  { v, _ := s.vars[name].(string); return v }
func (s *side) number(name string) int32 { v, _ := s.vars[name].(int32); return v }

// tell goes through all stories. Which rounds there are and which steps they have follows from Millrace's ranges alone, so both
// sides' outcomes are the same list.
func (s *side) tell(stories []story, ours, mine map[int16]span) ([]outcome, error) {
	var all []outcome
	for _, st := range stories {
		first, last := rounds(st, ours)
		for round := first; round <= last; round++ {
			told, err := s.round(st, round, ours, mine)
			if err != nil {
				return nil, fmt.Errorf("%s, round %d: %w", st.name, round, err)
			}
			all = append(all, told...)
		}
	}
	for _, c := range s.conns {
		c.close()
	}
	return all, nil
}

// rounds are the versions a story is told in.
func rounds(st story, ours map[int16]span) (first, last int16) {
	first = 1 << 14
	for _, p := range st.steps {
		if p.build == nil || !st.concerns(keyOf(p)) {
			continue
		}
		r, ok := ours[keyOf(p)]
		if !ok {
			continue
		}
		first, last = min(first, r.min), max(last, r.max)
	}
	if st.once {
		first = last
	}
	return first, last
}

func (st story) concerns(key int16) bool { return len(st.about) == 0 || slices.Contains(st.about, key) }

// keyOf builds the step for a side that knows nothing, to see which API it asks.
func keyOf(p step) int16 {
	return p.build(&moment{side: newSide("", "", io.Discard), round: 0, version: 1 << 14, asked: 1 << 14}).Key()
}

func (s *side) round(st story, round int16, ours, mine map[int16]span) ([]outcome, error) {
	var told []outcome
	for _, p := range st.steps {
		o := outcome{story: st.name, step: p.name, round: round}
		if p.await != "" {
			waiting, ok := s.sent[p.await]
			if !ok {
				continue
			}
			delete(s.sent, p.await)
			o.key, o.version = waiting.req.Key(), waiting.req.GetVersion()
			o.resp, o.what = waiting.c.receive(waiting.req, answerWait)
			if o.resp != nil {
				waiting.call(o.resp)
			}
			told = append(told, o)
			continue
		}
		o.key = keyOf(p)
		if _, ok := ours[o.key]; !ok {
			continue
		}
		asked := ours[o.key].max
		if st.concerns(o.key) {
			asked = ours[o.key].clamp(round)
		}
		if round < p.rounds || asked < p.from || p.to > 0 && asked > p.to {
			continue
		}
		theirs, ok := mine[o.key]
		if !ok {
			o.what = notServed
			told = append(told, o)
			continue
		}
		c := &moment{side: s, round: round, version: theirs.clamp(asked), asked: asked}
		o.version = c.version
		start := time.Now()
		if err := s.step(p, c, &o); err != nil {
			return nil, err
		}
		if o.took = time.Since(start); o.took > slow {
			fmt.Fprintf(s.log, s.name+": %s round %d, %s: %s (%s)\n", st.name, round, p.name, o.took, brief(o))
		}
		if !p.sent {
			told = append(told, o)
		}
	}
	return told, nil
}

// notServed is the outcome on a side that does not advertise the API at all.
const notServed = "not served"

// answerWait is how long an answer may take; a Kafka on a busy machine is slow at first.
const answerWait = 15 * time.Second

// passing are codes of a state that ends by itself.
var passing = []int16{3, 5, 6, 14, 15, 16, 27, 79, 100}

// again says whether the step is to be repeated after this answer.
func (p step) again(r kmsg.Response) bool {
	if p.done != nil {
		return !p.done(r)
	}
	return p.settle && slices.ContainsFunc(codes(r), func(code int64) bool { return slices.Contains(passing, int16(code)) })
}

func (s *side) step(p step, c *moment, o *outcome) error {
	conn, err := s.conn(p.on)
	if err != nil {
		return err
	}
	for end := time.Now().Add(answerWait); ; time.Sleep(50 * time.Millisecond) {
		req := p.build(c)
		req.SetVersion(c.version)
		if err := conn.send(req); err != nil {
			o.what = "closed"
			break
		}
		if p.sent {
			s.sent[p.name] = pending{conn, req, func(r kmsg.Response) {
				if p.after != nil {
					p.after(c, r)
				}
			}}
			return nil
		}
		if p.silent {
			o.what = conn.quiet()
			break
		}
		o.resp, o.what = conn.receive(req, cmp.Or(p.limit, answerWait))
		if o.resp == nil || time.Now().After(end) || !p.again(o.resp) {
			break
		}
	}
	if o.resp == nil && !p.silent || p.silent && o.what != "no answer" {
		conn.close()
		delete(s.conns, p.on)
	}
	if p.after != nil && o.resp != nil {
		p.after(c, o.resp)
	}
	return nil
}

func (s *side) conn(on string) (*conn, error) {
	if c, ok := s.conns[on]; ok {
		return c, nil
	}
	c, err := dial(s.addr)
	if err != nil {
		return nil, err
	}
	s.conns[on] = c
	return c, nil
}
