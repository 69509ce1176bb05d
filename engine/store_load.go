package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/dustin/go-humanize"

	"millrace/engine/checkpoint"
	"millrace/engine/journal"
)

const deleteSuffix = "-delete"

// found is a log's folder, seen while listing a data directory.
type found struct {
	dir  *dataDir
	key  logKey
	path string
}

// logKey orders logs for people and files.
type logKey checkpoint.TopicPartition

func (k logKey) compare(o logKey) int {
	return cmp.Or(cmp.Compare(k.Topic, o.Topic), cmp.Compare(k.Partition, o.Partition))
}

func (l *Log) key() logKey { return logKey{l.topic, l.partition} }

// load recovers every log of every directory. Directories work side by side, each
// with its own workers, since each is a device of its own.
func (s *Store) load(ctx context.Context) error {
	all := make([][]found, len(s.dirs))
	for i, d := range s.dirs {
		if d.offline() != nil {
			continue
		}
		if err := d.prepare(); err != nil {
			d.fail(err)
			continue
		}
		logs, err := d.list()
		if err != nil {
			d.fail(err)
			continue
		}
		all[i] = logs
	}
	s.chooseMoved(all)
	byDir := make([][]found, len(s.dirs))
	seen := make(map[logKey]string)
	total := 0
	for i, d := range s.dirs {
		for _, f := range all[i] {
			if other, twice := seen[f.key]; twice {
				s.setAside(f, fmt.Errorf("the same partition is in %s, which was listed first", other))
				continue
			}
			seen[f.key] = d.path
			byDir[i] = append(byDir[i], f)
			s.ids.logs = append(s.ids.logs, f)
		}
		total += len(byDir[i])
	}
	p := newProgress(s, total)
	defer p.end()
	var dirs sync.WaitGroup
	for i, d := range s.dirs {
		if d.offline() == nil {
			dirs.Go(func() { s.loadDir(ctx, d, byDir[i], p) })
		}
	}
	dirs.Wait()
	s.ids.logs = nil
	return ctx.Err()
}

// list finds the logs of a directory and sends what is left of deleted ones to the background.
func (d *dataDir) list() ([]found, error) {
	names, err := d.fs.ReadDir(d.path)
	if err != nil {
		return nil, err
	}
	d.listed = true
	var logs []found
	var deleted []string
	for _, n := range names {
		path := filepath.Join(d.path, n.Name)
		switch {
		case !n.IsDir || n.Name == "lost+found" || slices.Contains(d.store.o.NotLogs, n.Name) || strings.HasPrefix(n.Name, "__cluster_metadata-"):
		case strings.HasSuffix(n.Name, deleteSuffix):
			deleted = append(deleted, path)
		case strings.HasSuffix(n.Name, futureSuffix):
			d.futures = append(d.futures, path)
		case strings.HasSuffix(n.Name, "-stray"):
			d.store.log.Warn("folder is left alone", "folder", path)
		default:
			key, ok := parseFolder(n.Name)
			if !ok {
				d.store.log.Warn("folder is not a partition's; it is left alone", "folder", path)
				continue
			}
			logs = append(logs, found{d, key, path})
		}
	}
	return logs, d.removeDeleted(deleted)
}

// removeDeleted removes folders that have the name of deleted logs in the background, once those names are on disk: the last life may have ended
// before it synced them, and under its former name a start after a loss of power would find the log emptied.
func (d *dataDir) removeDeleted(paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	if err := d.nameGone(); err != nil {
		return err
	}
	for _, p := range paths {
		d.store.removeLater(p, 0)
	}
	return nil
}

// parseFolder splits "<topic>-<partition>".
func parseFolder(name string) (logKey, bool) {
	dash := strings.LastIndexByte(name, '-')
	if dash <= 0 {
		return logKey{}, false
	}
	n, err := strconv.ParseUint(name[dash+1:], 10, 31)
	// Folders that Kafka would not have named so ("t-007", "t-+7") are not partitions.
	if err != nil || strconv.FormatUint(n, 10) != name[dash+1:] || checkTopicName(name[:dash]) != nil {
		return logKey{}, false
	}
	return logKey{name[:dash], int32(n)}, true
}

func folderName(k logKey) string { return k.Topic + "-" + strconv.Itoa(int(k.Partition)) }

// loadDir recovers the logs of one directory and starts its journal.
func (s *Store) loadDir(ctx context.Context, d *dataDir, logs []found, p *progress) {
	if !d.clean && len(logs) > 0 {
		s.log.Info("data directory was not stopped cleanly: its logs are recovered", "dir", d.path, "logs", len(logs))
	}
	opened := make([]*Log, len(logs))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(s.o.RecoveryThreads, len(logs)) {
		workers.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(logs) || ctx.Err() != nil || d.offline() != nil {
					return
				}
				l, err := d.open(logs[i], p)
				if err != nil {
					d.judge(logs[i], err)
				}
				opened[i] = l
				p.logs.Add(1)
			}
		})
	}
	workers.Wait()
	live := opened[:0]
	for _, l := range opened {
		if l != nil {
			live = append(live, l)
		}
	}
	err := d.offline()
	if err == nil && ctx.Err() == nil {
		if err = d.serve(live); err != nil {
			d.fail(err)
		}
	}
	if err != nil || ctx.Err() != nil { // as after a crash; nothing of it was served
		for _, l := range live {
			l.discard()
		}
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.change(func(table map[checkpoint.TopicPartition]*Log) {
		for _, l := range live {
			table[checkpoint.TopicPartition(l.key())] = l
		}
	})
}

