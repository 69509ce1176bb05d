package group

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/coord/group/record"
	"millrace/wire"
)

// Settings hold for all groups.
type Settings struct {
	InitialDelay           time.Duration // a new group waits this long for more members
	SessionMin, SessionMax time.Duration // what members may ask for
	MaxSize                int           // members of one group
	MaxMetadata            int           // bytes of the text that goes with a commit
	Retention              time.Duration // of commits, see expire
	Consumer               ConsumerSettings
	Migration              Migration
}

// Migration is which groups with members may change their protocol. Without
// members they do so by themselves. If neither may, members of the classic
// protocol cannot join a group of the next generation either, as in Kafka.
type Migration struct {
	Upgrade   bool // from classic to next-generation, when the first member of that joins
	Downgrade bool // back, when the last of them is gone
}

// Call names a request that is answered later. The caller chooses the numbers;
// 0 is none.
type Call uint64

// Answer is the response to a request, with its version not yet set.
type Answer struct {
	Call     Call
	Response kmsg.Response
}

// Write asks for records to be made durable, all or none. Writes must reach the
// log in the order in which they are handed out, and Written must be told of
// their ends in that order.
type Write struct {
	ID      uint64
	Records []record.Record
}

// Out is what a step has led to.
type Out struct {
	Answers []Answer
	Writes  []Write
}

// Client is who sends a request.
type Client struct {
	ID      string // the client id of its requests
	Host    string // its address, as Kafka shows it: "/" and the IP
	Version int16  // of the request
}

// Topic is what exists, as far as groups care.
type Topic struct {
	Name       string
	ID         [16]byte
	Partitions int
}

// Topics is the state of the cluster, asked only during the call that it is
// handed to.
type Topics interface {
	Topic(name string) (Topic, bool)
	TopicByID(id [16]byte) (Topic, bool)
	Names() []string // all, the caller's not to change
}

// Groups is all groups of one partition of __consumer_offsets. It has one owner
// at a time. Every method that takes the time may lead to answers and writes:
// Take them after each.
type Groups struct {
	settings Settings
	newID    func() string // what makes a member id unique

	groups map[string]*group
	timers timers
	out    Out

	writes struct {
		last  uint64
		queue []*write // not ended yet, in order
	}
	joined uint64 // counts members, for their order

	topics     func() Topics // as of now; for what no request brings them to
	topicsSeen uint64        // counts what TopicsChanged tells
}

// write is a Write that has not ended.
type write struct {
	id      uint64
	done    func(now time.Time, code int16) // code 0: durable
	then    []Answer                        // given in any case, after done
	commits []*pendingCommit
}

// New makes an empty partition. newID returns what makes a member id unique (a
// UUID's text).
func New(s Settings, newID func() string) *Groups {
	return &Groups{settings: s, newID: newID, groups: map[string]*group{}, topics: func() Topics { return nil }, topicsSeen: 1}
}

// UseTopics says where to look for topics when no request brings them. f is
// called during calls of other methods only.
func (m *Groups) UseTopics(f func() Topics) { m.topics = f }

// TopicsChanged tells that there may be other topics, or other partitions, than
// before. Groups look at their next heartbeat.
func (m *Groups) TopicsChanged() { m.topicsSeen++ }

// Take returns what has come out since the last call.
func (m *Groups) Take() Out {
	out := m.out
	m.out = Out{}
	return out
}

// Due is when Advance must be called next, if nothing else happens.
func (m *Groups) Due() (time.Time, bool) { return m.timers.due() }

// Advance lets time pass.
func (m *Groups) Advance(now time.Time) { m.timers.advance(now) }

// Written tells that a write has ended: code 0 if it is durable, else the
// protocol's code of what went wrong, with nothing written. It panics if it was
// not that write's turn.
func (m *Groups) Written(now time.Time, id uint64, code int16) {
	q := m.writes.queue
	if len(q) == 0 || q[0].id != id {
		panic("group: a write ended out of turn")
	}
	w := q[0]
	q[0] = nil
	m.writes.queue = q[1:]
	w.done(now, codeOfFailure(code))
	m.out.Answers = append(m.out.Answers, w.then...)
}

// Len is how many groups there are.
func (m *Groups) Len() int { return len(m.groups) }

func (m *Groups) answer(c Call, r kmsg.Response) {
	m.out.Answers = append(m.out.Answers, Answer{c, r})
}

// write hands records out; done is called when they are durable or lost.
func (m *Groups) write(records []record.Record, done func(now time.Time, code int16)) *write {
	m.writes.last++
	w := &write{id: m.writes.last, done: done}
	m.writes.queue = append(m.writes.queue, w)
	m.out.Writes = append(m.out.Writes, Write{w.id, records})
	return w
}

// answerAfter answers once everything written since mark has ended; at once if
// nothing was.
func (m *Groups) answerAfter(mark uint64, c Call, r kmsg.Response) {
	if m.writes.last == mark {
		m.answer(c, r)
		return
	}
	w := m.writes.queue[len(m.writes.queue)-1]
	w.then = append(w.then, Answer{c, r})
}

// codeOfFailure turns what a partition says about an append into what a
// coordinator says: try again, look for the coordinator again, or give up.
func codeOfFailure(code int16) int16 {
	switch code {
	case wire.ErrUnknownTopicOrPartition, wire.ErrNotEnoughReplicas, wire.ErrNotEnoughReplicasAfterAppend, wire.ErrRequestTimedOut:
		return wire.ErrCoordinatorNotAvailable
	case wire.ErrNotLeaderOrFollower, wire.ErrKafkaStorageError:
		return wire.ErrNotCoordinator
	case wire.ErrMessageTooLarge, wire.ErrRecordListTooLarge, wire.ErrInvalidFetchSize:
		return wire.ErrUnknownServerError
	}
	return code
}
