package engine

import (
	"strings"
	"testing"

	"millrace/engine/vfs/faultfs"
)

// Claim: a read of what stays is right while a truncation cuts what follows, and what it notes
// of boundaries does not outlive the cut.
// Method: the file is cut, and in one case grown again, between a look-up's sight of the segment's size and its read of the file.
func TestReadBesideATruncation(t *testing.T) {
	for name, grow := range map[string]bool{"cut": false, "cut and grown again": true} {
		t.Run(name, func(t *testing.T) {
			d := faultfs.New(t)
			var l *Log
			armed := false
			d.BeforeRead(func(name string) {
				if !armed || !strings.HasSuffix(name, logSuffix) {
					return
				}
				armed = false
				if err := l.TruncateTo(6); err != nil {
					t.Error(err)
				}
				if grow {
					put(t, l, "a longer record than the one that was here before", valueOf(7))
				}
			})
			l = openTestLog(t, d, DefaultConfig())
			defer closeLog(t, l)
			for i := range Offset(10) {
				put(t, l, valueOf(i))
			}
			l.hints.Store(nil) // as after a start
			armed = true
			s, err := l.Read(2, 1<<20, 6, true)
			if err != nil || armed {
				t.Fatalf("%v; truncated: %v", err, !armed)
			}
			if s.First != 2 || s.Size() == 0 {
				t.Fatalf("got %d bytes from %d", s.Size(), s.First)
			}
			s.Release()
			if !grow {
				for i := Offset(6); i < 10; i++ {
					put(t, l, "again "+valueOf(i))
				}
			}
			for o := Offset(0); o < l.End(); o++ { // every boundary, by what is noted now
				r, err := l.Get(o)
				if err != nil || Offset(r.Offset) != o {
					t.Fatalf("offset %d: got %d, %v", o, r.Offset, err)
				}
			}
		})
	}
}

// Claim: a look-up of a limit that a truncation has overtaken leaves no boundary behind that a later append makes wrong.
// Method: a read up to an old End is held between the check of its range and the look-up, and the log is cut and grown meanwhile.
func TestLimitsAboveACutAreNotNoted(t *testing.T) {
	d := faultfs.New(t)
	l := openTestLog(t, d, DefaultConfig())
	defer closeLog(t, l)
	for i := range Offset(10) {
		put(t, l, valueOf(i))
	}
	if err := l.TruncateTo(6); err != nil {
		t.Fatal(err)
	}
	// What Read does after its check, with the End of before the cut.
	s, _, err := l.readOnce(2, 1<<20, 8, true)
	if err != nil {
		t.Fatal(err)
	}
	s.Release()
	var all []*Append // one write, whose end alone is noted
	for _, value := range []string{"a longer record than the one that was here before", "and another one", "the third", "the last"} {
		all = append(all, leaderAppend(newBatch(1000, []string{value})))
		l.Enqueue(all[len(all)-1], 0)
	}
	for _, a := range all {
		if err := l.Write(a); err != nil {
			t.Fatal(err)
		}
		if err := a.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	for o := Offset(6); o < l.End(); o++ {
		if r, err := l.Get(o); err != nil || Offset(r.Offset) != o {
			t.Fatalf("offset %d: got %d, %v", o, r.Offset, err)
		}
	}
}
