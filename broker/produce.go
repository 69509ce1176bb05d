package broker

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"millrace/engine"
	"millrace/engine/batch"
	"millrace/replica"
	"millrace/wire"
)

// produceBurst is the Produce requests of one connection that lay in its buffer
// together. They are queued one by one, in order, and then finished together:
// everything is written, so that each log gets one combined write (D4); then
// everything is waited for, and the first to be waited for runs the journal's
// round for all (D3); then all answers are made, in order.
//
// Records alias the connection's buffer. Nothing points into it once write has
// returned, so where the answers have to wait for the disk, the connection takes
// what has come meanwhile into the same burst, and the same round (moreProduce).
type produceBurst struct {
	calls     []*produceCall
	free      []*produceCall // for the next burst, last in first out
	written   int            // of calls, those whose batches are in the logs
	bytes     int            // of all requests
	converted int            // bytes of batches that were made anew
}

// produceCall is one Produce request.
type produceCall struct {
	header   wire.Header
	request  wire.ProduceRequest
	response wire.ProduceResponse
	results  []wire.ProducePartitionResult // behind all response.Topics[i].Partitions
	parts    []producePart                 // one for each result
	rules    batch.Rules
	failed   error // acks=0: why the connection is closed
	size     int   // bytes of its frame
	quota    *clientQuota
	worked   time.Duration // measured only where the quota asks

	arrived, began time.Duration // clocks of meters
}

// producePart is one partition's batch on its way into the log.
type producePart struct {
	append    engine.Append
	partition *replica.Partition // nil: refused before it was queued
}

// len is how many requests wait for their end.
func (b *produceBurst) len() int { return len(b.calls) }

// take returns an empty call that is now the burst's last.
func (b *produceBurst) take() *produceCall {
	var call *produceCall
	if n := len(b.free); n > 0 {
		call, b.free = b.free[n-1], b.free[:n-1]
	} else {
		call = new(produceCall)
	}
	b.calls = append(b.calls, call)
	return call
}

// drop forgets all calls. What is queued in a log must have been written.
func (b *produceBurst) drop() {
	for i, call := range b.calls {
		call.reset()
		if len(b.free) < keepCalls {
			b.free = append(b.free, call)
		}
		b.calls[i] = nil
	}
	b.calls, b.written, b.bytes, b.converted = b.calls[:0], 0, 0, 0
}

// reset lets go of everything that points into buffers, logs and partitions,
// and of the room that only a giant needs.
func (c *produceCall) reset() {
	for i := range c.parts {
		p := &c.parts[i]
		p.partition, p.append.Batch = nil, nil // the rest of the Append is used again
	}
	clear(c.results)
	clear(c.response.Topics)
	c.parts, c.results = c.parts[:0], c.results[:0]
	c.response.Topics, c.response.Nodes = c.response.Topics[:0], nil
	c.failed, c.quota, c.worked, c.response.ThrottleMs = nil, nil, 0, 0
	if cap(c.parts) > keepParts {
		c.parts, c.results, c.response.Topics = nil, nil, nil
	}
}

// queueProduce parses a request, checks every batch and queues those that pass.
func (c *conn) queueProduce(body []byte) error {
	if c.produce.len() >= maxBurst || c.produce.converted >= maxConverted {
		if err := c.finishProduce(); err != nil {
			return err
		}
	}
	call := c.produce.take()
	call.header, call.size = c.rc.header, c.rc.size
	call.quota = c.b.quotas.client(call.header.ClientID)
	began := call.quota.timed()
	c.produce.bytes += len(body)
	if err := call.request.Parse(body, call.header.Version); err != nil {
		c.produce.calls = c.produce.calls[:len(c.produce.calls)-1] // it has nothing to answer
		return &badRequestError{err}
	}
	c.meter.producing(call)
	call.layOut()
	c.prepare(call)
	if !began.IsZero() {
		call.worked = time.Since(began)
	}
	return nil
}

// layOut makes room for the results before anything points at them.
func (c *produceCall) layOut() {
	n := 0
	for i := range c.request.Topics {
		n += len(c.request.Topics[i].Partitions)
	}
	c.results = slices.Grow(c.results[:0], n)[:n]
	c.parts = slices.Grow(c.parts[:0], n)[:n]
	c.response.Topics = slices.Grow(c.response.Topics[:0], len(c.request.Topics))
	first := 0
	for i := range c.request.Topics {
		t := &c.request.Topics[i]
		end := first + len(t.Partitions)
		c.response.Topics = append(c.response.Topics, wire.ProduceTopicResult{Name: t.Name, ID: t.ID, Partitions: c.results[first:end:end]})
		for j := range t.Partitions {
			c.results[first+j] = wire.ProducePartitionResult{Index: t.Partitions[j].Index, BaseOffset: -1, LogAppendTime: -1, LogStart: -1}
		}
		first = end
	}
}

