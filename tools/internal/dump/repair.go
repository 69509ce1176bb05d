package dump

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"millrace/engine/batch"
	"millrace/engine/checkpoint"
	"millrace/engine/vfs"
)

// Saved is what a repair did, or would do, to one segment.
type Saved struct {
	File       string
	Kept, Lost int   // batches; lost ones could still be told as such
	KeptBytes  int64 // of whole batches
	LostBytes  int64
	FirstLost  int64 // offset behind the last good batch before the first loss; -1 none
	Filled     int64 // offsets at the end that are without records now
}

// Repair saves the whole batches of a partition's folder: each damaged segment is written anew with those that are whole and in order, and
// its indexes and the snapshots of producers, which the broker makes again, are removed. Everything that is changed is first copied to backup.
// The last segment gets an empty batch up to offset upTo, if the records end below it, so that the broker, which knows of more, takes the log
// for whole and gives no offset out twice; a negative upTo means what the data directory's recovery-point-offset-checkpoint says. With dry nothing is
// changed. The folder's broker must not be running: its lock is taken.
func Repair(dir, backup string, upTo int64, dry bool) ([]Saved, error) {
	logs, err := segmentsOf(dir)
	if err == nil && upTo < 0 {
		upTo, err = recoveryPoint(dir)
	}
	if err != nil {
		return nil, err
	}
	if !dry {
		lock, err := vfs.OS().Lock(filepath.Join(filepath.Dir(filepath.Clean(dir)), ".lock"))
		if err != nil {
			return nil, fmt.Errorf("the data directory is in use; stop its broker first: %w", err)
		}
		defer lock.Close()
	}
	var all []Saved
	end, epoch := int64(-1), int32(-1)
	for i, log := range logs {
		s, whole, err := salvage(log, &end, &epoch)
		if err != nil {
			return all, err
		}
		if i == len(logs)-1 {
			s.Filled = max(upTo-max(end, 0), 0)
		}
		if s.LostBytes == 0 && s.Filled == 0 {
			continue
		}
		all = append(all, s)
		if dry {
			continue
		}
		if err := replace(dir, backup, log, whole, filler(max(end, 0), s.Filled, epoch)); err != nil {
			return all, err
		}
	}
	if dry || len(all) == 0 {
		return all, nil
	}
	return all, setAsideState(dir, backup)
}

// piece is a run of whole batches.
type piece struct{ from, to int64 }

// salvage finds the whole batches of a segment. Behind damage it looks for the next place where a batch begins that is whole, down to its
// checksum, and goes on in the order of offsets.
func salvage(path string, end *int64, epoch *int32) (Saved, []piece, error) {
	s := Saved{File: filepath.Base(path), FirstLost: -1}
	f, err := os.Open(path)
	if err != nil {
		return s, nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return s, nil, err
	}
	var whole []piece
	lost := func(n int64) {
		if s.LostBytes == 0 {
			s.FirstLost = max(*end, 0)
		}
		s.LostBytes += n
	}
	for pos := int64(0); pos < st.Size(); {
		b, err := batchFrom(f, pos, st.Size())
		if err != nil {
			return s, nil, err
		}
		info, bad := batch.CheckStored(b)
		if b == nil || bad != nil || info.BaseOffset < *end {
			if b != nil && bad != nil && framed(f, pos+int64(len(b)), st.Size()) {
				s.Lost++ // what follows is a batch: only this one is bad
				lost(int64(len(b)))
				pos += int64(len(b))
				continue
			}
			lost(1)
			pos++
			continue
		}
		*end = info.LastOffset() + 1
		if info.Magic >= 2 {
			*epoch = batch.View(b).LeaderEpoch()
		}
		s.Kept++
		s.KeptBytes += int64(len(b))
		if n := len(whole); n > 0 && whole[n-1].to == pos {
			whole[n-1].to += int64(len(b))
		} else {
			whole = append(whole, piece{pos, pos + int64(len(b))})
		}
		pos += int64(len(b))
	}
	return s, whole, nil
}

// batchFrom reads what looks like an entry at pos; nil if nothing can be one.
func batchFrom(f *os.File, pos, size int64) ([]byte, error) {
	head := make([]byte, min(batch.HeaderSize, size-pos))
	if _, err := f.ReadAt(head, pos); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	n, err := batch.Split(head)
	if n == 0 || err != nil && !errors.Is(err, batch.ErrShort) || int64(n) > size-pos {
		return nil, nil
	}
	b := make([]byte, n)
	if _, err := f.ReadAt(b, pos); err != nil {
		return nil, err
	}
	return b, nil
}

// framed tells whether the file ends at pos or a whole batch begins there.
func framed(f *os.File, pos, size int64) bool {
	if pos == size {
		return true
	}
	b, err := batchFrom(f, pos, size)
	if err != nil || b == nil {
		return false
	}
	_, err = batch.CheckStored(b)
	return err == nil
}

// replace writes a segment anew with its whole pieces, after a copy of the old one, and takes its indexes away.
func replace(dir, backup, log string, whole []piece, filler []byte) error {
	if err := os.MkdirAll(backup, 0o755); err != nil {
		return err
	}
	if err := copyFile(log, filepath.Join(backup, filepath.Base(log))); err != nil {
		return err
	}
	in, err := os.Open(log)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(log + ".repair")
	if err != nil {
		return err
	}
	for _, p := range whole {
		if _, err = io.Copy(out, io.NewSectionReader(in, p.from, p.to-p.from)); err != nil {
			break
		}
	}
	if err == nil {
		_, err = out.Write(filler)
	}
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		return err
	}
	for _, kind := range []string{".index", ".timeindex"} {
		if err := moveTo(backup, strings.TrimSuffix(log, ".log")+kind); err != nil {
			return err
		}
	}
	if err := os.Rename(log+".repair", log); err != nil {
		return err
	}
	return vfs.OS().SyncDir(dir)
}

// filler is empty batches over n offsets from base on.
func filler(base, n int64, epoch int32) (out []byte) {
	for n > 0 {
		span := min(n, math.MaxInt32)
		out = append(out, batch.NewBuilder(batch.None, batch.DefaultLevel).Bytes(batch.Base(base, epoch), batch.LastDelta(int32(span-1)))...)
		base, n = base+span, n-span
	}
	return out
}

// recoveryPoint is up to where the data directory says that the partition was synced; 0 if it says nothing.
func recoveryPoint(dir string) (int64, error) {
	dir = filepath.Clean(dir)
	points, err := checkpoint.ReadOffsets(vfs.OS(), filepath.Join(filepath.Dir(dir), checkpoint.RecoveryPoints))
	if err != nil {
		return 0, err
	}
	name := filepath.Base(dir)
	dash := strings.LastIndexByte(name, '-')
	if dash < 0 {
		return 0, fmt.Errorf("%s is not named topic-partition", dir)
	}
	n, err := strconv.ParseInt(name[dash+1:], 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%s is not named topic-partition: %w", dir, err)
	}
	return points[checkpoint.TopicPartition{Topic: name[:dash], Partition: int32(n)}], nil
}

// setAsideState takes away what tells of the old records.
func setAsideState(dir, backup string) error {
	snapshots, err := filepath.Glob(filepath.Join(dir, "*.snapshot"))
	if err != nil {
		return err
	}
	for _, s := range snapshots {
		if err := moveTo(backup, s); err != nil {
			return err
		}
	}
	return vfs.OS().SyncDir(dir)
}

func moveTo(backup, path string) error {
	err := copyFile(path, filepath.Join(backup, filepath.Base(path)))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.Remove(path)
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}
