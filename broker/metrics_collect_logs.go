package broker

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"millrace/engine"
)

func (s series) partitions(b *Broker) {
	count, leaders, offline := 0, 0, 0
	for _, t := range b.replicas.Topics() {
		for _, p := range t.Partitions() {
			if p == nil {
				continue
			}
			count++
			if p.Log() == nil {
				offline++
			} else if p.Lead() == nil {
				leaders++
			}
		}
	}
	s.count(metricPartitions, int64(count))
	s.count(metricLeaders, int64(leaders))
	s.count(metricOffline, int64(offline))
	image := b.coord.Image()
	topics, partitions := 0, 0
	for _, name := range image.Names() {
		topics++
		partitions += len(image.Topic(name).Partitions)
	}
	s.count(metricTopics, int64(topics))
	s.count(metricAllPartitions, int64(partitions))
	failed := b.store.OfflineDirs()
	s.count(metricOfflineDirs, int64(len(failed)))
	for _, dir := range b.config.LogDirs {
		v := 0.0
		if failed[dir] != nil {
			v = 1
		}
		s.value(metricDirOffline, v, dir)
	}
	s.count(metricDamaged, int64(len(b.store.Damaged())))
}

// logs walks all logs: four series for each.
func (s series) logs(store *engine.Store) {
	pinned := 0
	for _, log := range store.Logs() {
		stats := log.Stats()
		pinned += stats.Pinned
		topic, partition := log.Topic(), strconv.Itoa(int(log.Partition()))
		s.count(metricLogSize, stats.Bytes, topic, partition)
		s.count(metricLogSegments, int64(stats.Segments), topic, partition)
		s.count(metricLogStart, int64(stats.Start), topic, partition)
		s.count(metricLogEnd, int64(stats.End), topic, partition)
	}
	s.count(metricPinned, int64(pinned))
	s.moves(store)
	s.cleaner(store)
	s.scrub(store)
	w := store.WriteStats()
	s.count(metricWrites, w.Writes)
	s.count(metricAppends, w.Appends)
}

// moves tells of partitions on their way to another data directory.
func (s series) moves(store *engine.Store) {
	active := store.Moves()
	behind := int64(0)
	for _, m := range active {
		behind = max(behind, int64(m.Log.End()-m.End))
	}
	s.count(metricMoves, int64(len(active)))
	s.count(metricMoveLag, behind)
	done := store.MoveStats()
	s.count(metricMoved, done.Done, "done")
	s.count(metricMoved, done.Failed, "failed")
	s.count(metricMoveBytes, done.Bytes)
}

// cleaner tells of compaction.
func (s series) cleaner(store *engine.Store) {
	c := store.CleanerStats()
	s.count(metricMaxDirty, int64(c.MaxDirty*100))
	s.count(metricUncleanable, int64(c.Uncleanable))
	s.count(metricCleanerDead, int64(c.Missing))
	s.count(metricPasses, c.Passes)
	s.count(metricCleanedBytes, c.BytesRead, "read")
	s.count(metricCleanedBytes, c.BytesWritten, "kept")
	s.count(metricCleanedCount, c.RecordsRead, "read")
	s.count(metricCleanedCount, c.RecordsKept, "kept")
}

// scrub tells of the verification of closed segments.
func (s series) scrub(store *engine.Store) {
	c := store.ScrubStats()
	s.count(metricScrubBytes, c.Bytes)
	s.count(metricScrubSegments, c.Segments)
	s.count(metricScrubPasses, c.Passes)
	s.count(metricScrubIndexes, c.Indexes)
	for dir, n := range c.Damaged {
		s.count(metricScrubDamaged, int64(n), dir)
	}
}

func (s series) journals(store *engine.Store) {
	for _, j := range store.JournalStats() {
		for _, row := range [...]struct {
			m *metric
			n uint64
		}{
			{metricRounds, j.Rounds}, {metricBlocks, j.Blocks}, {metricJournal, j.BlockBytes}, {metricRecords, j.Records},
			{metricWaiters, j.Waiters}, {metricSynced, j.Synced}, {metricLarge, j.Large}, {metricFallbacks, j.Fallbacks},
			{metricUnplaced, j.Unplaced}, {metricRecycled, j.Recycled},
		} {
			s.value(row.m, float64(row.n), j.Dir)
		}
		cumulative := map[float64]uint64{}
		n := uint64(0)
		for i := range len(j.Latency) - 1 { // the last one is +Inf
			if n += j.Latency[i]; i >= firstRoundBucket {
				cumulative[(time.Microsecond << i).Seconds()] = n
			}
		}
		n += j.Latency[len(j.Latency)-1]
		s.out <- prometheus.MustNewConstHistogram(metricRoundTime.desc, n, j.Time.Seconds(), cumulative, j.Dir)
	}
}

// firstRoundBucket: no disk syncs in less than 2^4 µs.
const firstRoundBucket = 4
