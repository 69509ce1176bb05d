package broker

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/engine/batch"
	"millrace/wire"
)

// scraped is one answer of /metrics: series as text ("name{a="b"}") to value.
type scraped map[string]float64

func (b *testBroker) get(path string) (code int, body string) {
	b.t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + b.Ready().Admin + path)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func (b *testBroker) scrape() scraped {
	b.t.Helper()
	code, body := b.get("/metrics")
	if code != 200 {
		b.t.Fatalf("/metrics: %d: %s", code, body)
	}
	s := scraped{}
	for lines := bufio.NewScanner(strings.NewReader(body)); lines.Scan(); {
		line := lines.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		v, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			b.t.Fatalf("%q: %v", line, err)
		}
		s[line[:at]] = v
	}
	if n := b.log.count("metrics: "); n > 0 {
		b.t.Errorf("%d errors while gathering", n)
	}
	return s
}

// names are those of metrics, with the endings that histograms add.
func (s scraped) names() []string {
	names := map[string]bool{}
	for series := range s {
		name, _, _ := strings.Cut(series, "{")
		names[name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

func (s scraped) expect(t testing.TB, want scraped) {
	t.Helper()
	for _, series := range slices.Sorted(maps.Keys(want)) {
		if got, ok := s[series]; !ok || got != want[series] {
			t.Errorf("%s: %v (there: %v), want %v", series, got, ok, want[series])
		}
	}
}

// scrapeUntil scrapes until all that is wanted is there: a connection counts
// what it has answered a moment after the client has the answer.
func (b *testBroker) scrapeUntil(want scraped) scraped {
	b.t.Helper()
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		s, all := b.scrape(), true
		for series, v := range want {
			got, ok := s[series]
			all = all && ok && got == v
		}
		if all || time.Now().After(deadline) {
			s.expect(b.t, want)
			return s
		}
	}
}

func (s scraped) lacks(t testing.TB, prefix string) {
	t.Helper()
	for series := range s {
		if strings.HasPrefix(series, prefix) {
			t.Errorf("%s is there", series)
		}
	}
}

const withAdmin = "admin.listener=127.0.0.1:0"

// Claim: what went in and out is counted exactly, by topic and in all, also for
// requests that share a burst; what is refused is counted as that.
// Method: known requests, pipelined ones among them; one scrape after the answers.
func TestMetricsCountExactly(t *testing.T) {
	b := startBroker(t, withAdmin)
	b.topic("t", 2)
	b.topic("u", 1)
	records := values(batch.None, "one", "two", "three")
	c := b.dial()
	var burst [][]byte
	for i := range 10 {
		burst = append(burst, c.frame(b.produceTo(9, -1, "t", int32(i%2), records), 9))
	}
	c.write(burst...)
	for range burst {
		c.read()
	}
	b.produce(c, 8, "u", 0, records)
	if p := b.produce(c, 9, "nowhere", 0, records); p.ErrorCode != wire.ErrUnknownTopicOrPartition {
		t.Fatal(p.ErrorCode)
	}
	b.produce(c, 9, "u", 0, records[:len(records)-1]) // cut off
	c.fetch(b.fetchOf(12, want{topic: "t"}, want{topic: "t", partition: 1}), 12)
	c.fetch(b.fetchOf(12, want{topic: "u", offset: 99}), 12)

	size := float64(len(records))
	s := b.scrapeUntil(scraped{
		`kafka_server_brokertopicmetrics_messagesin_total`:                                                33,
		`kafka_server_brokertopicmetrics_messagesin_total{topic="t"}`:                                     30,
		`kafka_server_brokertopicmetrics_messagesin_total{topic="u"}`:                                     3,
		`kafka_server_brokertopicmetrics_bytesin_total`:                                                   11 * size,
		`kafka_server_brokertopicmetrics_bytesin_total{topic="t"}`:                                        10 * size,
		`kafka_server_brokertopicmetrics_bytesout_total`:                                                  10 * size,
		`kafka_server_brokertopicmetrics_bytesout_total{topic="t"}`:                                       10 * size,
		`kafka_server_brokertopicmetrics_totalproducerequests_total`:                                      13,
		`kafka_server_brokertopicmetrics_failedproducerequests_total`:                                     2,
		`kafka_server_brokertopicmetrics_failedproducerequests_total{topic="u"}`:                          1,
		`kafka_server_brokertopicmetrics_totalfetchrequests_total{topic="t"}`:                             2,
		`kafka_server_brokertopicmetrics_failedfetchrequests_total{topic="u"}`:                            1,
		`kafka_network_requestmetrics_requests_total{request="Produce",version="9"}`:                      12,
		`kafka_network_requestmetrics_requests_total{request="Produce",version="8"}`:                      1,
		`kafka_network_requestmetrics_requests_total{request="Fetch",version="12"}`:                       2,
		`kafka_network_requestmetrics_totaltimems_count{request="Produce",version="9"}`:                   12,
		`kafka_network_requestmetrics_totaltimems_bucket{request="Produce",version="9",le="+Inf"}`:        12,
		`kafka_network_requestmetrics_errors_total{error="UNKNOWN_TOPIC_OR_PARTITION",request="Produce"}`: 1,
		`kafka_network_requestmetrics_errors_total{error="OFFSET_OUT_OF_RANGE",request="Fetch"}`:          1,
		`kafka_log_log_logendoffset{partition="1",topic="t"}`:                                             15,
		`kafka_log_log_size{partition="1",topic="t"}`:                                                     5 * size,
		`kafka_log_log_numlogsegments{partition="0",topic="u"}`:                                           1,
		`kafka_server_replicamanager_partitioncount`:                                                      3,
		`kafka_server_replicamanager_leadercount`:                                                         3,
		`kafka_controller_kafkacontroller_globaltopiccount`:                                               2,
		`kafka_server_kafkaserver_brokerstate`:                                                            3,
		`millrace_client_oldest_version{client_id="test",request="Produce"}`:                              8,
		`millrace_log_appends_total`:                                                                      11,
	})
	if writes := s["millrace_log_writes_total"]; writes < 3 || writes > 11 {
		t.Errorf("%v writes of 11 appends", writes)
	}
	if n := s[`kafka_server_socket_server_metrics_connection_count{listener="PLAINTEXT"}`]; n < 1 {
		t.Errorf("%v connections", n)
	}
	sum := func(phase string) float64 {
		return s[fmt.Sprintf(`kafka_network_requestmetrics_%stimems_sum{request="Produce",version="9"}`, phase)]
	}
	parts := sum("requestqueue") + sum("local") + sum("remote") + sum("responsesend")
	if total := sum("total"); total <= 0 || math.Abs(total-parts) > total/1000 {
		t.Errorf("a total of %v ms, its parts have %v", total, parts)
	}

	b.delete("t")
	s = b.scrapeUntil(scraped{`kafka_server_brokertopicmetrics_messagesin_total`: 33})
	s.lacks(t, `kafka_server_brokertopicmetrics_messagesin_total{topic="t"}`)
	s.lacks(t, `kafka_log_log_size{partition="0",topic="t"}`)
}

// Claim: error codes of answers that go through kmsg are counted at any depth.
func TestMetricsCountErrorsOfAnswers(t *testing.T) {
	b := startBroker(t, withAdmin)
	b.topic("t", 1)
	req := kmsg.NewPtrCreateTopicsRequest()
	for _, name := range []string{"t", "t2", "bad name"} {
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, 1, 1
		req.Topics = append(req.Topics, topic)
	}
	b.dial().ask(req, 5)
	heartbeat := kmsg.NewPtrHeartbeatRequest()
	heartbeat.Group = "nobody"
	code := b.dial().ask(heartbeat, 3).(*kmsg.HeartbeatResponse).ErrorCode
	b.scrapeUntil(scraped{
		`kafka_network_requestmetrics_errors_total{error="TOPIC_ALREADY_EXISTS",request="CreateTopics"}`:               1,
		`kafka_network_requestmetrics_errors_total{error="INVALID_TOPIC_EXCEPTION",request="CreateTopics"}`:            1,
		fmt.Sprintf(`kafka_network_requestmetrics_errors_total{error="%s",request="Heartbeat"}`, wire.ErrorName(code)): 1,
	})
}

// commit commits one offset of t-0 for a group.
func (b *testBroker) commit(group, topic string, offset int64) {
	b.t.Helper()
	commit := kadm.Offsets{}
	commit.AddOffset(topic, 0, offset, -1)
	if err := b.admin().CommitAllOffsets(context.Background(), group, commit); err != nil {
		b.t.Fatal(err)
	}
}

// A05: lag from the broker itself, right and never negative.
// Claim: the lag is what ListOffsets says less the commit; absent where nothing
// was committed; 0, not below, for a topic that was made anew; in seconds it is
// the age of the next record, and 0 when all is read.
// Method: records of known age, commits, a topic deleted and made again.
func TestMetricsTellLag(t *testing.T) {
	b := startBroker(t, append(slices.Clone(quick), withAdmin)...)
	b.topic("t", 2)
	old := batch.NewBuilder(batch.None, 0)
	begun := time.Now().Add(-100 * time.Second)
	if err := old.Add(batch.Record{Timestamp: begun.UnixMilli(), Value: []byte("old")}); err != nil {
		t.Fatal(err)
	}
	b.mustProduce("t", 0, values(batch.None, "first"))
	b.mustProduce("t", 0, slices.Clone(old.Bytes()))
	b.mustProduce("t", 0, values(batch.None, "new", "newer"))
	b.mustProduce("t", 1, values(batch.None, "unread"))

	b.commit("g", "t", 1)
	for range 2 { // the second finds the time where the first has left it
		s := b.scrape()
		s.expect(t, scraped{
			`kafka_consumergroup_lag{consumergroup="g",partition="0",topic="t"}`:            3,
			`kafka_consumergroup_current_offset{consumergroup="g",partition="0",topic="t"}`: 1,
			`kafka_consumergroup_lag_sum{consumergroup="g",topic="t"}`:                      3,
			`kafka_coordinator_group_groupmetadatamanager_numgroups`:                        1,
			`kafka_coordinator_group_groupmetadatamanager_numgroupsempty`:                   1,
			`millrace_group_state{consumergroup="g",state="Empty",type="classic"}`:          1,
			`millrace_group_lag_left_out`:                                                   0,
		})
		s.lacks(t, `kafka_consumergroup_lag{consumergroup="g",partition="1"`)
		seconds := s[`kafka_consumergroup_lag_seconds{consumergroup="g",partition="0",topic="t"}`]
		if least := time.Since(begun).Seconds() - 10; seconds < least || seconds > least+11 {
			t.Errorf("%v s behind, the record is %v old", seconds, time.Since(begun))
		}
	}
	told, err := b.admin().Lag(context.Background(), "g")
	if err != nil {
		t.Fatal(err)
	}
	if l, ok := told["g"].Lag.Lookup("t", 0); !ok || l.Lag != 3 {
		t.Errorf("a client computes %+v", l)
	}

	b.commit("g", "t", 4)
	b.scrapeUntil(scraped{
		`kafka_consumergroup_lag{consumergroup="g",partition="0",topic="t"}`:         0,
		`kafka_consumergroup_lag_seconds{consumergroup="g",partition="0",topic="t"}`: 0,
	})

	b.delete("t")
	b.topic("t", 1)
	b.scrape().lacks(t, "kafka_consumergroup_lag{")
	b.mustProduce("t", 0, values(batch.None, "again"))
	b.commit("g", "t", 7) // beyond the end
	b.scrapeUntil(scraped{
		`kafka_consumergroup_lag{consumergroup="g",partition="0",topic="t"}`:         0,
		`kafka_consumergroup_lag_seconds{consumergroup="g",partition="0",topic="t"}`: 0,
	})
}

// Claim: where groups have committed in more partitions than we tell one by one,
// the sums are whole, and how many were left out is told.
// Method: a collector that tells one of two.
func TestMetricsOfLagAreBounded(t *testing.T) {
	b := startBroker(t, append(slices.Clone(quick), withAdmin)...)
	b.topic("t", 2)
	b.fill(0, 2, 5)
	commit := kadm.Offsets{}
	commit.AddOffset("t", 0, 1, -1)
	commit.AddOffset("t", 1, 2, -1)
	if err := b.admin().CommitAllOffsets(context.Background(), "g", commit); err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(&collector{b: b.Broker, ready: func() bool { return true }, lagSeries: 1})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			got[f.GetName()] += m.GetGauge().GetValue()
		}
		if name := f.GetName(); name == "kafka_consumergroup_lag" && len(f.GetMetric()) != 1 {
			t.Errorf("%d series", len(f.GetMetric()))
		}
	}
	if got["kafka_consumergroup_lag_sum"] != 7 || got["millrace_group_lag_left_out"] != 1 {
		t.Errorf("sum %v, left out %v", got["kafka_consumergroup_lag_sum"], got["millrace_group_lag_left_out"])
	}
}

