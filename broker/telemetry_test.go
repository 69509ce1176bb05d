package broker

import (
	"bytes"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kmsg"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/proto"

	"millrace/coord"
	"millrace/engine/batch"
	"millrace/wire"
)

// telemetryStory is what clients' metrics need of a broker, with a clock of its own.
type telemetryStory struct {
	*Broker
	t     *testing.T
	clock time.Time
}

func newTelemetryStory(t *testing.T) *telemetryStory {
	s := &telemetryStory{t: t, clock: time.Unix(1_700_000_000, 0)}
	s.Broker = &Broker{telemetry: newTelemetry(1 << 20), now: func() time.Time { return s.clock }}
	return s
}

// subscribe puts these subscriptions in the place of all before: "name key=value …".
func (s *telemetryStory) subscribe(subscriptions ...string) {
	configs := coord.NamedConfigs{}
	for _, text := range subscriptions {
		words := strings.Fields(text)
		configs[words[0]] = map[string]string{}
		for _, pair := range words[1:] {
			key, value, _ := strings.Cut(pair, "=")
			configs[words[0]][key] = value
		}
		if code, err := new(Config).checkClientMetrics(configs[words[0]]); err != nil || code != 0 {
			s.t.Fatal(code, err)
		}
	}
	s.telemetry.follow(coord.NewImage("c", 1, nil, nil).WithNamedConfigs(nil, configs))
}

// client is a connection of a client.
func (s *telemetryStory) client(id string) *requestContext {
	rc := &requestContext{remote: "10.1.2.3:4567", software: software{"apache-kafka-java", "4.3.1"}, conn: &conn{}, log: slog.New(slog.DiscardHandler)}
	rc.header.ClientID = id
	return rc
}

func (s *telemetryStory) get(rc *requestContext, id [16]byte) *kmsg.GetTelemetrySubscriptionsResponse {
	req := kmsg.NewPtrGetTelemetrySubscriptionsRequest()
	req.ClientInstanceID = id
	return s.handleGetTelemetrySubscriptions(rc, req).(*kmsg.GetTelemetrySubscriptionsResponse)
}

func (s *telemetryStory) push(rc *requestContext, got *kmsg.GetTelemetrySubscriptionsResponse, change func(*kmsg.PushTelemetryRequest)) (code int16) {
	req := kmsg.NewPtrPushTelemetryRequest()
	req.ClientInstanceID, req.SubscriptionID = got.ClientInstanceID, got.SubscriptionID
	if change != nil {
		change(req)
	}
	return s.handlePushTelemetry(rc, req).(*kmsg.PushTelemetryResponse).ErrorCode
}

// sends is a push of these metrics.
func sends(codec batch.Codec, list ...*metrics.Metric) func(*kmsg.PushTelemetryRequest) {
	return func(req *kmsg.PushTelemetryRequest) {
		req.CompressionType = int8(codec)
		req.Metrics = otlp(codec, list...)
	}
}

func otlp(codec batch.Codec, list ...*metrics.Metric) []byte {
	raw, err := proto.Marshal(&metrics.MetricsData{ResourceMetrics: []*metrics.ResourceMetrics{{
		Resource:     &resource.Resource{Attributes: []*common.KeyValue{attribute("group_id", "g")}},
		ScopeMetrics: []*metrics.ScopeMetrics{{Metrics: list}},
	}}})
	if err == nil {
		raw, err = batch.Compress(codec, batch.DefaultLevel, nil, raw)
	}
	if err != nil {
		panic(err)
	}
	return raw
}

func attribute(key, value string) *common.KeyValue {
	return &common.KeyValue{Key: key, Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: value}}}
}

func numberPoint(v float64, attributes ...*common.KeyValue) []*metrics.NumberDataPoint {
	return []*metrics.NumberDataPoint{{Attributes: attributes, Value: &metrics.NumberDataPoint_AsDouble{AsDouble: v}}}
}

