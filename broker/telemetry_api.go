package broker

import (
	"errors"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/coord"
	"millrace/engine/batch"
	"millrace/wire"
)

// acceptedCodecs are told to clients, who take the first that they have.
var acceptedCodecs = []int8{int8(batch.Zstd), int8(batch.LZ4), int8(batch.Gzip), int8(batch.Snappy)}

// What has become of a push, for metrics.
const (
	pushTaken = iota
	pushEarly
	pushUnknown
	pushTooLarge
	pushInvalid
	pushResults
)

var pushResultNames = [pushResults]string{"accepted", "throttled", "unknown_subscription", "too_large", "invalid"}

// resultOf sorts the codes that a push can be answered with.
func resultOf(code int16) int {
	switch code {
	case wire.ErrNone:
		return pushTaken
	case wire.ErrThrottlingQuotaExceeded:
		return pushEarly
	case wire.ErrUnknownSubscriptionID:
		return pushUnknown
	case wire.ErrTelemetryTooLarge:
		return pushTooLarge
	}
	return pushInvalid
}

// handleGetTelemetrySubscriptions serves GetTelemetrySubscriptions: who the client
// is, and what it is to push. A client that no subscription matches is asked for
// nothing, and comes again after the default interval.
func (b *Broker) handleGetTelemetrySubscriptions(rc *requestContext, request kmsg.Request) kmsg.Response {
	req := request.(*kmsg.GetTelemetrySubscriptionsRequest)
	resp := req.ResponseKind().(*kmsg.GetTelemetrySubscriptionsResponse)
	id := req.ClientInstanceID
	if id == ([16]byte{}) {
		id = newInstanceID()
	}
	t, now := b.telemetry, b.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.clientLocked(id, rc, now)
	if !c.mayGet(now) {
		resp.ErrorCode = wire.ErrThrottlingQuotaExceeded
		return resp
	}
	c.lastCode = wire.ErrNone
	resp.ClientInstanceID, resp.SubscriptionID = id, c.subscription
	resp.AcceptedCompressionTypes = acceptedCodecs
	resp.PushIntervalMillis, resp.TelemetryMaxBytes = int32(c.interval.Milliseconds()), int32(t.maxBytes)
	resp.DeltaTemporality = true // as Kafka; what comes as whole values is understood too
	resp.RequestedMetrics = c.metrics
	return resp
}

// mayGet says whether a client may ask again: once in an interval, or to get over an
// error that asking gets over.
func (c *telemetryClient) mayGet(now time.Time) bool {
	last := c.lastGet
	if c.lastPush.After(last) {
		last = c.lastPush
	}
	if now.Sub(last) >= c.interval {
		c.lastGet = now
		return true
	}
	return c.lastCode == wire.ErrUnknownSubscriptionID || c.lastCode == wire.ErrUnsupportedCompressionType
}

// mayPush says whether a push is not too early. The first after a Get may come at
// any time, since clients spread their first pushes.
func (c *telemetryClient) mayPush(now time.Time) bool {
	if c.lastGet.After(c.lastPush) || now.Sub(c.lastPush) >= c.interval {
		c.lastPush = now
		return true
	}
	return false
}

// handlePushTelemetry serves PushTelemetry.
func (b *Broker) handlePushTelemetry(rc *requestContext, request kmsg.Request) kmsg.Response {
	req := request.(*kmsg.PushTelemetryRequest)
	resp := req.ResponseKind().(*kmsg.PushTelemetryResponse)
	t, now := b.telemetry, b.now()
	code, why := t.push(rc, req, now)
	resp.ErrorCode = code
	t.results[resultOf(code)].Add(1)
	if why != "" { // the answer has no room for it
		t.refused.log(rc.log, slog.LevelInfo, "a client's metrics were refused: "+why, "code", wire.ErrorName(code),
			"client_id", rc.header.ClientID, "client_instance_id", coord.IDText(req.ClientInstanceID))
	}
	return resp
}

// push takes a push in, or says with what code it is refused, and why.
func (t *telemetry) push(rc *requestContext, req *kmsg.PushTelemetryRequest, now time.Time) (code int16, why string) {
	if req.ClientInstanceID == ([16]byte{}) || req.ClientInstanceID == ([16]byte{15: 1}) {
		return wire.ErrInvalidRequest, "the client instance id is a reserved one"
	}
	code, why = t.admit(rc, req, now)
	if code == wire.ErrNone && len(req.Metrics) > 0 {
		code, why = t.take(req, now)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if at := t.mu.clients[req.ClientInstanceID]; at != nil {
		at.Value.(*telemetryClient).lastCode = code
	}
	return code, why
}

// admit checks all that can be checked without a look at the metrics.
func (t *telemetry) admit(rc *requestContext, req *kmsg.PushTelemetryRequest, now time.Time) (code int16, why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.clientLocked(req.ClientInstanceID, rc, now)
	terminated := c.terminating
	c.terminating = req.Terminating
	switch {
	case terminated:
		return wire.ErrInvalidRequest, "its last push said that it was terminating"
	case !c.mayPush(now) && !req.Terminating:
		return wire.ErrThrottlingQuotaExceeded, ""
	case req.SubscriptionID != c.subscription:
		return wire.ErrUnknownSubscriptionID, ""
	case req.CompressionType < int8(batch.None) || req.CompressionType > int8(batch.Zstd):
		return wire.ErrUnsupportedCompressionType, "the compression type is none of 0 to 4"
	case len(req.Metrics) > t.maxBytes:
		return wire.ErrTelemetryTooLarge, "it is larger than telemetry.max.bytes"
	}
	return wire.ErrNone, ""
}

// take decodes a push and keeps its values.
func (t *telemetry) take(req *kmsg.PushTelemetryRequest, now time.Time) (code int16, why string) {
	t.decoding.Lock()
	defer t.decoding.Unlock()
	pushed, err := decodeMetrics(batch.Codec(req.CompressionType), req.Metrics, t.maxBytes)
	switch {
	case errors.Is(err, batch.ErrExpansion):
		return wire.ErrTelemetryTooLarge, "expanded it is larger than telemetry.max.bytes"
	case err != nil:
		return wire.ErrInvalidRecord, err.Error()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if at := t.mu.clients[req.ClientInstanceID]; at != nil { // else it has just made room
		t.keepLocked(at.Value.(*telemetryClient), pushed, now)
	}
	return wire.ErrNone, ""
}
