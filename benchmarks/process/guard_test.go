package process

import (
	"strings"
	"testing"
)

// Claim: a process's line is read right even if its name holds blanks and brackets, and a broken one is refused.
func TestParseStat(t *testing.T) {
	s, ok := parseStat("42 (a (b) c) S 7 42 1 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 1 0 100 0 0")
	if !ok || s.pid != 42 || s.name != "a (b) c" || s.parent != 7 || s.group != 42 || s.ticks != 300 || s.system != 50 {
		t.Errorf("%+v, %v", s, ok)
	}
	for _, bad := range []string{"", "42 (x", "42 (x) S 7", "x (y) S 7 42 1 0 -1 4194304 100 0 0 0 250 50 0", "42 (y) S 7 42 1 0 -1 4194304 100 0 0 0 a 50 0"} {
		if s, ok := parseStat(bad); ok {
			t.Errorf("%q was read as %+v", bad, s)
		}
	}
}

// Claim: waiting for I/O is idle, time stolen by the host is not, and guests' time is not counted twice.
func TestParseProcStat(t *testing.T) {
	idle, all := parseProcStat("cpu  10 1 20 300 40 2 3 5 7 7\ncpu0 1 1 1 1\n")
	if idle != 340 || all != 381 {
		t.Errorf("idle %d of %d, want 340 of 381", idle, all)
	}
	if idle, all := parseProcStat(""); idle != 0 || all != 0 {
		t.Errorf("idle %d of %d from nothing", idle, all)
	}
}

// Claim: what we and our descendants use is not "others", everything else is, and the largest users are named.
func TestGuardTellsOursFromOthers(t *testing.T) {
	before := map[int]stat{1: {pid: 1, name: "init"}, 10: {pid: 10, parent: 1, name: "us"}, 11: {pid: 11, parent: 10, name: "sh"}, 12: {pid: 12, parent: 11, name: "beam", ticks: 5},
		20: {pid: 20, parent: 1, name: "javac", ticks: 100}, 21: {pid: 21, parent: 1, name: "idler", ticks: 9}}
	after := map[int]stat{}
	for pid, s := range before {
		after[pid] = s
	}
	add := func(pid int, ticks int64) {
		s := after[pid]
		s.ticks += ticks
		after[pid] = s
	}
	add(10, 30)
	add(12, 20)
	add(20, 40)
	b := judge(before, after, 10, 100, 200)
	if b.Share != 0.25 {
		t.Errorf("others use %v, want 0.25 of all processors", b.Share)
	}
	if s := b.String(); !strings.Contains(s, "javac[20] 20 %") || strings.Contains(s, "beam") || strings.Contains(s, "idler") {
		t.Error(s)
	}
	if b := judge(before, before, 10, 3, 200); b.Share != 0.015 || len(b.Who) != 0 {
		t.Errorf("a quiet machine: %+v", b)
	}
}
