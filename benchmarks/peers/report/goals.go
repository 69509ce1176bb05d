package report

import (
	"fmt"
	"regexp"
	"strings"
)

// goal is what one of our modes has to reach beside a peer in a row.
type goal struct {
	section, row string // row: a regular expression for the whole name
	ours, theirs string
	metric       string
	least        bool    // the ratio ours/theirs must be at least the factor; else at most
	factor       float64 // for absolute goals: the most that ours may be, in the metric's unit
	absolute     bool
	unset        bool // no goal was set for the row: a win is asked for
}

func (g goal) String() string {
	switch {
	case g.absolute:
		return fmt.Sprintf("≤ %g %s", g.factor, map[string]string{Seconds: "s", RSS: "MB"}[g.metric])
	case g.least:
		return fmt.Sprintf("≥ %.3g ×", g.factor)
	}
	return fmt.Sprintf("≤ %.3g ×", g.factor)
}

// goals are those that were set before anything was built.
func goals() []goal {
	var out []goal
	// Page cache and synced against Kafka as it comes (requests/s, and processor time for the first), and synced against a flush per message.
	add := func(section, row, ours, theirs, metric string, least bool, factor float64) {
		if factor > 0 {
			out = append(out, goal{section: section, row: row, ours: ours, theirs: theirs, metric: metric, least: least, factor: factor})
		}
	}
	for _, g := range []struct {
		row                          string
		rate, cpu, synced, overFlush float64
	}{
		{"1 × 100 B, 8 × 1", 6, 1. / 8, 1.6, 4},
		{"1 × 100 B, 8 × 5", 6, 1. / 8, 2.5, 8},
		{"100 × 100 B, 4 × 5", 3, 1. / 3, 1.5, 6},
		{"16 × 1 KiB, 4 × 5(, acks=all)?", 3, 1. / 3, 1.5, 6},
		{"1000 × 100 B, 4 × 5", 2.2, 0.4, 1.1, 3},
		{"900 × 1 KiB, 4 × 3", 1.1, 0.8, 1, 1.3},
		{"100 partitions × 1 KiB, 4 × 2", 2.5, 1. / 3, 1.6, 40},
		{"1 × 100 B, one connection", 3.5, 0, 0.8, 2.3},
		{"1 × 100 B, 500 × 1", 2.5, 0, 1.8, 10},
	} {
		add("limits", g.row, PageCache, Kafka, PerSecond, true, g.rate)
		add("limits", g.row, PageCache, Kafka, CPURequest, false, g.cpu)
		add("limits", g.row, Synced, Kafka, PerSecond, true, g.synced)
		add("durable", g.row, Synced, KafkaFlush, PerSecond, true, g.overFlush)
	}
	add("limits", "1 × 100 B, 500 × 1", PageCache, Kafka, P99, false, 0.5)
	open := "open loop 2000/s of 10 × 100 B"
	add("limits", open, PageCache, Kafka, P99, false, 0.5)
	add("limits", open, PageCache, Kafka, CPURequest, false, 1./3)
	add("limits", open, Synced, Kafka, P99, false, 1.2)
	add("durable", open, Synced, KafkaFlush, P99, false, 1./3)
	for _, ours := range []string{PageCache, Synced} {
		for _, f := range []struct {
			row       string
			rate, cpu float64
		}{{"fetch 1 MiB", 2, 0.4}, {"fetch 64 KiB", 3.5, 0.2}, {"fetch 20 × 16 KiB", 1.5, 0.65}} {
			add("limits", f.row, ours, Kafka, MBps, true, f.rate)
			add("limits", f.row, ours, Kafka, CPUGB, false, f.cpu)
		}
	}
	add("tools", "Kafka's producer, default settings, 100 B", PageCache, Kafka, CPUMillion, false, 1./4)
	add("tools", "Kafka's producer, default settings, 100 B", Synced, Kafka, CPUMillion, false, 1./3)
	add("start", "empty folder: start to first ack", Synced, Kafka, Seconds, false, 1./20)
	add("start", "memory, idle", Synced, Kafka, RSS, false, 1./12)
	for _, what := range []string{"clean stop", "start to first ack", "start after kill -9 to first ack"} {
		out = append(out, goal{section: "partitions", row: "5000 partitions: " + what, ours: Synced, theirs: Kafka, metric: Seconds, factor: 1, absolute: true})
	}
	for _, ours := range []string{Synced, PageCache} {
		out = append(out, goal{section: "recovery", row: ".* GB, kill -9, start to first ack", ours: ours, theirs: Kafka, metric: Seconds, factor: 1, absolute: true})
	}
	return out
}

