package output

import (
	"bytes"
	"testing"
)

// Claim: figures come sorted by name, in Kafka's shape, and an average of nothing is 0.
func TestMetricsAreSortedUnderTheirGroup(t *testing.T) {
	var b bytes.Buffer
	Metrics(&b, "g", 12, map[string]float64{"z": Per(3, 2), "a": Per(1, 0)})
	if want := "\nMetric Name  Value\ng:a         : 0.000\ng:z         : 1.500\n"; b.String() != want {
		t.Errorf("printed %q, want %q", b.String(), want)
	}
}