func gaugeOf(name string, v float64, attributes ...*common.KeyValue) *metrics.Metric {
	return &metrics.Metric{Name: name, Data: &metrics.Metric_Gauge{Gauge: &metrics.Gauge{DataPoints: numberPoint(v, attributes...)}}}
}

func sumOf(name string, v float64, temporality metrics.AggregationTemporality) *metrics.Metric {
	return &metrics.Metric{Name: name, Data: &metrics.Metric_Sum{Sum: &metrics.Sum{
		DataPoints: numberPoint(v), IsMonotonic: true, AggregationTemporality: temporality,
	}}}
}

const (
	deltas = metrics.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA
	totals = metrics.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE
)

// scrape is what /metrics would tell, as "name value" by labels.
func (s *telemetryStory) scrape() map[string]float64 {
	registry := prometheus.NewRegistry()
	registry.MustRegister(telemetryOnly{s})
	families, err := registry.Gather()
	if err != nil {
		s.t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				if l.GetName() != "client_instance_id" {
					labels = append(labels, l.GetName()+"="+l.GetValue())
				}
			}
			out[strings.TrimPrefix(f.GetName(), "millrace_telemetry_")+" "+strings.Join(labels, " ")] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return out
}

type telemetryOnly struct{ s *telemetryStory }

func (telemetryOnly) Describe(chan<- *prometheus.Desc) {}
func (o telemetryOnly) Collect(out chan<- prometheus.Metric) {
	series{out}.telemetry(o.s.telemetry, o.s.clock)
}

// Claim: the id of a subscription is the one that Kafka 4.3 computes.
// Method: values made with Kafka's own Uuid and java.util.zip.CRC32C.
func TestTelemetrySubscriptionIDs(t *testing.T) {
	id, _ := coord.ParseID("rLr1_-iqQu2cdLH5yK-dfQ")
	for _, try := range []struct {
		metrics  []string
		interval time.Duration
		want     int32
	}{
		{nil, 300 * time.Second, -1005797304},
		{[]string{"*"}, time.Second, 574630191},
		{[]string{"org.apache.kafka.producer."}, 10 * time.Second, 2069241906},
	} {
		if got := subscriptionID(try.metrics, try.interval, id); got != try.want {
			t.Errorf("%v: %d", try, got)
		}
	}
}

// Claim: a client is told all metrics of all subscriptions that it matches, at the
// shortest interval; one that matches none is asked for nothing.
// Method: a table of subscriptions.
func TestTelemetrySubscriptionsMatch(t *testing.T) {
	for _, try := range []struct {
		subscriptions []string
		metrics       []string
		interval      int32
	}{
		{nil, nil, 300_000},
		{[]string{"a metrics=x.,y. interval.ms=1000"}, []string{"x.", "y."}, 1000},
		{[]string{"a metrics=x.", "b metrics=y.,x. interval.ms=5000"}, []string{"x.", "y."}, 5000},
		{[]string{"a metrics=x.", "b metrics=*"}, []string{"*"}, 300_000},
		{[]string{"a interval.ms=100"}, nil, 100},
		{[]string{"a metrics=x. match=client_id=app-.*"}, []string{"x."}, 300_000},
		{[]string{"a metrics=x. match=client_id=app"}, nil, 300_000}, // the whole value, not a part
		{[]string{"a metrics=x. match=client_software_name=apache-kafka-java,client_software_version=4\\..*"}, []string{"x."}, 300_000},
		{[]string{"a metrics=x. match=client_software_name=apache-kafka-java,client_software_version=3\\..*"}, nil, 300_000},
		{[]string{"a metrics=x. match=client_source_address=10\\.1\\..*,client_source_port=4567"}, []string{"x."}, 300_000},
		{[]string{"a metrics=x. match=client_source_port=4568"}, nil, 300_000},
		{[]string{"a metrics=x. match=client_instance_id=.{22}"}, []string{"x."}, 300_000},
	} {
		s := newTelemetryStory(t)
		s.subscribe(try.subscriptions...)
		got := s.get(s.client("app-1"), [16]byte{})
		if got.ErrorCode != 0 || !slices.Equal(got.RequestedMetrics, try.metrics) || got.PushIntervalMillis != try.interval {
			t.Errorf("%q: %+v", try.subscriptions, got)
		}
		if got.ClientInstanceID == ([16]byte{}) || !got.DeltaTemporality || got.TelemetryMaxBytes != 1<<20 || !slices.Equal(got.AcceptedCompressionTypes, []int8{4, 3, 1, 2}) {
			t.Errorf("%+v", got)
		}
	}
}

