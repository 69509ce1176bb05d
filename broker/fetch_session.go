package broker

import (
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"millrace/replica"
	"millrace/wire"
)

// Fetch sessions (KIP-227): the broker remembers what a consumer asks for, so
// that each request names only what changed and each answer only what is new.

// fetchSessions is the cache of sessions, bounded by its slots.
type fetchSessions struct {
	slots int
	now   func() time.Time

	mu   sync.Mutex
	byID map[int32]*fetchSession
}

// fetchSession is one of them. A client uses it from one connection at a time,
// but nothing stops others from naming it.
type fetchSession struct {
	id      int32
	byTopic bool // by topic id (v13+), not by name; may not change

	mu          sync.Mutex
	next        int32 // epoch expected next
	used        time.Time
	partitions  map[partitionKey]*cachedPartition
	first, last *cachedPartition // in order of answering
}

type partitionKey struct {
	name  string
	id    [16]byte
	index int32
}

// cachedPartition is what a session remembers of a partition.
type cachedPartition struct {
	key        partitionKey
	ask        wire.FetchPartition
	partition  *replica.Partition // as last found, nil if not
	prev, next *cachedPartition
	inList     bool

	// What the client was told last.
	highWatermark, logStart int64
}

func newFetchSessions(slots int, now func() time.Time) *fetchSessions {
	return &fetchSessions{slots: slots, now: now, byID: map[int32]*fetchSession{}}
}

// begin finds or makes the session that a request runs in; nil for none. The
// request's changes are applied to it. incremental says that only news are to
// be answered. The code is of the whole request.
func (s *fetchSessions) begin(r *wire.FetchRequest, b *Broker) (session *fetchSession, incremental bool, code int16) {
	switch {
	case r.SessionEpoch == -1: // full, without session; an old one ends
		s.remove(r.SessionID)
		return nil, false, 0
	case r.SessionEpoch == 0: // full, a new session is wanted
		s.remove(r.SessionID)
		return s.create(r), false, 0
	}
	session = s.find(r.SessionID)
	if session == nil {
		return nil, false, wire.ErrFetchSessionIDNotFound
	}
	session.mu.Lock()
	defer session.mu.Unlock()
	switch {
	case session.byTopic != (r.Version >= 13):
		return nil, false, wire.ErrFetchSessionTopicIDError
	case r.SessionEpoch != session.next:
		return nil, false, wire.ErrInvalidFetchSessionEpoch
	}
	session.next = nextEpoch(session.next)
	session.used = s.now()
	session.apply(r)
	if len(session.partitions) == 0 || len(session.partitions) > maxSessionPartitions {
		s.remove(session.id)
		if len(session.partitions) == 0 {
			return nil, false, 0
		}
		// It cannot be served without session, since the request names only
		// changes. The client starts over, with a full request.
		return nil, false, wire.ErrFetchSessionIDNotFound
	}
	return session, true, 0
}

func nextEpoch(e int32) int32 {
	if e == math.MaxInt32 {
		return 1
	}
	return e + 1
}

func (s *fetchSessions) find(id int32) *fetchSession {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byID[id]
}

func (s *fetchSessions) remove(id int32) {
	if id == 0 {
		return
	}
	s.mu.Lock()
	delete(s.byID, id)
	s.mu.Unlock()
}

// create makes a session if there is a slot, or one whose owner seems gone.
func (s *fetchSessions) create(r *wire.FetchRequest) *fetchSession {
	count := 0
	for i := range r.Topics {
		count += len(r.Topics[i].Partitions)
	}
	if count == 0 || count > maxSessionPartitions {
		return nil
	}
	session := &fetchSession{byTopic: r.Version >= 13, next: 1, used: s.now(), partitions: make(map[partitionKey]*cachedPartition, count)}
	session.apply(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.byID) >= s.slots && !s.evictLocked() {
		return nil
	}
	for session.id == 0 || s.byID[session.id] != nil {
		session.id = rand.Int32() // 31 bits: never negative
	}
	s.byID[session.id] = session
	return session
}

// evictLocked drops the session that was longest unused, if that is long.
func (s *fetchSessions) evictLocked() bool {
	oldest, at := int32(0), s.now().Add(-sessionIdle)
	for id, session := range s.byID {
		if !session.mu.TryLock() {
			continue // in use this moment
		}
		if session.used.Before(at) {
			oldest, at = id, session.used
		}
		session.mu.Unlock()
	}
	if oldest != 0 {
		delete(s.byID, oldest)
	}
	return oldest != 0
}

// apply takes over what a request adds, changes and forgets. Names are copied:
// they alias the frame.
func (f *fetchSession) apply(r *wire.FetchRequest) {
	for i := range r.Topics {
		t := &r.Topics[i]
		name := "" // the copy
		for j := range t.Partitions {
			key := partitionKey{name: t.Name, id: t.ID, index: t.Partitions[j].Index}
			p := f.partitions[key]
			if p == nil {
				if name == "" {
					name = strings.Clone(t.Name)
				}
				key.name = name
				p = &cachedPartition{key: key, highWatermark: -1, logStart: -1}
				f.partitions[key] = p
				f.push(p)
			}
			p.ask = t.Partitions[j]
		}
	}
	for i := range r.Forgotten {
		t := &r.Forgotten[i]
		for _, index := range t.Partitions {
			key := partitionKey{name: t.Name, id: t.ID, index: index}
			if p := f.partitions[key]; p != nil {
				delete(f.partitions, key)
				f.unlink(p)
			}
		}
	}
}

// items lists what the session asks for.
func (f *fetchSession) items(call *fetchCall, b *Broker) {
	f.mu.Lock()
	defer f.mu.Unlock()
	call.items = call.items[:0]
	for p := f.first; p != nil; p = p.next {
		item := fetchItem{name: p.key.name, id: p.key.id, ask: p.ask, cached: p, partition: p.partition}
		if item.partition == nil || item.partition.Gone() {
			var topic *replica.Topic
			topic, item.err = b.fetchTopic(p.key.name, p.key.id, call.request.Version)
			item.partition = nil
			item.find(topic)
			p.partition = item.partition
		}
		call.items = append(call.items, item)
	}
}

// answered notes what the client is about to be told of a partition, and
// reports whether that is news. Called with the session's lock. Partitions that
// gave records go to the end, so that none starves behind the answer's limit.
func (f *fetchSession) answered(p *cachedPartition, r *wire.FetchPartitionResult) bool {
	records := r.Payload != nil || len(r.Bytes) > 0
	news := records || r.Code != 0 || r.Diverging != nil || r.HighWatermark != p.highWatermark || r.LogStart != p.logStart
	p.highWatermark, p.logStart = r.HighWatermark, r.LogStart
	if r.Code != 0 {
		p.highWatermark = -1 // said again next time, and when it is over
	}
	if records && p.inList {
		f.unlink(p)
		f.push(p)
	}
	return news
}

func (f *fetchSession) push(p *cachedPartition) {
	p.prev, p.next, p.inList = f.last, nil, true
	if f.last != nil {
		f.last.next = p
	} else {
		f.first = p
	}
	f.last = p
}

func (f *fetchSession) unlink(p *cachedPartition) {
	if p.prev != nil {
		p.prev.next = p.next
	} else {
		f.first = p.next
	}
	if p.next != nil {
		p.next.prev = p.prev
	} else {
		f.last = p.prev
	}
	p.prev, p.next, p.inList = nil, nil, false
}