// A16: errors that say why.
// Claim: the text that a client is told is in the log too, with its client id
// and address, for Produce and for the other APIs.
func TestRefusalsAreLogged(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1, "max.message.bytes=100")
	c := b.dial()
	p := b.produce(c, 9, "t", 0, sized(500))
	if p.ErrorMessage == nil {
		t.Fatal("the client is told nothing")
	}
	line := func(why string) string {
		for _, line := range strings.Split(b.log.String(), "\n") {
			if strings.Contains(line, "msg=refused") && strings.Contains(line, why) {
				return line
			}
		}
		t.Fatalf("no line says %q", why)
		return ""
	}
	for _, part := range []string{"client_id=test", "client=" + c.nc.LocalAddr().String(), "topic=t", "api=Produce", "code=MESSAGE_TOO_LARGE"} {
		if l := line(*p.ErrorMessage); !strings.Contains(l, part) {
			t.Errorf("%s is not in %s", part, l)
		}
	}

	b = startBroker(t)
	req := kmsg.NewPtrCreateTopicsRequest()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = "bad name", 1, 1
	req.Topics = append(req.Topics, topic)
	c = b.dial()
	told := c.ask(req, 5).(*kmsg.CreateTopicsResponse).Topics[0].ErrorMessage
	if told == nil {
		t.Fatal("the client is told nothing")
	}
	for _, part := range []string{"client_id=test", "client=" + c.nc.LocalAddr().String(), "api=CreateTopics"} {
		if l := line("bad name"); !strings.Contains(l, part) {
			t.Errorf("%s is not in %s", part, l)
		}
	}
}