// prepare walks the request's partitions in order.
func (c *conn) prepare(call *produceCall) {
	at := 0
	for i := range call.request.Topics {
		t := &call.request.Topics[i]
		topic, err := c.produceTopic(call, t)
		if topic != nil {
			call.response.Topics[i].Name = topic.Name // the request's lies in the frame
		} else {
			call.response.Topics[i].Name = strings.Clone(t.Name)
		}
		for j := range t.Partitions {
			part, result := &call.parts[at], &call.results[at]
			at++
			failure := err
			if failure == nil {
				failure = c.prepareOne(call, topic, &t.Partitions[j], part)
			}
			if failure != nil {
				part.partition = nil
				c.refuse(call, result, topic, failure)
			}
		}
	}
}

// produceTopic finds the topic that a request names, and checks what holds for
// all its partitions.
func (c *conn) produceTopic(call *produceCall, t *wire.ProduceTopic) (*replica.Topic, error) {
	if a := call.request.Acks; a < -1 || a > 1 {
		return nil, errBadAcks // F037
	}
	if call.header.Version >= 13 {
		if topic := c.b.replicas.TopicByID(t.ID); topic != nil {
			return topic, nil
		}
		return nil, errUnknownTopicID
	}
	topic := c.b.replicas.Topic(t.Name)
	if topic == nil {
		return nil, errUnknownTopic
	}
	if internalTopic(topic.Name) && call.header.ClientID != adminClientID {
		return nil, errInternalTopic
	}
	return topic, nil
}

// adminClientID is the one client that Kafka lets write to internal topics.
const adminClientID = "__admin_client"

func internalTopic(name string) bool {
	switch name {
	case "__consumer_offsets", "__transaction_state", "__share_group_state":
		return true
	}
	return false
}

// prepareOne checks one partition's bytes and queues them. The order of the
// checks is the protocol's (error-codes): place, shape, replicas, batch.
func (c *conn) prepareOne(call *produceCall, topic *replica.Topic, p *wire.ProducePartition, part *producePart) error {
	partition := topic.Partition(p.Index)
	if partition == nil {
		return errUnknownTopic
	}
	records, err := checkShape(p.Records, call.header.Version)
	if err != nil {
		return err
	}
	if err := partition.Admit(call.request.Acks); err != nil {
		return err
	}
	if log := partition.Log(); log != nil {
		if err := log.RoomLeft(); err != nil {
			return err
		}
	}
	if len(records) == 0 {
		return nil // old versions may send nothing: success, and nothing stored
	}
	if batch.View(records).Magic() < 2 {
		if records, err = batch.UpConvert(records, 0); err != nil {
			return err
		}
		c.produce.converted += len(records)
	}
	policy := topic.Policy()
	policy.Rules(&call.rules, c.rc.arrived)
	info, err := batch.Check(records, &call.rules)
	if err != nil {
		return err
	}
	if info.IsTransactional() {
		return errNoTransactions
	}
	if policy.Recompress && info.Codec() != policy.Codec {
		if records, info, err = recompress(records, policy); err != nil {
			return err
		}
		c.produce.converted += len(records)
	}
	part.append.Batch, part.append.Info = records, info
	if err := partition.Enqueue(&part.append); err != nil {
		return err
	}
	part.partition = partition
	return nil
}

// checkShape is what the request's version says about the bytes (F047): from v3
// on exactly one batch of magic 2, zstd from v7 on. A message set of before may
// hold anything, or nothing.
func checkShape(records []byte, version int16) ([]byte, error) {
	if version < 3 {
		if len(records) == 0 {
			return nil, nil
		}
		if len(records) < minimalEntry {
			return nil, errNoBatch
		}
		if batch.View(records).Magic() < 2 {
			return records, nil
		}
	} else if len(records) < minimalEntry || batch.View(records).Magic() != 2 {
		return nil, errNoBatch
	}
	size, err := batch.Split(records)
	switch {
	case err != nil:
		return nil, errNoBatch
	case size != len(records):
		return nil, errManyBatches
	case version < 7 && batch.View(records).Codec() == batch.Zstd:
		return nil, errZstdTooOld
	}
	return records, nil
}

// minimalEntry is the length up to and with the magic byte, in every format.
const minimalEntry = 17

// recompress stores a batch in the topic's codec. The limit on size holds for
// what is stored.
func recompress(records []byte, policy *replica.Policy) ([]byte, batch.Info, error) {
	records, err := batch.Recompress(records, policy.Codec, policy.CodecLevel)
	if err != nil {
		return nil, batch.Info{}, err
	}
	if policy.MaxMessage > 0 && len(records) > policy.MaxMessage {
		return nil, batch.Info{}, &recompressedTooLargeError{size: len(records), max: policy.MaxMessage, codec: policy.Codec}
	}
	info, err := batch.CheckStored(records)
	return records, info, err
}