// Claim: who comes too early, with what is not known, or after its end is refused
// with Kafka's code, and may come again as in Kafka.
// Method: one client's life, the clock moved by hand.
func TestTelemetryRefusals(t *testing.T) {
	s := newTelemetryStory(t)
	s.subscribe("a metrics=* interval.ms=10000")
	rc := s.client("app")
	got := s.get(rc, [16]byte{})
	expect := func(what string, code, want int16) {
		t.Helper()
		if code != want {
			t.Fatalf("%s: %s, want %s", what, wire.ErrorName(code), wire.ErrorName(want))
		}
	}
	pass := func(d time.Duration) { s.clock = s.clock.Add(d) }
	expect("a second get at once", s.get(rc, got.ClientInstanceID).ErrorCode, wire.ErrThrottlingQuotaExceeded)
	pass(time.Second)
	expect("the first push, early in the interval", s.push(rc, got, sends(batch.Zstd, gaugeOf("m", 1))), 0)
	pass(9 * time.Second)
	expect("a push too early", s.push(rc, got, nil), wire.ErrThrottlingQuotaExceeded)
	pass(time.Second)
	expect("an interval after the last", s.push(rc, got, sends(batch.LZ4, gaugeOf("m", 1))), 0)
	pass(10 * time.Second)
	expect("another subscription id", s.push(rc, got, func(r *kmsg.PushTelemetryRequest) { r.SubscriptionID++ }), wire.ErrUnknownSubscriptionID)
	expect("a get after that, at once", s.get(rc, got.ClientInstanceID).ErrorCode, 0)
	pass(10 * time.Second)
	expect("a codec that is none", s.push(rc, got, func(r *kmsg.PushTelemetryRequest) { r.CompressionType = 5 }), wire.ErrUnsupportedCompressionType)
	pass(10 * time.Second)
	expect("too large as it came", s.push(rc, got, func(r *kmsg.PushTelemetryRequest) { r.Metrics = make([]byte, 1<<20+1) }), wire.ErrTelemetryTooLarge)
	pass(10 * time.Second)
	bomb, err := batch.Compress(batch.Zstd, batch.DefaultLevel, nil, make([]byte, 64<<20))
	if err != nil {
		t.Fatal(err)
	}
	expect("too large when expanded", s.push(rc, got, func(r *kmsg.PushTelemetryRequest) { r.CompressionType, r.Metrics = int8(batch.Zstd), bomb }), wire.ErrTelemetryTooLarge)
	pass(10 * time.Second)
	expect("no OTLP", s.push(rc, got, func(r *kmsg.PushTelemetryRequest) { r.Metrics = []byte("hello") }), wire.ErrInvalidRecord)
	pass(10 * time.Second)
	expect("no zstd", s.push(rc, got, func(r *kmsg.PushTelemetryRequest) { r.CompressionType, r.Metrics = int8(batch.Zstd), []byte("hello") }), wire.ErrInvalidRecord)
	for _, id := range [][16]byte{{}, {15: 1}} {
		expect("a reserved id", s.push(rc, got, func(r *kmsg.PushTelemetryRequest) { r.ClientInstanceID = id }), wire.ErrInvalidRequest)
	}

	s.subscribe("a metrics=x. interval.ms=10000")
	expect("a push after the subscriptions changed", s.push(rc, got, nil), wire.ErrUnknownSubscriptionID)
	next := s.get(rc, got.ClientInstanceID)
	expect("a get after that", next.ErrorCode, 0)
	if next.ClientInstanceID != got.ClientInstanceID || next.SubscriptionID == got.SubscriptionID {
		t.Errorf("%+v", next)
	}
	last := func(r *kmsg.PushTelemetryRequest) { r.Terminating = true }
	pass(10 * time.Second)
	expect("a push", s.push(rc, next, nil), 0)
	expect("the last push, whenever it comes", s.push(rc, next, last), 0)
	expect("one more", s.push(rc, next, last), wire.ErrInvalidRequest)
	s.telemetry.left(rc.conn, s.clock)
	expect("the same id on a new connection", s.get(s.client("app"), got.ClientInstanceID).ErrorCode, 0)
	results := s.scrape()
	for result, want := range map[string]float64{"accepted": 4, "throttled": 1, "unknown_subscription": 2, "too_large": 2, "invalid": 6} {
		if got := results["pushes_total result="+result]; got != want {
			t.Errorf("%s: %v, want %v", result, got, want)
		}
	}
}

