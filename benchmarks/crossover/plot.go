package main

import (
	"encoding/xml"
	"fmt"
	"math"
	"strings"

	"millrace/benchmarks/peers/report"
)

var colours = []string{"#1b6ca8", "#c0392b", "#2e8b57", "#e67e22", "#7d3c98", "#555555"}

// The plot's measures in pixels.
const (
	plotLeft, plotTop     = 70, 60
	plotWidth, plotHeight = 640, 360
)

// plot draws the p50 of every way over the rows' figures, both axes logarithmic. It is empty if the rows are not numbers.
func plot(r *results) string {
	xLow, xHigh, yLow, yHigh := math.Inf(1), 0.0, math.Inf(1), 0.0
	for _, row := range r.data.Rows {
		x, ok := r.xs[row.Name]
		if !ok {
			return ""
		}
		xLow, xHigh = min(xLow, x), max(xHigh, x)
		for _, w := range r.ways {
			if y, _, _, ok := row.Median(w, report.P50); ok {
				yLow, yHigh = min(yLow, y), max(yHigh, y)
			}
		}
	}
	if yHigh == 0 || xLow == xHigh {
		return ""
	}
	yLow, yHigh = yLow/1.2, yHigh*1.2
	px := func(x float64) float64 { return plotLeft + plotWidth*math.Log(x/xLow)/math.Log(xHigh/xLow) }
	py := func(y float64) float64 { return plotTop + plotHeight*(1-math.Log(y/yLow)/math.Log(yHigh/yLow)) }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">`+"\n", plotLeft+plotWidth+30, plotTop+plotHeight+50)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/><text x="10" y="18" font-size="14">%s: p50 in µs by %s (both logarithmic)</text>`+"\n", escape(r.title), escape(r.x))
	for _, row := range r.data.Rows {
		x := px(r.xs[row.Name])
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#eeeeee"/><text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", x, plotTop, x, plotTop+plotHeight, x, plotTop+plotHeight+16, escape(row.Name))
	}
	for decade := math.Pow(10, math.Floor(math.Log10(yLow))); decade <= yHigh; decade *= 10 {
		for _, step := range []float64{1, 2, 5} {
			if y := decade * step; y >= yLow && y <= yHigh {
				fmt.Fprintf(&b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#dddddd"/><text x="%d" y="%.1f" text-anchor="end">%g</text>`+"\n", plotLeft, py(y), plotLeft+plotWidth, py(y), plotLeft-6, py(y)+4, y)
			}
		}
	}
	at := 10
	for i, w := range r.ways {
		colour := colours[i%len(colours)]
		fmt.Fprintf(&b, `<rect x="%d" y="30" width="10" height="10" fill="%s"/><text x="%d" y="39">%s</text>`+"\n", at, colour, at+14, escape(w))
		at += 34 + 6*len(w)
		var points []string
		for _, row := range r.data.Rows {
			if y, _, _, ok := row.Median(w, report.P50); ok {
				points = append(points, fmt.Sprintf("%.1f,%.1f", px(r.xs[row.Name]), py(y)))
			}
		}
		fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", strings.Join(points, " "), colour)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func escape(s string) string {
	var b strings.Builder
	xml.EscapeText(&b, []byte(s))
	return b.String()
}