// finishProduce ends the burst: write all, wait for all, answer all. An error
// means that the connection must be closed; answers made so far are buffered.
func (c *conn) finishProduce() (err error) {
	if c.produce.len() == 0 {
		return nil
	}
	c.produce.write()
	written, waits := c.meter.m.clock(), c.produce.waits()
	for _, call := range c.produce.calls {
		call.wait(c)
	}
	c.meter.produced(c.produce.calls, written, waits)
	for _, call := range c.produce.calls {
		if call.quota != nil {
			if e := c.chargeProduce(call); e != nil {
				err = e
			}
		}
		if call.request.Acks != 0 {
			c.writer.RespondProduce(call.header, &call.response)
			continue
		}
		if call.failed != nil && err == nil {
			// Without an answer, closing is the only way to tell.
			err = errQuiet
			c.b.limits.acks0.log(c.log, slog.LevelInfo, "closing a connection: a produce with acks=0 failed", "error", call.failed, "client_id", call.header.ClientID)
		}
	}
	c.produce.drop()
	if err == nil && c.throttle != (throttle{}) {
		err = c.pause()
	}
	return err
}

// moreProduce writes what is queued and, if its answers have to wait for the disk,
// takes up what the client has sent meanwhile: that then shares the round. It never
// waits, and the burst is bounded.
func (c *conn) moreProduce() (bool, error) {
	b := &c.produce
	if b.len() == 0 || c.raw == nil {
		return false, nil
	}
	b.write()
	if b.len() >= maxBurst || b.bytes >= maxBurstBytes || !b.waits() {
		return false, nil
	}
	return c.fillNow()
}

// write brings what is queued into the logs.
func (b *produceBurst) write() {
	for _, call := range b.calls[b.written:] {
		call.write()
	}
	b.written = len(b.calls)
}

// waits reports whether an answer has to wait for a round that has not ended.
func (b *produceBurst) waits() bool {
	for i := len(b.calls) - 1; i >= 0; i-- { // the last are the likeliest
		for j := range b.calls[i].parts {
			if p := &b.calls[i].parts[j]; p.partition != nil && p.append.Waits() {
				return true
			}
		}
	}
	return false
}

func (c *produceCall) write() {
	for i := range c.parts {
		if p := &c.parts[i]; p.partition != nil {
			_ = p.partition.Write(&p.append) // kept in append.Err
		}
	}
}

func (c *produceCall) wait(conn *conn) {
	for i := range c.parts {
		p := &c.parts[i]
		if p.partition == nil {
			continue
		}
		result := &c.results[i]
		err := p.append.Err
		if err == nil {
			err = p.partition.Wait(&p.append, c.request.Acks)
		}
		if err != nil {
			conn.refuse(c, result, p.partition.Topic, p.lost(err))
			continue
		}
		conn.meter.appended(p)
		result.BaseOffset = int64(p.append.Base)
		result.LogAppendTime = p.append.LogAppendTime
		result.LogStart = int64(p.append.Start)
	}
}

// lost tells a topic deleted meanwhile from a log that failed.
func (p *producePart) lost(err error) error {
	if errors.Is(err, engine.ErrClosed) && p.partition.Gone() {
		return replica.ErrGone
	}
	return err
}

// refuse fills a result with an error.
func (c *conn) refuse(call *produceCall, result *wire.ProducePartitionResult, topic *replica.Topic, err error) {
	call.failed = err
	f := failureOf(err)
	result.Code = f.codeFor(wire.KeyProduce, call.header.Version)
	c.meter.refusedProduce(topic, result.Code)
	result.ErrorMessage = f.message
	result.RecordErrors = f.records
	result.BaseOffset, result.LogAppendTime, result.LogStart = -1, -1, -1
	if result.Code == wire.ErrNotLeaderOrFollower && call.header.Version >= 10 && topic != nil {
		if p := topic.Partition(result.Index); p != nil {
			result.CurrentLeader, call.response.Nodes = c.leaderHint(p, call.response.Nodes)
		}
	}
	switch {
	case f.serious:
		c.b.limits.storage.log(c.log, slog.LevelError, "produce failed", "topic", topic.Name, "partition", result.Index, "error", err)
	case topic != nil:
		c.refused(&call.header, result.Code, f.message, "topic", topic.Name, "partition", result.Index)
	}
}

// leaderHint tells who leads and where that broker is reached from here (KIP-951).
func (c *conn) leaderHint(p *replica.Partition, nodes []wire.NodeEndpoint) (*wire.Leader, []wire.NodeEndpoint) {
	id, epoch := p.Leader()
	hint := &wire.Leader{ID: id, Epoch: epoch}
	for i := range nodes {
		if nodes[i].ID == id {
			return hint, nodes
		}
	}
	broker := c.b.coord.Image().Broker(id)
	if broker == nil {
		return hint, nodes
	}
	e, ok := broker.Endpoint(c.listener)
	if !ok {
		return hint, nodes
	}
	node := wire.NodeEndpoint{ID: id, Host: e.Host, Port: e.Port}
	if broker.Rack != "" {
		node.Rack = &broker.Rack
	}
	return hint, append(nodes, node)
}
