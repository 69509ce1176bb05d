package broker

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/engine"
	"millrace/wire"
)

// handleAlterReplicaLogDirs serves AlterReplicaLogDirs (KIP-113): each partition named
// is moved to the data directory that it is named under. The answer says that the move
// has begun; DescribeLogDirs shows how far it is. A partition that is in that directory
// already stays, and a move of it that is under way ends. One that is named more than
// once goes where it is named last.
func (b *Broker) handleAlterReplicaLogDirs(rc *requestContext, request kmsg.Request) kmsg.Response {
	req := request.(*kmsg.AlterReplicaLogDirsRequest)
	resp := req.ResponseKind().(*kmsg.AlterReplicaLogDirsResponse)
	topics := map[string]int{} // places in the answer
	for i := range req.Dirs {
		dir := &req.Dirs[i]
		for j := range dir.Topics {
			name := dir.Topics[j].Topic
			at, there := topics[name]
			if !there {
				at = len(resp.Topics)
				topics[name] = at
				t := kmsg.NewAlterReplicaLogDirsResponseTopic()
				t.Topic = name
				resp.Topics = append(resp.Topics, t)
			}
			for _, partition := range dir.Topics[j].Partitions {
				code := b.moveReplica(rc, name, partition, dir.Dir)
				setMoveAnswer(&resp.Topics[at], partition, code)
			}
		}
	}
	return resp
}

// setMoveAnswer enters the code of a partition, over that of an earlier mention.
func setMoveAnswer(t *kmsg.AlterReplicaLogDirsResponseTopic, partition int32, code int16) {
	for i := range t.Partitions {
		if t.Partitions[i].Partition == partition {
			t.Partitions[i].ErrorCode = code
			return
		}
	}
	p := kmsg.NewAlterReplicaLogDirsResponseTopicPartition()
	p.Partition, p.ErrorCode = partition, code
	t.Partitions = append(t.Partitions, p)
}

// moveReplica begins one move and says how it went in the answer, which has no room
// for a message, and in the log, which has.
func (b *Broker) moveReplica(rc *requestContext, topic string, partition int32, dir string) int16 {
	err := b.moveLog(topic, partition, dir)
	if err == nil {
		return wire.ErrNone
	}
	f := failureOf(err)
	level := slog.LevelInfo
	if f.serious {
		level = slog.LevelWarn
	}
	b.moveRefused.log(rc.log, level, "partition not moved: "+f.message, "topic", topic, "partition", partition, "dir", dir, "error", wire.ErrorName(f.code), "client_id", rc.header.ClientID)
	return f.code
}

func (b *Broker) moveLog(topic string, partition int32, dir string) error {
	own := ""
	for _, d := range b.config.LogDirs {
		if filepath.IsAbs(dir) && absolute(d) == filepath.Clean(dir) {
			own = d
		}
	}
	if own == "" {
		return fmt.Errorf("%w: %q is not a path of log.dirs", engine.ErrNoDir, dir)
	}
	err := b.store.Move(topic, partition, own)
	if !errors.Is(err, engine.ErrNoLog) {
		return err
	}
	// The directory is remembered: the partition will be made there.
	if p, unknown := b.partitionOf(topic, partition); unknown == nil && p.Log() == nil {
		return &engine.StorageError{Op: "move", Dir: own, Cause: errors.New("the partition's own directory is offline, or its log is damaged")}
	}
	if t := b.coord.Image().Topic(topic); t != nil && int(partition) < len(t.Partitions) && partition >= 0 {
		return &codedError{wire.ErrReplicaNotAvailable, "the partition has no replica here yet; it will be made in that directory"}
	}
	return errUnknownTopic
}
