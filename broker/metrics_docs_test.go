package broker

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/engine/batch"
	"millrace/wire"
)

// dashboard is what we look at of a Grafana dashboard.
type dashboard struct {
	Panels []struct {
		ID      int
		Type    string
		Title   string
		Targets []struct{ Expr string }
	}
}

var (
	// selector is a metric's name, with its matchers if there are any.
	selector = regexp.MustCompile(`\b((?:kafka|millrace|go|process)_[a-z0-9_]+)(?:\{([^}]*)\})?`)
	matcher  = regexp.MustCompile(`^([a-z_]+)(=~|!=|=)"(.*)"$`)
)

// matches says whether a scraped series is one that the selector takes. The
// labels instance and job come with the scrape.
func matches(t *testing.T, series, name, matchers string) bool {
	t.Helper()
	have, labels, _ := strings.Cut(series, "{")
	if have != name {
		return false
	}
	for _, text := range strings.Split(matchers, ",") {
		if text == "" {
			continue
		}
		m := matcher.FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("matcher %q of %s: this test cannot read it", text, name)
		}
		if m[1] == "instance" || m[1] == "job" {
			continue
		}
		value := ""
		if _, after, ok := strings.Cut(","+strings.TrimSuffix(labels, "}"), ","+m[1]+`="`); ok {
			value, _, _ = strings.Cut(after, `"`)
		}
		var fits bool
		switch m[2] {
		case "=":
			fits = value == m[3]
		case "!=":
			fits = value != m[3]
		case "=~":
			fits = regexp.MustCompile("^(?:" + m[3] + ")$").MatchString(value)
		}
		if !fits {
			return false
		}
	}
	return true
}

// busyBroker is a broker that has seen some of everything.
func busyBroker(t *testing.T) *testBroker {
	b := startBroker(t, append(slices.Clone(quick), withAdmin)...)
	b.topic("t", 2)
	b.fill(0, 2, 10)
	c := b.consume(kgo.ClientID("reader"))
	b.eventually("the group reads", func() bool { return haveSeen(0, 2, 10, c) })
	b.produce(b.dial(), 9, "nowhere", 0, values(batch.None, "x"))
	b.pushMetrics()
	b.eventually("it has committed", func() bool {
		return b.scrape()[`kafka_consumergroup_current_offset{consumergroup="g",partition="0",topic="t"}`] == 10
	})
	return b
}

// pushMetrics subscribes to clients' metrics and pushes what a producer and a consumer
// would.
func (b *testBroker) pushMetrics() {
	b.t.Helper()
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	r := kmsg.NewIncrementalAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName = ofMetrics, "all"
	r.Configs = []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: "metrics", Value: kmsg.StringPtr("*")}}
	req.Resources = append(req.Resources, r)
	c := b.dial()
	if r := c.ask(req, 1).(*kmsg.IncrementalAlterConfigsResponse).Resources[0]; r.ErrorCode != 0 {
		b.t.Fatal(wire.ErrorName(r.ErrorCode))
	}
	got := c.ask(kmsg.NewPtrGetTelemetrySubscriptionsRequest(), 0).(*kmsg.GetTelemetrySubscriptionsResponse)
	push := kmsg.NewPtrPushTelemetryRequest()
	push.ClientInstanceID, push.SubscriptionID = got.ClientInstanceID, got.SubscriptionID
	sends(batch.Zstd,
		gaugeOf("org.apache.kafka.producer.request.latency.avg", 1.5), gaugeOf("org.apache.kafka.consumer.fetch.manager.records.lag.max", 3),
		sumOf("org.apache.kafka.producer.record.send.total", 10, deltas), sumOf("org.apache.kafka.consumer.fetch.manager.records.consumed.total", 10, deltas),
	)(push)
	if r := c.ask(push, 0).(*kmsg.PushTelemetryResponse); r.ErrorCode != 0 {
		b.t.Fatal(wire.ErrorName(r.ErrorCode))
	}
}