// open recovers one log.
func (d *dataDir) open(f found, p *progress) (*Log, error) {
	id, err := d.store.ids.idOf(f)
	if err != nil {
		return nil, err
	}
	key := checkpoint.TopicPartition(f.key)
	d.mu.Lock()
	point, hasPoint := d.mu.points[key]
	start := d.mu.starts[key]
	d.mu.Unlock()
	s := d.store
	var told int64
	l, err := openLog(f.path, &LogOptions{
		FS: d.fs, Topic: f.key.Topic, Partition: f.key.Partition, TopicID: id, Config: s.configOf(f.key.Topic),
		Journal:       d.journal,
		Entries:       d.replay(journal.LogID{Topic: id, Partition: f.key.Partition}),
		RecoveryPoint: Offset(point), StartOffset: Offset(start), Clean: d.clean && hasPoint,
		Checkpoint: d.checkpointFor, wrote: d.store.wrote, low: &d.low, Background: s.background,
		Logger: s.log, Now: s.o.Now, Indexes: s.indexes, Files: s.files,
		Progress: func(done, _ int64) {
			p.bytes.Add(done - told)
			told = done
		},
	})
	if err != nil {
		return nil, err
	}
	l.closeFiles()
	d.resumeCleaning(l)
	d.mu.Lock()
	d.mu.live[key] = l
	d.mu.Unlock()
	return l, nil
}

// judge tells a damaged log, which is set aside alone, from a directory that does not
// work. No space to replay the journal is the latter: what the journal holds may not be
// forgotten for it.
func (d *dataDir) judge(f found, err error) {
	var damage *CorruptError
	var format *checkpoint.FormatError
	if !errors.As(err, &damage) && !errors.As(err, &format) && (errors.Is(err, syscall.ENOSPC) || d.broken(err)) {
		d.fail(err)
		return
	}
	d.store.setAside(f, err)
	d.mu.Lock()
	d.mu.aside = true
	d.mu.Unlock()
}

// broken tells whether an error that came with one log is one of the device.
func (d *dataDir) broken(err error) bool {
	if errors.Is(err, syscall.EIO) || errors.Is(err, syscall.EROFS) {
		return true
	}
	_, err = d.fs.ReadDir(d.path)
	return err != nil
}

func (s *Store) setAside(f found, err error) {
	s.log.Error("log is damaged and set aside; its files are left as they are, the other logs serve",
		"dir", f.dir.path, "topic", f.key.Topic, "partition", f.key.Partition, "error", err)
	s.damaged.Lock()
	defer s.damaged.Unlock()
	s.damaged.list = append(s.damaged.list, DamagedLog{f.dir.path, f.key.Topic, f.key.Partition, err})
}

// serve ends recovery: all that it did is on disk before the journal forgets.
func (d *dataDir) serve(logs []*Log) error {
	unsynced := !d.clean
	for _, l := range logs {
		if l.RecoveryPoint() < l.End() || l.Size() == 0 {
			unsynced = true // an empty log may have got its first segment only now
		}
	}
	if err := d.begin(unsynced); err != nil {
		return err
	}
	gaps := false
	for _, l := range logs {
		if err := l.recovered(true); err != nil {
			return err
		}
		gaps = gaps || l.gaps
	}
	if gaps { // below the recovery point nobody asks again; above it they would be damage once the log is compacted no more
		return d.checkpoint()
	}
	return nil
}

// progress says how far a start is, for who waits for it.
type progress struct {
	store *Store
	total int
	begun time.Time
	logs  atomic.Int64
	bytes atomic.Int64
	stop  chan struct{}
	done  sync.WaitGroup
}

func newProgress(s *Store, total int) *progress {
	p := &progress{store: s, total: total, begun: time.Now(), stop: make(chan struct{})}
	p.done.Add(1)
	go p.run() // owner: load; ends with p.end, which waits for it
	return p
}

func (p *progress) run() {
	defer p.done.Done()
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-ticker.C:
			p.say()
		}
	}
}

func (p *progress) say() {
	done, took := p.logs.Load(), time.Since(p.begun)
	left := "unknown"
	if done > 0 {
		left = (took / time.Duration(done) * time.Duration(int64(p.total)-done)).Round(time.Second).String()
	}
	p.store.log.Info("loading logs", "loaded", done, "of", p.total,
		"read", humanize.IBytes(uint64(p.bytes.Load())), "left", left)
}

func (p *progress) end() {
	close(p.stop)
	p.done.Wait()
	p.store.log.Info("logs loaded", "loaded", p.logs.Load(), "of", p.total,
		"damaged", len(p.store.Damaged()), "read", humanize.IBytes(uint64(p.bytes.Load())),
		"took", time.Since(p.begun).Round(time.Millisecond).String())
}
