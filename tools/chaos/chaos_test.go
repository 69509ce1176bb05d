package main

import (
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// brief runs episodes of a part for a moment. The seed is printed; `chaos -part NAME -seed N -once` repeats one.
func brief(t *testing.T, name string, length time.Duration) {
	t.Helper()
	var c counts
	p := partOf(name)
	for ends := time.Now().Add(length); time.Now().Before(ends); c.Episodes++ {
		seed := rand.Uint64() >> 16
		if err := p.episode(seed, &c, func() bool { return time.Now().After(ends) }); err != nil {
			t.Fatalf("part %s, seed %d: %.3000v", name, seed, err)
		}
	}
	t.Logf("%s: %v", name, c)
}

// Claim (L1-L9): a Store of any shape is what its users were told, through restarts, kills, power cuts and failed operations.
// Method: random deeds against a model, on the disk of faultfs; `make chaos` does so for long.
func TestStoreAgreesWithItsModel(t *testing.T) { brief(t, "store", 3*time.Second) }

// Claim: the same on the real disk.
func TestStoreOnDiskAgreesWithItsModel(t *testing.T) { brief(t, "disk", 2*time.Second) }

// Claim: appends, reads, look-ups, retention, compaction, moves and truncation go on beside each other; a look-up meets no unmapped page.
func TestEverythingTogether(t *testing.T) {
	var c counts
	seed := rand.Uint64() >> 16
	if err := togetherEpisode(seed, 2*time.Second, &c, func() bool { return false }); err != nil {
		t.Fatalf("part together, seed %d: %v", seed, err)
	}
	t.Log(c)
}

// Claim (L6, L9): what a server acknowledged is there after SIGKILL, each record once and in order, of every key the newest; so are commits,
// topics and deletions.
// Method: two kills of a real process under clients that live on.
func TestServerSurvivesKills(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	serverBinary = filepath.Join(t.TempDir(), "millrace")
	if out, err := exec.Command("go", "build", "-o", serverBinary, "../millrace").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var c counts
	seed := rand.Uint64() >> 16
	if err := killEpisode(seed, 2, &c, func() bool { return false }); err != nil {
		t.Fatalf("part kill, seed %d: %v", seed, err)
	}
	t.Log(c)
}

// Claim: a model that is wrong is found out: the checks can fail.
// Method: after some honest deeds the model forgets a record, invents one, or takes another end.
func TestChecksCanFail(t *testing.T) {
	for name, spoil := range map[string]func(*model){
		"a record more": func(m *model) { m.records[m.end-1] = record{key: "none", value: "none"}; delete(m.possible, m.end-1) },
		"other bytes":   func(m *model) { clear(m.possible) },
		"another end":   func(m *model) { m.end++ },
		"another start": func(m *model) { m.start, m.mayStart = m.end+1, m.end+1 },
	} {
		l := newLife(1, "", &counts{}, func() bool { return false })
		l.open()
		for len(l.logs) == 0 {
			l.create()
		}
		m := l.logs[0]
		l.append(m, l.store.Log(m.topic, m.partition))
		err := func() (err error) {
			defer caught(&err)
			spoil(m)
			l.verify(m, l.store.Log(m.topic, m.partition), false)
			return nil
		}()
		l.leave()
		if err == nil {
			t.Errorf("%s: not found", name)
		}
	}
}

// Claim: the parent adds up what children did, tells of a finding with its seed, and its status says so.
// Method: a run of children that are this test's own program, one kind of which fails.
func TestRunTellsOfFindings(t *testing.T) {
	r := run{out: &tail{}, seed: 7, parts: []string{"store"}, length: 1500 * time.Millisecond, workers: 1, keep: t.TempDir()}
	if status := r.run(); status != 1 || r.findings == 0 { // the test program does not know -child: every child is a finding
		t.Errorf("status %d, %d findings", status, r.findings)
	}
	if files, _ := filepath.Glob(filepath.Join(r.keep, "store-*.txt")); len(files) == 0 {
		t.Error("nothing was kept")
	}
}