// A11, with hostile clients: names that are no text, and more of them than we keep.
// Claim: a scrape stays whole, and the series are bounded; the lowest version is told.
func TestMetricsOfStrangeClients(t *testing.T) {
	b := startBroker(t, append(slices.Clone(quick), withAdmin)...)
	b.topic("t", 1)
	b.commit("a\xff", "t", 0)
	b.commit("a\xfe", "t", 0) // the same to a scraper
	c := b.dial()
	ask := func(client string, version int16) {
		req := kmsg.NewPtrMetadataRequest()
		req.SetVersion(version)
		dst, mark := wire.BeginFrame(nil)
		dst = wire.AppendRequestHeader(dst, wire.Header{Key: req.Key(), Version: version, ClientID: client, HasClientID: true})
		c.write(wire.EndFrame(append(dst, req.AppendTo(nil)...), mark))
		c.read()
	}
	ask("b\xff\"\n", 9)
	ask("b\xff\"\n", 4)
	ask("b\xff\"\n", 7)
	s := b.scrape()
	s.expect(t, scraped{
		"millrace_client_oldest_version{client_id=\"b\uFFFD\\\"\\n\",request=\"Metadata\"}": 4,
	})
	for i := range 2 * maxClientVersions {
		ask(fmt.Sprint("made up ", i, strings.Repeat("é", 200)), 5)
	}
	n := 0
	for series := range b.scrape() {
		if strings.HasPrefix(series, "millrace_client_oldest_version{") {
			n++
		}
	}
	if n != maxClientVersions {
		t.Errorf("%d series, the bound is %d", n, maxClientVersions)
	}
}