// Claim: every query of every panel of our dashboard has data.
// Method: a broker with traffic and a group; each selector in the JSON, with its
// matchers, must take at least one series of a scrape.
func TestDashboardPanelsHaveData(t *testing.T) {
	text, err := os.ReadFile("../docs/grafana-millrace.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	s := busyBroker(t).scrape()
	queries := 0
	ids := map[int]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("panel id %d is there twice", p.ID)
		}
		ids[p.ID] = true
		if p.Type == "row" {
			continue
		}
		if len(p.Targets) == 0 {
			t.Errorf("panel %q asks nothing", p.Title)
		}
		for _, target := range p.Targets {
			queries++
			found := selector.FindAllStringSubmatch(target.Expr, -1)
			if len(found) == 0 {
				t.Errorf("panel %q: %s names no metric", p.Title, target.Expr)
			}
			for _, sel := range found {
				any := false
				for series := range s {
					any = any || matches(t, series, sel[1], sel[2])
				}
				if !any {
					t.Errorf("panel %q: nothing for %s", p.Title, sel[0])
				}
			}
		}
	}
	if queries < 30 {
		t.Errorf("only %d queries", queries)
	}
}

// Claim: docs/metrics.md is what the table says, and the table is what is served:
// each of its metrics comes in a scrape of a busy broker, and no other does.
// Method: make the page anew and compare. MILLRACE_WRITE_DOCS=1 writes it.
func TestMetricsAreDocumented(t *testing.T) {
	const path = "../docs/metrics.md"
	page := metricsPage()
	if os.Getenv("MILLRACE_WRITE_DOCS") != "" {
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(path); err != nil || string(have) != page {
		t.Errorf("%s is not what metrics_table.go says (%v); MILLRACE_WRITE_DOCS=1 go test ./broker -run %s writes it", path, err, t.Name())
	}
	known := map[string]bool{}
	for _, m := range metricTable {
		if known[m.name] {
			t.Errorf("%s is defined twice", m.name)
		}
		known[m.name] = true
		if m.kind == counter != strings.HasSuffix(m.name, "_total") {
			t.Errorf("%s is a %s", m.name, m.kind)
		}
		if !strings.HasSuffix(m.help, ".") {
			t.Errorf("%s: %q is no sentence", m.name, m.help)
		}
	}
	b := busyBroker(t)
	served := map[string]bool{}
	_, text := b.get("/metrics")
	for _, line := range strings.Split(text, "\n") {
		fields := strings.Fields(line)
		if len(fields) != 4 || fields[1] != "TYPE" {
			continue
		}
		name, kind := fields[2], fields[3]
		served[name] = true
		if strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") {
			continue
		}
		if !known[name] {
			t.Errorf("%s is served and not in the table", name)
		}
		for _, m := range metricTable {
			if m.name == name && m.kind.String() != kind {
				t.Errorf("%s is served as %s", name, kind)
			}
		}
	}
	for name := range known {
		if !served[name] {
			t.Errorf("%s is in the table and not served", name)
		}
	}
}

