package output

import (
	"fmt"
	"io"
	"maps"
	"slices"
)

// Metrics prints a client's figures as Kafka's perf tools do at their end: sorted, each
// with the name of its group before it, names in a column of width characters.
func Metrics(w io.Writer, group string, width int, values map[string]float64) {
	fmt.Fprintf(w, "\n%-*s Value\n", width, "Metric Name")
	for _, name := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(w, "%-*s: %.3f\n", width, group+":"+name, values[name])
	}
}

// Per is an average; 0 of nothing.
func Per(sum, n int64) float64 {
	if n == 0 {
		return 0
	}
	return float64(sum) / float64(n)
}
