package broker

import (
	"cmp"
	"log/slog"
	"path/filepath"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/engine"
	"millrace/wire"
)

// handleDescribeLogDirs serves DescribeLogDirs: what lies in each data directory, and
// how much more it takes.
func (b *Broker) handleDescribeLogDirs(rc *requestContext, request kmsg.Request) kmsg.Response {
	req := request.(*kmsg.DescribeLogDirsRequest)
	resp := req.ResponseKind().(*kmsg.DescribeLogDirsResponse)
	wanted := wantedLogs(req)
	logs := map[string][]replicaInDir{} // by directory; of each sorted by topic and partition
	for _, log := range b.store.Logs() {
		if wanted(log) {
			dir := filepath.Dir(log.Dir())
			logs[dir] = append(logs[dir], replicaInDir{log: log, size: log.Size()})
		}
	}
	for _, m := range b.store.Moves() {
		if wanted(m.Log) {
			behind := max(0, int64(m.Log.End()-m.End))
			logs[m.Dir] = append(logs[m.Dir], replicaInDir{log: m.Log, size: m.Bytes, behind: behind, future: true})
		}
	}
	for _, list := range logs {
		slices.SortStableFunc(list, func(a, b replicaInDir) int {
			return cmp.Or(cmp.Compare(a.log.Topic(), b.log.Topic()), cmp.Compare(a.log.Partition(), b.log.Partition()))
		})
	}
	offline := b.store.OfflineDirs()
	for _, dir := range b.config.LogDirs {
		d := kmsg.NewDescribeLogDirsResponseDir()
		d.Dir = absolute(dir)
		d.TotalBytes, d.UsableBytes = -1, -1 // unknown
		if err := offline[dir]; err != nil {
			d.ErrorCode = wire.ErrKafkaStorageError
			b.limits.storage.log(rc.log, slog.LevelWarn, "a data directory that is offline was asked about", "dir", dir, "error", err)
		} else {
			d.Topics = describeLogs(logs[filepath.Clean(dir)])
			d.TotalBytes, d.UsableBytes = b.space(dir)
		}
		resp.Dirs = append(resp.Dirs, d)
	}
	return resp
}

// wantedLogs tells which logs were asked for: null means all, an empty list none.
func wantedLogs(req *kmsg.DescribeLogDirsRequest) func(*engine.Log) bool {
	if req.Topics == nil {
		return func(*engine.Log) bool { return true }
	}
	wanted := make(map[string][]int32, len(req.Topics))
	for i := range req.Topics {
		t := &req.Topics[i]
		wanted[t.Topic] = append(wanted[t.Topic], t.Partitions...)
	}
	return func(log *engine.Log) bool { return slices.Contains(wanted[log.Topic()], log.Partition()) }
}

// replicaInDir is a log in a data directory, or its copy on the way there.
type replicaInDir struct {
	log    *engine.Log
	size   int64 // bytes
	behind int64 // offsets that a copy has still to follow
	future bool  // it is a copy
}

// describeLogs tells of logs that are sorted by topic. No replica of ours lags behind
// itself; a copy does behind the log.
func describeLogs(logs []replicaInDir) []kmsg.DescribeLogDirsResponseDirTopic {
	topics := []kmsg.DescribeLogDirsResponseDirTopic{}
	for i := range logs {
		log := logs[i].log
		if n := len(topics); n == 0 || topics[n-1].Topic != log.Topic() {
			t := kmsg.NewDescribeLogDirsResponseDirTopic()
			t.Topic = log.Topic()
			topics = append(topics, t)
		}
		p := kmsg.NewDescribeLogDirsResponseDirTopicPartition()
		p.Partition, p.Size, p.OffsetLag, p.IsFuture = log.Partition(), logs[i].size, logs[i].behind, logs[i].future
		t := &topics[len(topics)-1]
		t.Partitions = append(t.Partitions, p)
	}
	return topics
}

func absolute(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		return abs
	}
	return dir
}

// space is how much the file system of a directory holds, and how much of that is
// free, in bytes; -1 for what cannot be found out.
func (b *Broker) space(dir string) (total, usable int64) {
	fsys := b.config.fs()
	total, usable = -1, -1
	if n, err := fsys.Free(dir); err == nil {
		usable = n
	}
	if whole, ok := fsys.(interface{ Total(string) (int64, error) }); ok {
		if n, err := whole.Total(dir); err == nil {
			total = n
		}
	}
	return total, usable
}
