package broker

import (
	"log/slog"
	"slices"
	"time"

	"millrace/engine"
	"millrace/replica"
	"millrace/wire"
)

// fetchCall is a connection's Fetch in progress; used again for the next one.
type fetchCall struct {
	request  wire.FetchRequest
	response wire.FetchResponse
	items    []fetchItem                 // what is asked, in the order of answering
	results  []wire.FetchPartitionResult // one for each item
	waits    []replica.Wait
	timer    *time.Timer
	lent     lentBytes // memory of records that had to be copied
}

// fetchItem is one partition asked for, by this request or by its session.
type fetchItem struct {
	name      string
	id        [16]byte
	partition *replica.Partition // nil: err says why
	err       error
	ask       wire.FetchPartition
	cached    *cachedPartition // nil without session
}

// fetchLimits are the size rules of KIP-74 for one request.
type fetchLimits struct {
	total    int  // bytes of the answer
	min      int  // bytes to wait for
	oneWhole bool // the first non-empty partition gives a whole batch whatever the limits say (v3+)
}

// noAborted is the empty list of aborted transactions, which is not null.
var noAborted = []wire.AbortedTxn{}

// answerFetch serves one Fetch: what is asked (by the request or its session),
// what there is of it, waiting for more if the client wants that, and out.
func (c *conn) answerFetch(body []byte) error {
	f := &c.fetch
	if err := f.request.Parse(body, c.rc.header.Version); err != nil {
		return &badRequestError{err}
	}
	defer f.reset(c)
	f.response = wire.FetchResponse{Topics: f.response.Topics[:0]}
	session, incremental, code := c.b.sessions.begin(&f.request, c.b)
	if code != 0 {
		f.response.Code = code
		c.b.meters.requests.failed(wire.KeyFetch, code)
		return c.sendFetch()
	}
	if session != nil {
		session.items(f, c.b)
	} else {
		f.itemsOf(c.b)
	}
	limits := c.fetchLimits()
	quota, began := c.fetchQuota()
	if quota != nil {
		if done, err := c.fetchHeld(quota, session); done || err != nil {
			return err
		}
		quota.boundFetch(&limits)
	}
	if err := c.readOrWait(limits); err != nil {
		return err
	}
	if c.rc.header.Version < 10 {
		c.copyRecords()
	}
	if session != nil {
		f.response.SessionID = session.id
	}
	f.assemble(session, incremental, &c.meter)
	if quota != nil {
		return c.sendCharged(quota, began)
	}
	return c.sendFetch()
}

// fetchQuota is what the client may use; followers are no clients.
func (c *conn) fetchQuota() (q *clientQuota, began time.Time) {
	if c.fetch.request.ReplicaID >= 0 {
		return nil, began
	}
	q = c.b.quotas.client(c.rc.header.ClientID)
	c.waited = 0
	return q, q.timed()
}

func (c *conn) sendFetch() error {
	c.meter.ready()
	c.writing.Store(true)
	defer c.writing.Store(false)
	return c.fetch.response.Send(c.writer, c.rc.header, c.b.config.Fetch.SendfileThreshold)
}

// reset lets go of everything that points into frames, logs and partitions.
func (f *fetchCall) reset(c *conn) {
	f.response.Release()
	f.release() // what assemble left out
	f.lent.giveBack(c.b)
	clear(f.items)
	clear(f.results)
	clear(f.response.Topics)
	f.items, f.results = f.items[:0], f.results[:0]
	if cap(f.items) > keepParts {
		f.items, f.results, f.waits, f.response.Topics = nil, nil, nil, nil
	}
}

// release gives back the ranges that were read so far.
func (f *fetchCall) release() {
	for i := range f.results {
		if p := f.results[i].Payload; p != nil {
			p.Release()
			f.results[i].Payload = nil
		}
	}
}

// itemsOf lists what a request without session asks for.
func (f *fetchCall) itemsOf(b *Broker) {
	f.items = f.items[:0]
	for i := range f.request.Topics {
		t := &f.request.Topics[i]
		topic, err := b.fetchTopic(t.Name, t.ID, f.request.Version)
		for j := range t.Partitions {
			item := fetchItem{name: t.Name, id: t.ID, ask: t.Partitions[j], err: err}
			item.find(topic)
			f.items = append(f.items, item)
		}
	}
}

func (b *Broker) fetchTopic(name string, id [16]byte, version int16) (*replica.Topic, error) {
	if version >= 13 {
		if t := b.replicas.TopicByID(id); t != nil {
			return t, nil
		}
		return nil, errUnknownTopicID
	}
	if t := b.replicas.Topic(name); t != nil {
		return t, nil
	}
	return nil, errUnknownTopic
}

func (i *fetchItem) find(topic *replica.Topic) {
	if topic == nil {
		return
	}
	if i.partition = topic.Partition(i.ask.Index); i.partition == nil {
		i.err = errUnknownTopic
	}
}

func (c *conn) fetchLimits() fetchLimits {
	r := &c.fetch.request
	l := fetchLimits{total: int(min(int64(max(r.MaxBytes, 0)), c.b.config.Fetch.MaxBytes)), oneWhole: r.Version >= 3}
	if r.Version < 10 {
		l.total = min(l.total, copiedFetch)
	}
	l.min = min(int(r.MinBytes), l.total)
	return l
}

