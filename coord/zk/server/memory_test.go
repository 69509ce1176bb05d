package server

import "testing"

func TestSlackIsBounded(t *testing.T) {
	for _, c := range []struct {
		live uint64
		gogc int
	}{{0, 100}, {slackBytes, 100}, {slackBytes + 1, 80}, {10 * slackBytes, 10}, {1 << 50, leastGC}} {
		got := gogcFor(c.live)
		if got != c.gogc {
			t.Errorf("%d bytes live: GOGC %d, want %d", c.live, got, c.gogc)
		}
		if got > leastGC && uint64(got)*c.live > 100*slackBytes {
			t.Errorf("%d bytes live: GOGC %d leaves more than %d", c.live, got, slackBytes)
		}
	}
}
