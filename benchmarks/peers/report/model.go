// Package report keeps the figures of benchmarks/peers and writes them down: tables, plots, and the page that holds them against
// the goals.
package report

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
)

// Targets are the names under which systems appear, in the order of every table.
const (
	Synced      = "millrace"            // its default: an ack means on disk
	PageCache   = "millrace page-cache" // millrace.durability=page-cache: Kafka's meaning of an ack
	Kafka       = "kafka"
	KafkaTuned  = "kafka tuned"
	KafkaFlush  = "kafka flush=1" // log.flush.interval.messages=1
	NATS        = "nats jetstream"
	NATSSynced  = "nats sync=always"
	Redis       = "redis everysec"
	RedisSynced = "redis always"
	RabbitMQ    = "rabbitmq streams"
	Jafka       = "jafka"
	ZooKeeper   = "zookeeper" // benchmarks/coordination
)

var targetOrder = []string{Synced, PageCache, Kafka, KafkaTuned, KafkaFlush, NATS, NATSSynced, Redis, RedisSynced, RabbitMQ, Jafka, ZooKeeper}

// Metrics are the names of values in a figure; each has its unit in it.
const (
	PerSecond  = "per_second"         // requests, messages or records a second: the row's name says which
	MBps       = "mb_per_second"      // of 10^6 bytes
	P50        = "p50_us"             // µs
	P99        = "p99_us"             //
	P999       = "p999_us"            //
	CPURequest = "cpu_us_per_request" // processor time of the broker
	CPUMillion = "cpu_s_per_million_records"
	CPUGB      = "cpu_s_per_gb"
	RSS        = "rss_mb"
	Seconds    = "seconds"
)

type metric struct{ name, label, format string }

var metricOrder = []metric{{PerSecond, "per second", "%.0f"}, {MBps, "MB/s", "%.1f"}, {Seconds, "seconds", "%.3f"}, {P50, "p50 µs", "%.0f"}, {P99, "p99 µs", "%.0f"},
	{P999, "p99.9 µs", "%.0f"}, {CPURequest, "broker CPU µs/request", "%.1f"}, {CPUMillion, "broker CPU s/M records", "%.2f"}, {CPUGB, "broker CPU s/GB", "%.2f"}, {RSS, "memory MB", "%.1f"}}

// Values is one measurement, by metric.
type Values map[string]float64

// Figure is what one system did in one row.
type Figure struct {
	Target string               `json:"target"`
	Not    string               `json:"not,omitempty"`    // why there is no value, or not one for each round
	Values map[string][]float64 `json:"values,omitempty"` // by metric, one for each round
}

// Row is one kind of load on several systems.
type Row struct {
	Name    string    `json:"name"`
	Figures []*Figure `json:"figures"`
}

// Section is what one part of the harness measured in one run.
type Section struct {
	When     string            `json:"when"`
	Machine  string            `json:"machine"`
	Versions map[string]string `json:"versions"`
	Method   string            `json:"method"`
	Rounds   int               `json:"rounds"`
	Duration string            `json:"duration"`
	Took     string            `json:"took"`
	Forced   bool              `json:"forced,omitempty"` // the guard was overridden
	Notes    []string          `json:"notes,omitempty"`  // what went wrong or has to be known
	Rows     []*Row            `json:"rows"`
}

// File is everything kept in one JSON file: the newest figures of each section.
type File struct {
	Sections map[string]*Section `json:"sections"`
}

// Read gives the file's content; one that is not there is empty.
func Read(path string) (*File, error) {
	f := &File{Sections: map[string]*Section{}}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, f); err != nil {
		return nil, err
	}
	return f, nil
}

// Write replaces the file.
func (f *File) Write(path string) error {
	b, err := json.MarshalIndent(f, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}

// Row finds the section's row of that name or adds it.
func (s *Section) Row(name string) *Row {
	for _, r := range s.Rows {
		if r.Name == name {
			return r
		}
	}
	r := &Row{Name: name}
	s.Rows = append(s.Rows, r)
	return r
}

// figure finds the row's figure of a target or adds it, in the order of all tables.
func (r *Row) figure(target string) *Figure {
	for _, f := range r.Figures {
		if f.Target == target {
			return f
		}
	}
	f := &Figure{Target: target, Values: map[string][]float64{}}
	r.Figures = append(r.Figures, f)
	slices.SortStableFunc(r.Figures, func(a, b *Figure) int {
		return slices.Index(targetOrder, a.Target) - slices.Index(targetOrder, b.Target)
	})
	return f
}

// Add keeps one round's values.
func (r *Row) Add(target string, v Values) {
	f := r.figure(target)
	for k, x := range v {
		f.Values[k] = append(f.Values[k], x)
	}
}

// Not says why a target has no value, or lost a round.
func (r *Row) Not(target, why string) { r.figure(target).Not = why }

// Median is the middle of a target's rounds of one metric, with the lowest and the highest; false where there is none.
func (r *Row) Median(target, metric string) (mid, low, high float64, ok bool) {
	for _, f := range r.Figures {
		if f.Target == target && len(f.Values[metric]) > 0 {
			v := slices.Sorted(slices.Values(f.Values[metric]))
			mid = v[len(v)/2]
			if len(v)%2 == 0 {
				mid = (v[len(v)/2-1] + mid) / 2
			}
			return mid, v[0], v[len(v)-1], true
		}
	}
	return 0, 0, 0, false
}