// readAll reads every item once, within the limits. It reports whether the
// answer should not wait: enough bytes, or something the client must hear of.
func (c *conn) readAll(l fetchLimits) bool {
	f := &c.fetch
	f.release()
	f.results = slices.Grow(f.results[:0], len(f.items))[:len(f.items)]
	bytes, news := 0, false
	for i := range f.items {
		r := &f.results[i]
		n, err := c.readOne(&f.items[i], r, l, bytes)
		if err != nil {
			c.failFetch(&f.items[i], r, err)
		}
		news = news || r.Code != 0 || r.Diverging != nil
		bytes += n
	}
	return news || bytes >= l.min || len(f.items) == 0
}

// readOne fills r with what the partition has, and returns how many bytes.
func (c *conn) readOne(item *fetchItem, r *wire.FetchPartitionResult, l fetchLimits, sofar int) (int, error) {
	*r = wire.FetchPartitionResult{Index: item.ask.Index, HighWatermark: -1, LastStable: -1, LogStart: -1, PreferredReplica: -1}
	request := &c.fetch.request
	p := item.partition
	if p == nil {
		return 0, item.err
	}
	if request.ReplicaID >= 0 && !p.HasReplica(request.ReplicaID) {
		if item.ask.CurrentEpoch >= 0 {
			return 0, errUnknownEpoch // it may know more than we do; it tries again
		}
		return 0, errNotReplica
	}
	if err := p.CheckEpoch(item.ask.CurrentEpoch); err != nil {
		return 0, err
	}
	if err := p.Lead(); err != nil {
		return 0, err
	}
	log := p.Log()
	limit := p.ReadLimit(replica.Isolation(request.Isolation))
	start, end := log.Start(), log.End()
	from := engine.Offset(item.ask.Offset)
	if from < start || from > end {
		return 0, &engine.OutOfRangeError{Want: from, Start: start, End: end}
	}
	r.HighWatermark, r.LastStable, r.LogStart = int64(limit), int64(limit), int64(start)
	if request.Isolation == int8(replica.ReadCommitted) {
		r.Aborted = noAborted
	}
	if e := item.ask.LastFetchedEpoch; e >= 0 && c.diverges(p, e, item.ask.Offset, r) {
		return 0, nil
	}
	if from >= limit {
		return 0, nil
	}
	return c.readRange(log, item, r, l, sofar, limit)
}

// diverges checks the epoch of the client's last record (KIP-595): where R2 does
// not hold between the client's copy and ours, it is told from where on.
func (c *conn) diverges(p *replica.Partition, last int32, offset int64, r *wire.FetchPartitionResult) bool {
	epoch, end := p.EpochEnd(last)
	if epoch >= 0 && (epoch < last || end < offset) {
		r.Diverging = &wire.EpochEnd{Epoch: epoch, End: end}
		return true
	}
	return false
}

func (c *conn) readRange(log *engine.Log, item *fetchItem, r *wire.FetchPartitionResult, l fetchLimits, sofar int, limit engine.Offset) (int, error) {
	room := min(int(max(item.ask.MaxBytes, 0)), l.total-sofar)
	whole := sofar == 0
	if !l.oneWhole {
		// Before v3 the bytes are cut at the limit; whole batches are needed
		// to convert them, and copyRecords cuts what comes out.
		whole = l.total > sofar
	}
	if room <= 0 && !whole {
		return 0, nil
	}
	slice, err := log.Read(engine.Offset(item.ask.Offset), max(room, 0), limit, whole)
	if err != nil {
		return 0, err
	}
	size := slice.Size()
	if size == 0 {
		return 0, nil
	}
	if size >= room && size < c.b.config.Fetch.SendfileThreshold {
		// Cut by a limit, so the client is behind and the range may be cold.
		// It will be copied, part after part: let the disk begin with all of
		// them. Ranges for sendfile are asked for when they are sent.
		slice.WillNeed()
	}
	r.Payload = slice
	return size, nil
}

// failFetch fills a result with an error.
func (c *conn) failFetch(item *fetchItem, r *wire.FetchPartitionResult, err error) {
	version := c.rc.header.Version
	f := failureOf(err)
	*r = wire.FetchPartitionResult{Index: r.Index, Code: f.codeFor(wire.KeyFetch, version), HighWatermark: -1, LastStable: -1, LogStart: -1, PreferredReplica: -1}
	if version >= 16 && item.partition != nil && (r.Code == wire.ErrNotLeaderOrFollower || r.Code == wire.ErrFencedLeaderEpoch) {
		r.CurrentLeader, c.fetch.response.Nodes = c.leaderHint(item.partition, c.fetch.response.Nodes)
	}
	if f.serious {
		c.b.limits.storage.log(c.log, slog.LevelError, "fetch failed", "topic", item.name, "partition", r.Index, "error", err)
	}
}

// assemble groups the results by topic. In an incremental session only the
// partitions with news are answered.
func (f *fetchCall) assemble(session *fetchSession, incremental bool, meter *connMeter) {
	if session != nil {
		session.mu.Lock()
		defer session.mu.Unlock()
	}
	kept := 0
	first := 0 // of the topic being grouped
	topics := f.response.Topics[:0]
	for i := range f.items {
		item := &f.items[i]
		if item.cached != nil && !session.answered(item.cached, &f.results[i]) && incremental {
			continue
		}
		if kept != i {
			f.results[kept], f.results[i] = f.results[i], wire.FetchPartitionResult{}
		}
		if n := len(topics); n == 0 || topics[n-1].Name != item.name || topics[n-1].ID != item.id {
			first = kept
			topics = append(topics, wire.FetchTopicResult{Name: item.name, ID: item.id})
		}
		meter.fetched(item, &f.results[kept], f.request.ReplicaID >= 0)
		kept++
		topics[len(topics)-1].Partitions = f.results[first:kept:kept]
	}
	f.response.Topics = topics
}
