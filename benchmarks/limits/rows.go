package main

import (
	"fmt"

	"millrace/benchmarks/load"
)

// row is one kind of load: the same prepared frames go to every target.
type row struct {
	load.Row
	name    string
	modes   []string
	targets map[string]target // by mode
	against string            // what "ratio" means when it is not requests/s over the toy's
}

// target is the fraction of the toy's requests/s that DESIGN.md asks for.
type target struct{ must, aim float64 }

const (
	echo      = "echo"
	pageCache = "page-cache"
	synced    = "sync"       // with the commit journal
	syncFiles = "sync-files" // journal off: files synced in rounds
)

func produceModes() []string { return []string{pageCache, synced, syncFiles} }

// rows are those of ANCHORS.md, so that the same ones run against Apache Kafka, plus the ones DESIGN.md sets targets for.
func rows() []row {
	pc := func(must, aim float64) map[string]target { return map[string]target{pageCache: {must, aim}} }
	p := func(name string, records, size, parts, conns, flight int, acks int16, t map[string]target) row {
		return row{Row: load.Row{Records: records, Size: size, Partitions: parts, Connections: conns, InFlight: flight, Acks: acks},
			name: name, modes: produceModes(), targets: t}
	}
	small := map[string]target{pageCache: {0.55, 0.75}}
	all := []row{
		p("1 × 100 B, 1 conn × 1", 1, 100, 1, 1, 1, 1, nil),
		p("1 × 100 B, 8 × 1", 1, 100, 1, 8, 1, 1, small),
		p("1 × 100 B, 8 × 5", 1, 100, 1, 8, 5, 1, small),
		p("1 × 100 B, 8 × 5, acks=all", 1, 100, 1, 8, 5, -1, small),
		p("1 × 100 B, 64 × 1", 1, 100, 1, 64, 1, 1, map[string]target{synced: {0.60, 0.80}}),
		p("1 × 100 B, 500 × 1", 1, 100, 1, 500, 1, 1, nil),
		p("1 × 100 B, 1000 × 1", 1, 100, 1, 1000, 1, 1, nil),
		p("10 × 100 B, 4 × 5", 10, 100, 1, 4, 5, 1, nil),
		p("100 × 100 B, 4 × 5", 100, 100, 1, 4, 5, 1, pc(0.70, 0.85)),
		p("16 × 1 KiB, 4 × 5", 16, 1024, 1, 4, 5, 1, pc(0.70, 0.85)),
		p("16 × 1 KiB, 4 × 5, acks=all", 16, 1024, 1, 4, 5, -1, pc(0.70, 0.85)),
		p("1000 × 100 B, 4 × 5", 1000, 100, 1, 4, 5, 1, pc(0.80, 1.0)),
		p("900 × 1 KiB, 4 × 3", 900, 1024, 1, 4, 3, 1, pc(0.85, 0.95)),
		p("900 × 1 KiB, 1 × 5", 900, 1024, 1, 1, 5, 1, pc(0.85, 0.95)),
		p("100 partitions × 1 KiB, 4 × 2", 1, 1024, 100, 4, 2, 1, pc(0.60, 0.80)),
		p("100 partitions × 1 KiB, 64 × 1", 1, 1024, 100, 64, 1, 1, map[string]target{synced: {0.75, 0.90}}),
	}
	open := p("open loop 2000/s of 10 × 100 B, 8 conns", 10, 100, 1, 8, 64, 1, nil)
	open.Rate = 2000
	all = append(all, open)
	for _, f := range []struct {
		name  string
		bytes int
		parts int
		t     target
	}{{"fetch 1 MiB, 4 conns", 1 << 20, 1, target{0.90, 1.0}}, {"fetch 64 KiB, 4 conns", 64 << 10, 1, target{0.90, 1.0}}, {"fetch 20 × 16 KiB, 4 conns", 16 << 10, 20, target{0.70, 0.85}}} {
		all = append(all, row{Row: load.Row{Records: 16, Size: 1000, Partitions: f.parts, Connections: 4, InFlight: 1, Fetch: f.bytes},
			name: f.name, modes: []string{pageCache}, targets: map[string]target{pageCache: f.t}})
	}
	// Against an echo of the same frames: what a connection and a wake-up cost by themselves.
	for _, e := range []struct {
		name  string
		conns int
		t     target
	}{{"round trip, 1 conn", 1, target{1 / 2.5, 1 / 1.8}}, {"1,000 conns, small", 1000, target{0.60, 0.75}}} {
		r := p(e.name, 1, 100, 1, e.conns, 1, 1, map[string]target{echo: e.t})
		r.modes, r.against = []string{echo}, "an echo of the frames (toy) against page-cache produce"
		all = append(all, r)
	}
	return all
}

func (r row) topic(mode string) string {
	if r.Fetch > 0 {
		return fmt.Sprintf("bench-fetch-%d-%d", r.Partitions, r.Fetch>>10)
	}
	return fmt.Sprintf("bench-%d", r.Partitions)
}
