package main

import (
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"millrace/benchmarks/load"
)

// Claim: every row's frames are answered without an error by the toy in each of the row's modes, so that a table never holds a row
// that measured refusals. Method: each row for a few milliseconds with few connections.
func TestEveryRowRunsAgainstTheToy(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "toy")
	if out, err := exec.Command("go", "build", "-o", bin, "./toy").CombinedOutput(); err != nil {
		t.Fatalf("building the toy: %v\n%s", err, out)
	}
	for _, mode := range []string{echo, pageCache, synced, syncFiles} {
		s, err := startToy(t.TempDir(), bin, mode)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows() {
			if !slices.Contains(r.modes, mode) {
				continue
			}
			r.Connections = min(r.Connections, 4)
			frames, err := prepare(s, r, mode)
			if err != nil {
				t.Fatalf("%s, %s: %v", mode, r.name, err)
			}
			res, err := load.Run(s.addr, r.Row, frames, 20*time.Millisecond)
			if err != nil {
				t.Errorf("%s, %s: %v", mode, r.name, err)
			}
			if res.Requests == 0 || res.Bytes == 0 {
				t.Errorf("%s, %s: %d requests, %d bytes", mode, r.name, res.Requests, res.Bytes)
			}
			t.Logf("%s, %s: %d requests, p50 %d µs", mode, r.name, res.Requests, res.P50)
		}
		s.stop()
	}
}
