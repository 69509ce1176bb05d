package broker

import (
	"fmt"
	"strconv"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/proto"

	"millrace/engine/batch"
)

// decodeMetrics reads OTLP MetricsData (version 1) of at most max bytes, expanded.
// errors.Is(err, batch.ErrExpansion) if it would be more.
func decodeMetrics(codec batch.Codec, payload []byte, max int) (*metrics.MetricsData, error) {
	raw := payload
	if codec != batch.None {
		var err error
		if raw, err = batch.Decompress(codec, nil, payload, max); err != nil {
			return nil, fmt.Errorf("compressed metrics: %w", err)
		}
	}
	data := new(metrics.MetricsData)
	if err := (proto.UnmarshalOptions{DiscardUnknown: true, RecursionLimit: maxMetricsDepth}).Unmarshal(raw, data); err != nil {
		return nil, fmt.Errorf("metrics are not OTLP MetricsData: %w", err)
	}
	return data, nil
}

// maxMetricsDepth bounds values within values; data, resource, scope, metric, sum,
// point, attribute and value are 8.
const maxMetricsDepth = 20

// point is one value, whatever it was part of.
type point struct {
	metric     string
	attributes []*common.KeyValue
	value      float64
	rises      bool // never falls, save when the client begins anew
	delta      bool // to be added to what was before
}

// points calls f with every value of a metric. Of histograms and summaries the count
// and the sum are told, as metrics of their own.
func points(m *metrics.Metric, f func(point)) {
	name := m.GetName()
	distribution := func(delta bool, attributes []*common.KeyValue, count uint64, sum *float64) {
		f(point{name + ".count", attributes, float64(count), true, delta})
		if sum != nil {
			f(point{name + ".sum", attributes, *sum, false, delta})
		}
	}
	switch data := m.GetData().(type) {
	case *metrics.Metric_Gauge:
		for _, p := range data.Gauge.GetDataPoints() {
			if v, ok := numberOf(p); ok {
				f(point{metric: name, attributes: p.GetAttributes(), value: v})
			}
		}
	case *metrics.Metric_Sum:
		for _, p := range data.Sum.GetDataPoints() {
			if v, ok := numberOf(p); ok {
				f(point{name, p.GetAttributes(), v, data.Sum.GetIsMonotonic(), isDelta(data.Sum.GetAggregationTemporality())})
			}
		}
	case *metrics.Metric_Histogram:
		for _, p := range data.Histogram.GetDataPoints() {
			distribution(isDelta(data.Histogram.GetAggregationTemporality()), p.GetAttributes(), p.GetCount(), p.Sum)
		}
	case *metrics.Metric_ExponentialHistogram:
		for _, p := range data.ExponentialHistogram.GetDataPoints() {
			distribution(isDelta(data.ExponentialHistogram.GetAggregationTemporality()), p.GetAttributes(), p.GetCount(), p.Sum)
		}
	case *metrics.Metric_Summary:
		for _, p := range data.Summary.GetDataPoints() {
			sum := p.GetSum()
			distribution(false, p.GetAttributes(), p.GetCount(), &sum)
		}
	}
}

func isDelta(t metrics.AggregationTemporality) bool {
	return t == metrics.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA
}

func numberOf(p *metrics.NumberDataPoint) (v float64, ok bool) {
	switch p.GetValue().(type) {
	case *metrics.NumberDataPoint_AsDouble:
		return p.GetAsDouble(), true
	case *metrics.NumberDataPoint_AsInt:
		return float64(p.GetAsInt()), true
	}
	return 0, false
}

// textOfValue is an attribute's value as a label has it. Lists and maps have none.
func textOfValue(v *common.AnyValue) (text string, ok bool) {
	switch v.GetValue().(type) {
	case *common.AnyValue_StringValue:
		return v.GetStringValue(), true
	case *common.AnyValue_BoolValue:
		return strconv.FormatBool(v.GetBoolValue()), true
	case *common.AnyValue_IntValue:
		return strconv.FormatInt(v.GetIntValue(), 10), true
	case *common.AnyValue_DoubleValue:
		return strconv.FormatFloat(v.GetDoubleValue(), 'g', -1, 64), true
	}
	return "", false
}