// Claim: what clients push is told: deltas add up, whole values replace; of
// histograms count and sum; nothing that was not asked for; labels are clean.
// Method: two pushes; compare all series.
func TestTelemetryValues(t *testing.T) {
	s := newTelemetryStory(t)
	s.subscribe("a metrics=m. interval.ms=1000")
	rc := s.client("app\xff")
	got := s.get(rc, [16]byte{})
	sum, count := 2.5, uint64(3)
	for range 2 {
		list := []*metrics.Metric{
			gaugeOf("m.gauge", 7, attribute("topic", "t"), attribute("client-id", "liar"), attribute("client_id", "liar"), attribute("9 bad\x00", "v?"), attribute("topic", "again")),
			sumOf("m.delta", 5, deltas), sumOf("m.total", 5, totals), gaugeOf("other", 1), gaugeOf("m.nan", math.NaN()),
			{Name: "m.histogram", Data: &metrics.Metric_Histogram{Histogram: &metrics.Histogram{
				AggregationTemporality: deltas, DataPoints: []*metrics.HistogramDataPoint{{Count: count, Sum: &sum}},
			}}},
			{Name: "m.nothing"},
		}
		if code := s.push(rc, got, sends(batch.Gzip, list...)); code != 0 {
			t.Fatal(wire.ErrorName(code))
		}
		s.clock = s.clock.Add(time.Second)
	}
	values := s.scrape()
	const id = "client_id=app\uFFFD"
	want := map[string]float64{
		"value a_9_bad_=v? " + id + " metric=m.gauge topic=t": 7,
		"value_total " + id + " metric=m.delta":               10,
		"value_total " + id + " metric=m.total":               5,
		"value_total " + id + " metric=m.histogram.count":     6,
		"value " + id + " metric=m.histogram.sum":             5,
		"client_info " + id + " client_software_name=apache-kafka-java client_software_version=4.3.1 client_source_address=10.1.2.3 group_id=g": 1,
		"series ": 6, "clients ": 1, "left_out_total ": 0,
	}
	for series, v := range want {
		if got, ok := values[series]; !ok || got != v {
			t.Errorf("%s: %v (there: %v), want %v", series, got, ok, v)
		}
	}
	if v, ok := values["value "+id+" metric=m.nan"]; !ok || !math.IsNaN(v) {
		t.Errorf("no NaN: %v", v)
	}
	if n := len(values) - int(pushResults); n != len(want)+1 {
		t.Errorf("%d series, want %d: %v", n, len(want)+1, values)
	}
}

