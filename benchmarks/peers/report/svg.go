package report

import (
	"encoding/xml"
	"fmt"
	"math"
	"strings"
)

var colours = map[string]string{Synced: "#1b6ca8", PageCache: "#4fa3d8", Kafka: "#555555", KafkaTuned: "#8a8a8a", KafkaFlush: "#8a6d3b", NATS: "#2e8b57", NATSSynced: "#8fbc8f",
	Redis: "#c0392b", RedisSynced: "#e59866", RabbitMQ: "#e67e22", Jafka: "#7d3c98", ZooKeeper: "#555555"}

// The plot's measures in pixels.
const (
	plotLeft  = 380
	plotWidth = 520
	barHeight = 13
	rowGap    = 10
	plotTop   = 56
)

// Plot draws how many times better than Kafka (coordination: than ZooKeeper) each system is in each row, on a logarithmic scale: to the right of 1 is better,
// whatever the figure. It is empty if the section has nothing to compare.
func Plot(name string, s *Section) string {
	type bar struct {
		target string
		times  float64
	}
	type group struct {
		row  string
		bars []bar
	}
	base := Kafka
	switch name {
	case "durable":
		base = KafkaFlush
	case "coordination":
		base = ZooKeeper
	}
	var groups []group
	low, high, height := 0.5, 2.0, 0
	for _, r := range s.Rows {
		metric, more := r.main()
		peer, _, _, ok := r.Median(base, metric)
		if !ok || peer <= 0 {
			continue
		}
		g := group{row: fmt.Sprintf("%s (%s)", r.Name, label(metric))}
		for _, f := range r.Figures {
			mine, _, _, ok := r.Median(f.Target, metric)
			if !ok || mine <= 0 || f.Target == base {
				continue
			}
			times := mine / peer
			if !more {
				times = peer / mine
			}
			low, high = min(low, times), max(high, times)
			g.bars = append(g.bars, bar{f.Target, times})
		}
		if len(g.bars) > 0 {
			groups = append(groups, g)
			height += len(g.bars)*barHeight + rowGap
		}
	}
	if len(groups) == 0 {
		return ""
	}
	from, to := math.Floor(math.Log10(low)*2)/2, math.Ceil(math.Log10(high)*2)/2
	x := func(times float64) float64 { return plotLeft + plotWidth*(math.Log10(times)-from)/(to-from) }
	var b strings.Builder
	total := plotTop + height + 40
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">`+"\n", plotLeft+plotWidth+70, total)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/><text x="10" y="18" font-size="14">%s: times better than %s (logarithmic; right of 1 is better)</text>`+"\n", escape(name), escape(base))
	at, seen := 10, map[string]bool{}
	for _, g := range groups {
		for _, bar := range g.bars {
			if !seen[bar.target] {
				seen[bar.target] = true
				fmt.Fprintf(&b, `<rect x="%d" y="30" width="10" height="10" fill="%s"/><text x="%d" y="39">%s</text>`+"\n", at, colours[bar.target], at+14, escape(bar.target))
				at += 30 + 6*len(bar.target)
			}
		}
	}
	for e := math.Ceil(from); e <= to; e++ {
		px := x(math.Pow(10, e))
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#dddddd"/><text x="%.1f" y="%d" text-anchor="middle">%g</text>`+"\n", px, plotTop-6, px, total-24, px, total-10, math.Pow(10, e))
	}
	y := plotTop
	for _, g := range groups {
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", plotLeft-8, y+len(g.bars)*barHeight/2+4, escape(g.row))
		for _, bar := range g.bars {
			left, right := min(x(1), x(bar.times)), max(x(1), x(bar.times))
			fmt.Fprintf(&b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/><text x="%.1f" y="%d">%s</text>`+"\n", left, y, max(1, right-left), barHeight-2,
				colours[bar.target], right+4, y+barHeight-3, times(bar.times))
			y += barHeight
		}
		y += rowGap
	}
	fmt.Fprintf(&b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="black"/>`+"\n</svg>\n", x(1), plotTop-6, x(1), total-24)
	return b.String()
}

func times(x float64) string {
	if x >= 10 {
		return fmt.Sprintf("%.0f×", x)
	}
	return fmt.Sprintf("%.2g×", x)
}

func escape(s string) string {
	var b strings.Builder
	xml.EscapeText(&b, []byte(s))
	return b.String()
}
