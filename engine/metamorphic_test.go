package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"millrace/engine/batch"
	"millrace/engine/vfs/faultfs"
)

// shape is what must not matter: how a log is cut into segments, how it is
// synced, and how often it is restarted.
type shape struct {
	config Config
	power  bool // restarts are power cuts (sync only) and not kills
	files  int  // segment files open at most; 0: any number
}

func drawShape(t *rapid.T, name string) shape {
	c := DefaultConfig()
	c.SegmentBytes = rapid.SampledFrom([]int64{300, 700, 2000, 1 << 20}).Draw(t, name+" segment.bytes")
	c.IndexBytes = rapid.SampledFrom([]int{64, 4096}).Draw(t, name+" index bytes")
	c.IndexInterval = rapid.SampledFrom([]int{0, 100, 4096}).Draw(t, name+" index interval")
	c.Durability = rapid.SampledFrom([]Durability{Sync, PageCache}).Draw(t, name+" durability")
	c.Preallocate = rapid.Bool().Draw(t, name+" preallocate")
	c.DeleteDelay = 0
	return shape{c, c.Durability == Sync && rapid.Bool().Draw(t, name+" power cuts"), rapid.SampledFrom([]int{0, 1, 3}).Draw(t, name+" open files")}
}

// deed is one operation of a user.
type deed struct {
	kind   string
	n      int // records, or how far back
	follow bool
}

// subject is one log that the deeds are done to.
type subject struct {
	disk *faultfs.Disk
	shape
	log     *Log
	restart int // one deed in so many is followed by a restart; 0 never
	seq     map[int64]int32
	life    int16    // epoch of the producers; a new one begins at sequence 0
	told    []string // what the user was told
}

func newSubject(t *rapid.T, s shape, restart int) *subject {
	x := &subject{disk: faultfs.New(t), shape: s, restart: restart, seq: map[int64]int32{}}
	x.open(t)
	return x
}

func (x *subject) open(t *rapid.T) {
	x.log = openTestLog(t, x.disk.Session(), x.config, func(o *LogOptions) {
		if x.files > 0 {
			o.Files = NewFileSet(x.files)
		}
	})
}

func (x *subject) do(t *rapid.T, i int, d deed) {
	l := x.log
	switch d.kind {
	case "append":
		values := make([]string, d.n)
		for j := range values {
			values[j] = fmt.Sprintf("%d/%d", i, j)
		}
		x.append(t, newBatch(time.Now().UnixMilli(), values), d.follow)
	case "produce", "again":
		id := int64(d.n % 3)
		if d.kind == "again" { // the newest batch of that producer, sent again
			x.seq[id] = max(0, x.seq[id]-1)
		}
		seq := x.seq[id]
		x.append(t, newBatch(time.Now().UnixMilli(), []string{fmt.Sprintf("p%d-%d", id, seq)}, batch.Producer(id, x.life, seq)), false)
		x.seq[id] = seq + 1
	case "epoch":
		if err := l.SetEpoch(l.Epoch() + 1); err != nil {
			t.Fatalf("epoch: %v", err)
		}
	case "truncate":
		if err := l.TruncateTo(max(l.Start(), l.End()-Offset(d.n))); err != nil {
			t.Fatalf("truncate: %v", err)
		}
		clear(x.seq) // who knows which batches went: all begin anew
		x.life++
	case "start":
		if err := l.SetStart(min(l.End(), l.Start()+Offset(d.n))); err != nil {
			t.Fatalf("start: %v", err)
		}
	case "reset":
		if err := l.ResetTo(l.End() + Offset(d.n)); err != nil {
			t.Fatalf("reset: %v", err)
		}
		clear(x.seq)
		x.life++
	case "read":
		from := max(l.Start(), l.End()-Offset(d.n))
		s, err := l.Read(from, 1<<20, l.End(), true)
		if err != nil {
			t.Fatalf("read: %v", err)
		}
		if err := s.ReadInto(make([]byte, s.Size())); err != nil {
			t.Fatalf("read: %v", err)
		}
		s.Release()
		if first, err := l.Read(l.Start(), 100, l.End(), true); err != nil { // another segment, mostly
			t.Fatalf("read: %v", err)
		} else {
			first.Release()
		}
	}
	x.told = append(x.told, fmt.Sprintf("%s: [%d, %d) epoch %d", d.kind, l.Start(), l.End(), l.Epoch()))
	if x.restart > 0 && i%x.restart == x.restart-1 {
		x.again(t, i)
	}
}

func (x *subject) append(t *rapid.T, b []byte, follow bool) {
	a := leaderAppend(b)
	if follow {
		batch.Stamp(b, int64(x.log.End())+3, int32(max(x.log.Epoch(), 0)))
		a = followerAppend(b)
	}
	if err := x.log.Append(a, NoEpoch); err != nil {
		t.Fatalf("append: %v", err)
	}
	x.told = append(x.told, fmt.Sprintf("at %d, duplicate %v", a.Base, a.Duplicate))
}

// again restarts the log: cleanly, by a kill, or by a power cut.
func (x *subject) again(t *rapid.T, i int) {
	switch {
	case i%2 == 0:
		closeLog(t, x.log)
	case x.power:
		x.disk.CutPower(faultfs.KeepUnsynced(i * 37 % 101))
		_ = x.log.Close()
	default:
		x.disk.CutPower(faultfs.KeepUnsynced(100))
		_ = x.log.Close()
	}
	x.open(t)
}

// Claim: the same operations give the same answers and the same records under
// any segment size, index shape, durability, number of open files and any restarts.
// Method: do random deeds to two logs of random shape, one of them restarted
// now and then, and compare what the user was told and what is read.
func TestShapeDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := newSubject(t, drawShape(t, "first"), 0)
		b := newSubject(t, drawShape(t, "second"), rapid.IntRange(1, 6).Draw(t, "restart"))
		kinds := []string{"append", "append", "append", "append", "produce", "produce", "again", "epoch", "truncate", "start", "reset", "read"}
		n := rapid.IntRange(1, 60).Draw(t, "deeds")
		for i := range n {
			d := deed{
				kind:   rapid.SampledFrom(kinds).Draw(t, "kind"),
				n:      rapid.IntRange(1, 8).Draw(t, "n"),
				follow: rapid.IntRange(0, 5).Draw(t, "follow") == 0,
			}
			a.do(t, i, d)
			b.do(t, i, d)
		}
		if !slices.Equal(a.told, b.told) {
			t.Fatalf("told\n%v\nand\n%v", a.told, b.told)
		}
		left, right := mustContents(t, a.log), mustContents(t, b.log)
		if !slices.Equal(left, right) {
			t.Fatalf("read\n%v\nand\n%v", left, right)
		}
		for e := Epoch(-1); e <= a.log.Epoch()+1; e++ {
			ea, oa := a.log.EpochEnd(e)
			eb, ob := b.log.EpochEnd(e)
			if ea != eb || oa != ob {
				t.Fatalf("epoch %d ended in %d at %d and in %d at %d", e, ea, oa, eb, ob)
			}
		}
		closeLog(t, a.log)
		closeLog(t, b.log)
	})
}
