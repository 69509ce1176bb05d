package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"millrace/engine"
	"millrace/engine/batch"
	"millrace/engine/compact"
)

// togetherEpisode does everything to one Store at the same time, on the real disk: its use is under the race detector, and for maps and
// descriptors that must not go while somebody looks. Writers own a partition each and check what they were told; readers and look-ups
// go over all of them and check that what they get is whole, ascends and was written there.
func togetherEpisode(seed uint64, length time.Duration, c *counts, stop func() bool) (err error) {
	base, err := os.MkdirTemp("", "chaos-together-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(base)
	r := rand.New(rand.NewPCG(seed, 2))
	x := &together{said: &tail{}, ends: time.Now().Add(length), stop: stop, counts: c, dirs: []string{filepath.Join(base, "a"), filepath.Join(base, "b")}}
	o := drawOptions(r, x.dirs)
	o.JournalDir = ""
	scrubbedReal(r, &o, func(d engine.Damage) {
		err := fmt.Errorf("the scrub gives a false alarm: %+v", d)
		x.found.CompareAndSwap(nil, &err)
	})
	o.Logger = slog.New(slog.NewTextHandler(x.said, nil))
	o.RetentionCheck, o.CheckpointEvery = 20*time.Millisecond, 30*time.Millisecond
	o.Cleaner = engine.CleanerConfig{Threads: 2, Memory: 2 << 20, Backoff: time.Millisecond}
	if x.store, err = engine.OpenStore(context.Background(), o); err != nil {
		return err
	}
	for p := range int32(togetherLogs) {
		config := drawConfig(r)
		config.SegmentBytes = one[int64](r, 900, 4000, 20_000)
		if err := x.store.Create(engine.LogSpec{Topic: "t", TopicID: [16]byte{1, 15: 1}, Partitions: []int32{p}, Config: config}); err != nil {
			return err
		}
	}
	var all sync.WaitGroup
	work := func(n uint64, do func(r *rand.Rand, p int32) error) {
		for p := range int32(togetherLogs) {
			all.Go(func() { x.repeat(rand.New(rand.NewPCG(seed, n*100+uint64(p))), p, do) }) // ends with the time, stop, or a finding
		}
	}
	work(1, x.write)
	work(2, x.look)
	work(3, x.look)
	work(4, x.lookUp)
	work(5, x.change)
	all.Wait()
	if err := x.store.Close(context.Background()); err != nil && x.found.Load() == nil {
		return fmt.Errorf("close: %w", err)
	}
	if found := x.found.Load(); found != nil {
		return fmt.Errorf("%w\nthe last lines logged:\n%s", *found, x.said)
	}
	return nil
}

const togetherLogs = 3

type together struct {
	store  *engine.Store
	dirs   []string
	said   *tail
	ends   time.Time
	stop   func() bool
	found  atomic.Pointer[error]
	cuts   [togetherLogs]atomic.Int64 // odd while the log is truncated
	set    [togetherLogs]atomic.Int64 // odd while its settings are changed
	serial atomic.Int64

	mu     sync.Mutex
	counts *counts // guarded by mu
}

func (x *together) repeat(r *rand.Rand, p int32, do func(*rand.Rand, int32) error) {
	var n int64
	for time.Now().Before(x.ends) && !x.stop() && x.found.Load() == nil {
		err := func() (err error) {
			defer caught(&err)
			return do(r, p)
		}()
		if err != nil {
			err = fmt.Errorf("log %d: %w", p, err)
			x.found.CompareAndSwap(nil, &err)
			break
		}
		n++
	}
	x.mu.Lock()
	x.counts.Operations += n
	x.mu.Unlock()
}

// write appends records whose value says which log they belong to, so that no other file's bytes pass for them, or truncates the log.
func (x *together) write(r *rand.Rand, p int32) error {
	log := x.store.Log("t", p)
	if oneIn(r, 200) {
		x.cuts[p].Add(1)
		defer x.cuts[p].Add(1)
		return log.TruncateTo(max(0, log.End()-offset(r.IntN(50))))
	}
	list := make([]record, 1+r.IntN(4))
	for i := range list {
		list[i] = record{
			key: fmt.Sprintf("k%d", r.IntN(20)), value: fmt.Sprintf("%d/%0*d", p, 1+r.IntN(90), x.serial.Add(1)),
			ts: time.Now().UnixMilli() + int64(r.IntN(1000)), null: oneIn(r, 8),
		}
	}
	a := request(build(one(r, batch.None, batch.LZ4, batch.Zstd), list))
	set, synced := x.set[p].Load(), log.Config().Durability == engine.Sync
	if err := log.Append(a, max(log.Epoch(), 0)); err != nil {
		if errors.Is(err, engine.ErrStaleEpoch) { // raised in between
			return nil
		}
		return fmt.Errorf("append: %w", err)
	}
	if got := log.Durable(); synced && got <= a.Base && log.End() > a.Base && set%2 == 0 && x.set[p].Load() == set {
		return fmt.Errorf("acknowledged %d with everything below %d durable", a.Base, got)
	}
	return nil
}

// undisturbed runs a look at a log. Its error does not count if the log was truncated meanwhile, or if start or end moved past the place
// that it asked for.
func (x *together) undisturbed(p int32, look func() error) error {
	before := x.cuts[p].Load()
	err := func() (err error) {
		defer caught(&err) // nor does what it does not believe
		return look()
	}()
	if err == nil || before%2 == 1 || x.cuts[p].Load() != before || errors.Is(err, engine.ErrOutOfRange) {
		return nil
	}
	return err
}

// look reads from anywhere.
func (x *together) look(r *rand.Rand, p int32) error {
	log := x.store.Log("t", p)
	return x.undisturbed(p, func() error {
		start, end := log.Start(), log.Safe()
		if end <= start {
			return nil
		}
		at := start + offset(r.Int64N(int64(end-start)))
		got, err := readAll(log, at, min(end, at+200), one(r, 1, 100, 3000, 1<<20))
		if err != nil {
			return fmt.Errorf("read at %d of [%d, %d): %w", at, start, end, err)
		}
		for _, s := range got {
			if !s.null && s.value[:2] != fmt.Sprintf("%d/", p) {
				return fmt.Errorf("offset %d holds %q, which was not written there", s.offset, s.value)
			}
		}
		return nil
	})
}

// lookUp asks by time, for the newest record and for epochs: through the indexes, which are mapped, sealed and rebuilt meanwhile.
func (x *together) lookUp(r *rand.Rand, p int32) error {
	log := x.store.Log("t", p)
	return x.undisturbed(p, func() error {
		ts := time.Now().UnixMilli() - int64(r.IntN(2000))
		off, at, found, err := log.OffsetForTime(ts)
		if err != nil || found && (at < ts || off < 0) {
			return fmt.Errorf("look-up of %d: %d at %d, %v, %w", ts, off, at, found, err)
		}
		if _, _, err = log.MaxTimestamp(); err != nil {
			return fmt.Errorf("largest timestamp: %w", err)
		}
		log.EpochEnd(log.Epoch())
		_, err = log.Dirt(time.Now())
		return err
	})
}

// change does what administrators and time do.
func (x *together) change(r *rand.Rand, p int32) error {
	log := x.store.Log("t", p)
	time.Sleep(time.Duration(r.IntN(5)) * time.Millisecond) // often enough
	switch r.IntN(9) {
	case 0, 1:
		err := x.store.Move("t", p, one(r, x.dirs...))
		if err != nil {
			return fmt.Errorf("move: %w", err)
		}
	case 2:
		o := min(log.Safe(), log.Start()+offset(r.IntN(100)))
		if err := log.SetStart(o); err != nil && !errors.Is(err, engine.ErrOutOfRange) {
			return fmt.Errorf("start: %w", err)
		}
	case 3:
		if _, err := log.Retain(time.Now()); err != nil {
			return fmt.Errorf("retain: %w", err)
		}
	case 4:
		c := drawConfig(r)
		c.SegmentBytes = one[int64](r, 900, 4000, 20_000)
		x.set[p].Add(1)
		log.SetConfig(c)
		x.set[p].Add(1)
	case 5:
		if err := log.SetEpoch(log.Epoch() + 1); err != nil {
			return fmt.Errorf("epoch: %w", err)
		}
	case 6:
		return x.undisturbed(p, func() error {
			_, err := log.Clean(engine.Cleaning{Keys: compact.NewMap(64 << 10), Now: time.Now()})
			if errors.Is(err, engine.ErrCleaning) || overtaken(err) {
				return nil
			}
			return err
		})
	case 7:
		log.Producers()
		log.Stats()
		x.store.Moves()
		x.store.CleanerStats()
	case 8:
		if err := log.Sync(); err != nil {
			return fmt.Errorf("sync: %w", err)
		}
	}
	return nil
}

// overtaken is the error of a pass whose log was moved, cut or shortened meanwhile: it begins anew another time.
func overtaken(err error) bool {
	return err != nil && err.Error() == "the log was cut or moved while it was cleaned"
}