// metricsPage is docs/metrics.md.
func metricsPage() string {
	var b strings.Builder
	b.WriteString(`# Metrics

Made from the table in ` + "`broker/metrics_table.go`" + `; a test compares. ` + "`admin.listener`" + ` serves them at ` + "`/metrics`" + ` for Prometheus;
` + "[grafana-millrace.json](grafana-millrace.json)" + ` is a dashboard of them. A scrape configuration:

` + "```yaml\nscrape_configs:\n  - job_name: millrace\n    static_configs: [{targets: ['127.0.0.1:9644']}]\n```" + `

Names that begin with ` + "`kafka_`" + ` are those that the JMX exporter's usual rules give Apache Kafka's own metrics, so that dashboards and
alerts go on working; ` + "`kafka_consumergroup_`" + ` is kafka_exporter's. Differences: times are histograms and not quantiles
(use ` + "`histogram_quantile`" + ` on ` + "`…ms_bucket`" + `; ` + "`…ms_count`" + ` is as in Kafka); there is one ` + "`request=\"Fetch\"`" + ` and no ` + "`FetchConsumer`" + `; times have the
request's version too. As in Kafka, the series of a topic metric without ` + "`topic`" + ` is the sum of all: add up either that one or the others.

How many series there are is bounded: by the partitions (four each), by the APIs and versions that we speak, by the groups'
partitions (three for each of the first ` + fmt.Sprint(maxLagSeries) + `), by ` + fmt.Sprint(maxClientVersions) + ` pairs of client id and API, and by
` + fmt.Sprint(maxTelemetrySeries) + ` series of clients' own metrics.

Clients push their metrics (KIP-714) once somebody subscribes to them, the Java client by itself, librdkafka with ` + "`enable.metrics.push`" + `:

` + "```\nmillrace config set client-metrics producers metrics=org.apache.kafka.producer. interval.ms=10000 match=client_id=app-.*\n```" + `

` + "`metrics`" + ` are beginnings of names, ` + "`*`" + ` for all (franz-go 1.22 knows beginnings only: ` + "`org.apache.kafka.`" + `); ` + "`match`" + ` is a list of patterns that must fit the whole of a client's
` + strings.Join(clientSelectors[:], ", ") + ` (regular expressions of Go: without look-ahead and back references).
The values come as ` + "`millrace_telemetry_value{metric=\"org.apache.kafka.producer.record.send.rate\", client_id=…}`" + ` with the client's own
attributes (such as ` + "`topic`" + `) as further labels; they go a minute after the client has gone, or three push intervals after they were last renewed.

`)
	section := ""
	for _, m := range metricTable {
		if s := sectionOf(m.name); s != section {
			section = s
			fmt.Fprintf(&b, "## %s\n\n| metric | kind | labels | meaning |\n|---|---|---|---|\n", s)
		}
		labels := strings.Join(m.labels, ", ")
		if m.total != nil {
			labels += " or none"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.name, m.kind, labels, m.help)
		if next := after(m); next == nil || sectionOf(next.name) != section {
			b.WriteString("\n")
		}
	}
	b.WriteString("## Go runtime and process\n\nThe standard collectors of Prometheus' Go client: `go_*` and `process_*`.\n")
	return b.String()
}

func after(m *metric) *metric {
	if i := slices.Index(metricTable, m); i+1 < len(metricTable) {
		return metricTable[i+1]
	}
	return nil
}

// sectionOf sorts the table, which is in the order of its sections.
func sectionOf(name string) string {
	has := func(prefixes ...string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
	}
	switch {
	case has("kafka_server_brokertopicmetrics"):
		return "Traffic"
	case has("millrace_telemetry"):
		return "What clients tell of themselves"
	case has("kafka_network", "millrace_client", "millrace_request", "kafka_server_fetchsession"):
		return "Requests"
	case has("kafka_server_socket", "millrace_connections"):
		return "Connections"
	case has("kafka_controller_kafkacontroller_global"):
		return "Logs and partitions"
	case has("kafka_controller", "millrace_controller", "millrace_coordination", "kafka_server_sessionexpire"):
		return "Coordination and the controller"
	case has("kafka_log", "kafka_server_replicamanager", "millrace_damaged", "millrace_pinned", "millrace_log", "millrace_io"):
		return "Logs and partitions"
	case has("millrace_journal"):
		return "Commit journal"
	case has("kafka_coordinator_group", "millrace_group", "kafka_consumergroup"):
		return "Groups"
	}
	return "Broker"
}

// Claim: a scrape tells more than the state only between the start's end and a
// stop's beginning: before and after, logs are being opened or closed.
func TestMetricsOutsideOfService(t *testing.T) {
	b := startBroker(t, withAdmin)
	b.health.ready.Store(false)
	s := b.scrape()
	s.expect(t, scraped{"kafka_server_kafkaserver_brokerstate": 1})
	s.lacks(t, "millrace_pinned_slices")
	b.health.ready.Store(true)
	begun := time.Now()
	b.halt()
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("the stop took %v", took)
	}
}