// pair is a comparison that is fair: like with like, or our stricter default with a peer's laxer one.
type pair struct{ ours, theirs string }

func pairs(section string) []pair {
	switch section {
	case "limits":
		return []pair{{PageCache, Kafka}, {Synced, Kafka}, {PageCache, KafkaTuned}}
	case "durable":
		return []pair{{Synced, KafkaFlush}}
	case "start":
		return []pair{{Synced, Kafka}, {Synced, KafkaTuned}, {Synced, NATS}, {Synced, Redis}, {Synced, RabbitMQ}, {Synced, Jafka}}
	case "others":
		return []pair{{PageCache, Kafka}, {Synced, Kafka}, {PageCache, NATS}, {Synced, NATSSynced}, {PageCache, Redis}, {Synced, RedisSynced}, {PageCache, RabbitMQ}, {PageCache, Jafka}}
	}
	return []pair{{PageCache, Kafka}, {Synced, Kafka}}
}

// Verdict is one comparison, held against its goal.
type Verdict struct {
	Section, Row, Ours, Theirs string
	Metric                     string
	Mine, Peer, Ratio          float64 // medians, and mine/peer
	Goal                       string
	Met                        bool
	Not                        string // why the peer, or we, have no figure; the others are 0 then
	Unset                      bool
}

func (v Verdict) key() string {
	return strings.Join([]string{v.Section, v.Row, v.Ours + " against " + v.Theirs, v.Metric}, " | ")
}

// Verdicts holds a section's rows against the goals; where none was set, the main figure must not be worse.
func Verdicts(section string, s *Section) []Verdict {
	var out []Verdict
	for _, r := range s.Rows {
		for _, p := range pairs(section) {
			if !r.has(p.ours) || !r.has(p.theirs) {
				continue
			}
			for _, g := range goalsOf(section, r, p) {
				out = append(out, r.judge(section, g))
			}
		}
	}
	return out
}

func (r *Row) has(target string) bool {
	for _, f := range r.Figures {
		if f.Target == target {
			return true
		}
	}
	return false
}

var allGoals = goals()

func goalsOf(section string, r *Row, p pair) []goal {
	var out []goal
	for _, g := range allGoals {
		if g.section == section && g.ours == p.ours && g.theirs == p.theirs && regexp.MustCompile("^(?:"+g.row+")$").MatchString(r.Name) {
			out = append(out, g)
		}
	}
	if len(out) == 0 {
		metric, least := r.main()
		out = append(out, goal{section: section, row: r.Name, ours: p.ours, theirs: p.theirs, metric: metric, least: least, factor: 1, unset: true})
	}
	return out
}

// main is the figure that a row is about, and whether more of it is better.
func (r *Row) main() (metric string, more bool) {
	if fixedRate.MatchString(r.Name) {
		return P99, false
	}
	for _, m := range []string{Seconds, PerSecond, MBps, RSS} {
		for _, f := range r.Figures {
			if len(f.Values[m]) > 0 {
				return m, m == PerSecond || m == MBps
			}
		}
	}
	return PerSecond, true
}

// fixedRate are rows whose rate is given, so that their latency is what counts.
var fixedRate = regexp.MustCompile(`open loop|messages/s|^produce \d+/s|half of its own maximum`)

func (r *Row) judge(section string, g goal) Verdict {
	v := Verdict{Section: section, Row: r.Name, Ours: g.ours, Theirs: g.theirs, Metric: g.metric, Goal: g.String(), Unset: g.unset}
	mine, _, _, have := r.Median(g.ours, g.metric)
	peer, _, _, peerHas := r.Median(g.theirs, g.metric)
	v.Mine, v.Peer = mine, peer
	if peerHas && peer > 0 {
		v.Ratio = mine / peer
	}
	switch {
	case !have:
		v.Not = "no figure of ours: " + r.not(g.ours)
	case g.absolute:
		v.Met = mine <= g.factor
	case !peerHas:
		v.Not = "no figure of theirs: " + r.not(g.theirs)
	case g.least:
		v.Met = v.Ratio >= g.factor
	default:
		v.Met = v.Ratio <= g.factor
	}
	return v
}

func (r *Row) not(target string) string {
	for _, f := range r.Figures {
		if f.Target == target && f.Not != "" {
			return f.Not
		}
	}
	return "not measured"
}
