package main

import (
	"math"
	"math/rand/v2"
	"time"

	"millrace/engine"
	"millrace/engine/batch"
	"millrace/engine/vfs"
)

func one[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func oneIn(r *rand.Rand, n int) bool { return r.IntN(n) == 0 }

// drawOptions is what must not matter to who uses a Store, drawn anew at every start. A new way of doing the same (a bound on
// descriptors, another kind of I/O) joins by a line here.
func drawOptions(r *rand.Rand, dirs []string) engine.StoreOptions {
	o := engine.StoreOptions{
		Dirs:             dirs,
		Journal:          one(r, "auto", "auto", "off"),
		JournalDir:       one(r, "", "", dirs[0]+"-journal"),
		JournalThreshold: one(r, 0, 0, 200, 4096),
		RecoveryThreads:  one(r, 1, 2),
		IndexMaps:        one(r, 1, 3, 1000),
		RetentionCheck:   -1, // as deeds of their own, so that the seed decides when
		CheckpointEvery:  -1,
		OpenFiles:        one(r, 0, 0, 1, 1+r.IntN(4)),
		Cleaner:          engine.CleanerConfig{Memory: 1 << 20},
	}
	return o
}

// drawConfig is the same for one topic.
func drawConfig(r *rand.Rand) engine.Config {
	c := engine.DefaultConfig()
	c.SegmentBytes = one[int64](r, 600, 900, 2000, 20_000, 1<<20)
	c.SegmentAge = one(r, 7*24*time.Hour, 7*24*time.Hour, time.Minute)
	c.IndexBytes = one(r, 64, 4096)
	c.IndexInterval = one(r, 0, 100, 4096)
	c.Preallocate = oneIn(r, 3)
	c.DeleteDelay = 0
	c.RetentionAge = one(r, -1, -1, time.Hour)
	c.RetentionBytes = one[int64](r, -1, -1, 900, 5000)
	c.Delete, c.Compact = true, false
	switch r.IntN(3) {
	case 0:
		c.Delete, c.Compact = false, true
	case 1:
		c.Compact = true
	}
	c.DeleteRetention = one(r, 0, time.Hour)
	c.CompactAfter = one(r, 0, 0, time.Minute)
	c.DirtyRatio = 0
	if c.Recompress = oneIn(r, 3); c.Recompress {
		c.Codec = one(r, batch.None, batch.LZ4, batch.Snappy, batch.Zstd, batch.Gzip)
		c.CodecLevel = batch.DefaultLevel
	}
	c.ProducerExpiry = math.MaxInt64 // whether a producer is known does not depend on the clock
	c.Durability = one(r, engine.Sync, engine.Sync, engine.PageCache)
	c.FlushMessages = one[int64](r, math.MaxInt64, math.MaxInt64, 1, 5)
	return c
}

// scrubbedReal adds what is only for real files, or would change which operation of faultfs fails: the way of I/O, and a scrub that reads
// without pause. Nothing of these stores is damaged, so all that it finds is a false alarm.
func scrubbedReal(r *rand.Rand, o *engine.StoreOptions, alarm func(engine.Damage)) {
	o.IO = drawIO(r)
	o.ScrubRate = one[int64](r, 0, 1<<40)
	o.OnDamage = alarm
}

// drawIO is a way of file operations that this kernel allows.
func drawIO(r *rand.Rand) vfs.IO {
	way := one(r, vfs.IOAuto, vfs.IOPool, vfs.IORing)
	if way == vfs.IORing { // where the kernel refuses it the way that is chosen there
		system, err := vfs.OSWith(way)
		if err != nil {
			return vfs.IOAuto
		}
		system.Close()
	}
	return way
}
