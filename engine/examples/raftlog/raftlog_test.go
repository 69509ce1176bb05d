package raftlog

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"millrace/engine"
	"millrace/engine/vfs/faultfs"
)

func open(t testing.TB, d *faultfs.Disk) *Store {
	t.Helper()
	s, err := Open("/data/raft", options(d))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func options(d *faultfs.Disk) Options {
	return Options{SegmentBytes: 1000, Log: engine.LogOptions{FS: d.Session(), JournalBytes: 64 << 10}}
}

func entry(index, term uint64) *raft.Log {
	return &raft.Log{Index: index, Term: term, Type: raft.LogCommand, Data: fmt.Appendf(nil, "entry %d of term %d", index, term)}
}

func entries(from, to, term uint64) []*raft.Log {
	var list []*raft.Log
	for i := from; i < to; i++ {
		list = append(list, entry(i, term))
	}
	return list
}

// requireEntries demands exactly the entries [from, to) of the terms that termOf says.
func requireEntries(t *testing.T, s *Store, from, to uint64, termOf func(uint64) uint64) {
	t.Helper()
	first, _ := s.FirstIndex()
	last, _ := s.LastIndex()
	if from == to && (first != 0 || last != 0) || from < to && (first != from || last != to-1) {
		t.Fatalf("first %d, last %d; want [%d, %d)", first, last, from, to)
	}
	var got raft.Log
	for i := from; i < to; i++ {
		if err := s.GetLog(i, &got); err != nil || !reflect.DeepEqual(&got, entry(i, termOf(i))) {
			t.Fatalf("index %d: %+v, %v", i, got, err)
		}
	}
	for _, i := range []uint64{from - 1, to, to + 10} {
		if err := s.GetLog(i, &got); err != raft.ErrLogNotFound {
			t.Fatalf("index %d: %v, want ErrLogNotFound", i, err)
		}
	}
}

func term(n uint64) func(uint64) uint64 { return func(uint64) uint64 { return n } }

// Claim: prefix, suffix and whole can be deleted, the log goes on where raft wants, gaps and holes are refused, and a restart
// changes nothing.
func TestIndexesAreOffsets(t *testing.T) {
	d := faultfs.New(t)
	s := open(t, d)
	check := func(from, to uint64, termOf func(uint64) uint64) {
		t.Helper()
		requireEntries(t, s, from, to, termOf)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, d)
		requireEntries(t, s, from, to, termOf)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(0, 0, nil)
	must(s.StoreLogs(entries(1, 51, 1)))
	check(1, 51, term(1))
	must(s.DeleteRange(1, 20))
	check(21, 51, term(1))
	must(s.DeleteRange(41, 99))
	check(21, 41, term(1))
	for _, bad := range [][]*raft.Log{{entry(43, 2)}, {entry(40, 2)}, {entry(41, 2), entry(43, 2)}} {
		if s.StoreLogs(bad) == nil {
			t.Fatalf("index %d was taken behind 40", bad[0].Index)
		}
	}
	if s.DeleteRange(25, 30) == nil {
		t.Fatal("a hole was made")
	}
	must(s.DeleteRange(1, 5))
	must(s.StoreLogs(entries(41, 46, 2)))
	check(21, 46, func(i uint64) uint64 { return 1 + i/41 })
	must(s.DeleteRange(21, 45))
	check(0, 0, nil)
	must(s.StoreLogs(entries(1234, 1240, 3)))
	check(1234, 1240, term(3))
	must(s.Close())
}

// Claim: all that raft puts into an entry comes back.
func TestEntriesComeBackWhole(t *testing.T) {
	s := open(t, faultfs.New(t))
	defer s.Close()
	list := []*raft.Log{
		{Index: 7, Term: 1 << 60, Type: raft.LogConfiguration, Data: []byte{}, Extensions: []byte("x"), AppendedAt: time.Unix(0, 1234567890123)},
		{Index: 8, Type: raft.LogNoop},
		{Index: 9, Extensions: []byte{}, Data: make([]byte, 500)},
	}
	if err := s.StoreLogs(list); err != nil {
		t.Fatal(err)
	}
	if m := s.Metrics(); m.Batches != 3 || m.Writes > 2 {
		t.Errorf("%d batches in %d writes", m.Batches, m.Writes)
	}
	for _, want := range list {
		var got raft.Log
		if err := s.GetLog(want.Index, &got); err != nil || !reflect.DeepEqual(&got, want) {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
	}
}

// Claim: wherever the power is cut, every entry that was stored and not deleted is there, nothing that was deleted comes back, and so
// do votes.
func TestEntriesSurviveAnyPowerCut(t *testing.T) {
	for n := 0; ; n++ {
		d := faultfs.New(nil, faultfs.Seed(uint64(n))).CutAtOperation(n)
		first, end, mayEnd, vote := live(d)
		fired := d.Fired()
		d.CutPower(faultfs.KeepUnsynced(n * 31 % 101))
		s := open(t, d)
		got, _ := s.FirstIndex()
		last, _ := s.LastIndex()
		if end > first && (got > first+5 || got < first) || last+1 < end || last+1 > max(mayEnd, 1) {
			t.Fatalf("operation %d: the log is [%d, %d], acknowledged [%d, %d), at most %d", n, got, last, first, end, mayEnd)
		}
		for i := got; i <= last && i > 0; i++ {
			var e raft.Log
			if err := s.GetLog(i, &e); err != nil || !reflect.DeepEqual(&e, entry(i, 1)) && !reflect.DeepEqual(&e, entry(i, 2)) {
				t.Fatalf("operation %d: index %d: %+v, %v", n, i, e, err)
			}
			if want := uint64(2); i >= 18 && i < end && e.Term != want {
				t.Fatalf("operation %d: index %d is of term %d again", n, i, e.Term)
			}
		}
		if v, err := s.GetUint64([]byte("vote")); err != nil || v < vote || v > vote+1 {
			t.Fatalf("operation %d: vote %d, %v; acknowledged %d", n, v, err, vote)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if !fired {
			return
		}
	}
}

// live is a short life of a follower: entries of term 1, of which those from 18 on are replaced by some of term 2; a prefix goes. It returns
// what was acknowledged: [first, end), the largest end that is possible, the vote.
func live(d *faultfs.Disk) (first, end, mayEnd, vote uint64) {
	s, err := Open("/data/raft", options(d))
	if err != nil {
		return 1, 1, 1, 0
	}
	defer s.Close()
	first, end, mayEnd = 1, 1, 1
	store := func(from, to, term uint64) bool {
		mayEnd = max(mayEnd, to)
		if s.StoreLogs(entries(from, to, term)) != nil {
			return false
		}
		end, mayEnd = to, to
		return true
	}
	for i := uint64(1); i < 21; i += 5 {
		if s.SetUint64([]byte("vote"), vote+1) != nil {
			return
		}
		vote++
		if !store(i, i+5, 1) {
			return
		}
	}
	end = 18
	if s.DeleteRange(18, 20) != nil {
		return
	}
	mayEnd = 18
	if !store(18, 26, 2) || s.DeleteRange(1, 5) != nil {
		return
	}
	first = 6
	store(26, 31, 2)
	return
}

// Claim: an entry that cannot be stored leaves the log as it was, with those before it of the same call taken back.
func TestFailedStoreLeavesNothing(t *testing.T) {
	d := faultfs.New(t)
	s := open(t, d)
	defer s.Close()
	if err := s.StoreLogs(entries(1, 4, 1)); err != nil {
		t.Fatal(err)
	}
	large := &raft.Log{Index: 5, Data: make([]byte, 2000)} // more than a segment
	if err := s.StoreLogs([]*raft.Log{entry(4, 1), large}); !errors.Is(err, engine.ErrTooLarge) {
		t.Fatalf("got %v", err)
	}
	requireEntries(t, s, 1, 4, term(1))
	if err := s.StoreLogs(entries(4, 6, 2)); err != nil {
		t.Fatal(err)
	}
}
