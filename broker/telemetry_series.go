package broker

import (
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"

	"millrace/coord"
)

// clientSeries is the last value of one series of a client.
type clientSeries struct {
	labels []label
	value  float64
	rises  bool
	at     time.Time // of the last push that had it
}

const (
	// maxMetricName is the longest name of a client's metric that is kept, and
	// maxAttributes how many attributes of a point are. A label's name is cut like its value.
	maxMetricName = 200
	maxAttributes = 8
)

// ownLabels are the labels that we give; a client's attributes of the same name are
// left out.
var ownLabels = []string{"client_id", "client_instance_id", "client_software_name", "client_software_version", "client_source_address", "metric"}

// keepLocked adds what a client has pushed to what is known of it, as far as it was
// asked for and there is room.
func (t *telemetry) keepLocked(c *telemetryClient, data *metrics.MetricsData, now time.Time) {
	for _, resource := range data.GetResourceMetrics() {
		c.resource = labelsOf(resource.GetResource().GetAttributes())
		for _, scope := range resource.GetScopeMetrics() {
			for _, m := range scope.GetMetrics() {
				if c.wants(m.GetName()) {
					points(m, func(p point) { t.keepPointLocked(c, &p, now) })
				}
			}
		}
	}
}

func (t *telemetry) keepPointLocked(c *telemetryClient, p *point, now time.Time) {
	if len(p.metric) > maxMetricName || len(p.attributes) > maxAttributes {
		t.leftOut.Add(1)
		return
	}
	labels := append(labelsOf(p.attributes), label{"metric", strings.Clone(labelText(p.metric))})
	slices.SortFunc(labels, compareLabels)
	var key strings.Builder
	for _, l := range labels {
		key.WriteString(l.name + "\x00" + l.value + "\x00")
	}
	s := c.series[key.String()]
	if s == nil {
		if len(c.series) >= maxClientSeries || t.mu.series >= t.maxSeries {
			t.leftOut.Add(1)
			return
		}
		s = &clientSeries{labels: labels}
		c.series[key.String()] = s
		t.mu.series++
	}
	if p.delta {
		s.value += p.value
	} else {
		s.value = p.value
	}
	s.rises, s.at = p.rises, now
}

// labelsOf are attributes as labels: those that have a text, each name once.
func labelsOf(attributes []*common.KeyValue) (out []label) {
	for _, a := range attributes[:min(len(attributes), maxAttributes)] {
		value, ok := textOfValue(a.GetValue())
		name := labelName(a.GetKey())
		if !ok || slices.Contains(ownLabels, name) || slices.ContainsFunc(out, func(l label) bool { return l.name == name }) {
			continue
		}
		out = append(out, label{name, cutLabel(value)})
	}
	slices.SortFunc(out, compareLabels)
	return out
}

// labelName is an attribute's name as Prometheus allows it: letters, digits and
// underscores, not beginning with a digit nor with two underscores.
func labelName(s string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, s[:min(len(s), maxShownID)])
	if name == "" || name[0] >= '0' && name[0] <= '9' || strings.HasPrefix(name, "__") {
		return "a_" + name
	}
	return name
}

// telemetry sends what clients have pushed.
func (s series) telemetry(t *telemetry, now time.Time) {
	for i := range t.results {
		s.count(metricPushes, t.results[i].Load(), pushResultNames[i])
	}
	s.count(metricPushLeftOut, t.leftOut.Load())
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expireLocked(now)
	s.count(metricPushClients, int64(len(t.mu.clients)))
	s.count(metricPushSeries, int64(t.mu.series))
	for at := t.mu.order.Front(); at != nil; at = at.Next() {
		c := at.Value.(*telemetryClient)
		if len(c.series) == 0 {
			continue // it was asked for nothing
		}
		own := []label{{"client_id", c.clientID}, {"client_instance_id", coord.IDText(c.id)}}
		s.labelled(metricPushInfo, 1, append([]label{{"client_software_name", c.software}, {"client_software_version", c.version}, {"client_source_address", c.address}}, own...), c.resource)
		for _, one := range c.series {
			m := metricPushValue
			if one.rises {
				m = metricPushTotal
			}
			s.labelled(m, one.value, own, one.labels)
		}
	}
}

// labelled sends a series whose labels are only known now.
func (s series) labelled(m *metric, v float64, lists ...[]label) {
	var names, values []string
	for _, list := range lists {
		for _, l := range list {
			names, values = append(names, l.name), append(values, l.value)
		}
	}
	s.out <- prometheus.MustNewConstMetric(prometheus.NewDesc(m.name, m.help, names, nil), m.kind.value(), v, values...)
}