// Claim: our tables have room for every API and every code.
func TestMetersHaveRoom(t *testing.T) {
	for _, api := range wire.APIs {
		if api.Key >= maxKeys || api.Max > math.MaxInt8 {
			t.Errorf("%s: key %d, version %d", api.Name, api.Key, api.Max)
		}
	}
	unknown := wire.ErrorName(maxCode + 1)
	for code := int16(maxCode + 1); code < 1000; code++ {
		if name := wire.ErrorName(code); strings.Map(letters, name) != strings.Map(letters, unknown) {
			t.Errorf("code %d is %s, above maxCode", code, name)
		}
	}
	for d := time.Duration(0); d < time.Minute; d = d*5/4 + time.Microsecond/2 {
		i := bucketOf(d)
		if i < timeBuckets-1 && d >= bucketEnd(i) || i > 0 && d < bucketEnd(i-1) {
			t.Errorf("%v is in bucket %d, which ends at %v", d, i, bucketEnd(i))
		}
	}
}

func letters(r rune) rune {
	if r >= '0' && r <= '9' {
		return -1
	}
	return r
}

// Claim: counting allocates nothing per request.
// Method: one burst after the other of a connection's meter, without the rest.
func TestMetersAllocateNothing(t *testing.T) {
	burst, fetch := meteredBursts(t, 3)
	if n := testing.AllocsPerRun(100, func() { burst(); fetch() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Claim: scrapes may run while traffic does, while topics come and go, and
// while the broker stops.
// Method: all at once; the race detector and goleak judge.
func TestMetricsWhileAllMoves(t *testing.T) {
	b := startBroker(t, append(slices.Clone(quick), withAdmin)...)
	b.topic("t", 4)
	stop := make(chan struct{})
	var all sync.WaitGroup
	for i := range 2 {
		c := b.dial()
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				b.produce(c, 9, "t", int32(i), values(batch.None, "x"))
				c.fetch(b.fetchOf(12, want{topic: "t", partition: int32(i)}), 12)
			}
		})
	}
	b.commit("g", "t", 0)
	for i := range 10 {
		b.topic(fmt.Sprint("u", i), 1)
		b.mustProduce(fmt.Sprint("u", i), 0, values(batch.None, "x"))
		b.scrape()
		b.delete(fmt.Sprint("u", i))
	}
	close(stop)
	all.Wait()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	address := b.Ready().Admin
	all.Go(func() {
		for range 200 {
			if resp, err := client.Get("http://" + address + "/metrics"); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		}
	})
	b.halt()
	all.Wait()
}

// Claim: profiles are served where the key says so, and nowhere else.
func TestProfilesOnlyOnRequest(t *testing.T) {
	b := startBroker(t, withAdmin)
	if code, _ := b.get("/debug/pprof/heap"); code != 404 {
		t.Errorf("without the key: %d", code)
	}
	b = startBroker(t, withAdmin, "millrace.admin.pprof=true")
	for path, want := range map[string]int{"heap": 200, "goroutine?debug=1": 200, "profile?seconds=0.1": 200, "trace?seconds=0.1": 200, "nothing": 404} {
		if code, body := b.get("/debug/pprof/" + path); code != want || code == 200 && len(body) < 100 {
			t.Errorf("%s: %d, %d bytes", path, code, len(body))
		}
	}
}