// Claim: what is kept is bounded: series of one client and of all, clients, sizes of
// names; what is not renewed goes, what its client has left behind goes soon.
// Method: push beyond each bound, move the clock.
func TestTelemetryIsBounded(t *testing.T) {
	s := newTelemetryStory(t)
	s.subscribe("a metrics=* interval.ms=60000")
	s.telemetry.maxSeries = maxClientSeries + 10
	many := func(n int) (list []*metrics.Metric) {
		for i := range n {
			list = append(list, gaugeOf(fmt.Sprint("m", i), 1))
		}
		return list
	}
	one, two := s.client("one"), s.client("two")
	first, second := s.get(one, [16]byte{}), s.get(two, [16]byte{})
	s.push(one, first, sends(batch.Zstd, many(maxClientSeries+5)...))
	s.push(two, second, sends(batch.Zstd, append(many(20), gaugeOf(strings.Repeat("x", maxMetricName+1), 1))...))
	check := func(clients, series, leftOut float64) {
		t.Helper()
		got := s.scrape()
		if got["clients "] != clients || got["series "] != series || got["left_out_total "] != leftOut {
			t.Fatalf("%v clients, %v series, %v left out; want %v, %v, %v", got["clients "], got["series "], got["left_out_total "], clients, series, leftOut)
		}
		n := 0
		for name := range got {
			if strings.HasPrefix(name, "value") {
				n++
			}
		}
		if n != int(series) {
			t.Fatalf("%d series are told, %v counted", n, series)
		}
	}
	check(2, maxClientSeries+10, 5+10+1)

	s.clock = s.clock.Add(2 * time.Minute)
	s.push(two, second, sends(batch.Zstd, many(1)...))
	s.clock = s.clock.Add(time.Minute) // three intervals after all the rest
	check(1, 1, 16)
	s.telemetry.left(two.conn, s.clock)
	check(1, 1, 16)
	s.clock = s.clock.Add(goneKeep)
	s.telemetry.expire(s.clock) // as the sweeper does when nobody scrapes
	check(0, 0, 16)

	for range maxTelemetryClients + 10 {
		s.get(s.client("many"), [16]byte{})
	}
	if n, m := len(s.telemetry.mu.clients), s.telemetry.mu.order.Len(); n != maxTelemetryClients || m != n {
		t.Errorf("%d and %d clients", n, m)
	}
}

// Claim: a push that was decoded costs no more than it is allowed to: deep nesting
// and lists of nothing are refused or harmless.
// Method: hostile bytes.
func TestTelemetryOfHostileBytes(t *testing.T) {
	deep := []byte{}
	for range 2000 { // AnyValue.array_value.values within each other
		deep = nested(0x2a, nested(0x0a, deep))
	}
	attr := nested(0x3a, append(nested(0x0a, []byte("k")), nested(0x12, deep)...))
	point := nested(0x0a, attr)
	gauge := nested(0x2a, point)
	raw := nested(0x0a, nested(0x12, nested(0x12, gauge)))
	if _, err := decodeMetrics(batch.None, raw, 1<<20); err == nil {
		t.Error("values 2000 deep are taken")
	}
	empty := nested(0x0a, nested(0x12, nested(0x12, append(nested(0x0a, []byte("m")), nested(0x2a, bytes.Repeat([]byte{0x0a, 0}, 100_000))...))))
	data, err := decodeMetrics(batch.None, empty, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	s := newTelemetryStory(t)
	s.subscribe("a metrics=*")
	s.telemetry.mu.Lock()
	c := s.telemetry.clientLocked([16]byte{1}, s.client("c"), s.clock)
	s.telemetry.keepLocked(c, data, s.clock)
	s.telemetry.mu.Unlock()
	if len(c.series) != 0 {
		t.Errorf("%d series of points without a value", len(c.series))
	}
}

// nested is a length-delimited field of a protobuf message.
func nested(tag byte, body []byte) []byte {
	out := []byte{tag}
	n := len(body)
	for ; n >= 0x80; n >>= 7 {
		out = append(out, byte(n)|0x80)
	}
	return append(append(out, byte(n)), body...)
}
