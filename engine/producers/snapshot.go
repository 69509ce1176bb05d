package producers

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"millrace/engine/vfs"
)

// Snapshot format, version 1: int16 version, uint32 CRC-32C of all that follows it,
// int32 count, and per producer 46 bytes: id int64, epoch int16, last sequence int32,
// last offset int64, offset delta int32, timestamp int64, coordinator epoch int32,
// first offset of the open transaction int64.
const (
	version    = 1
	headerSize = 10
	entrySize  = 46
	suffix     = ".snapshot"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Snapshot encodes the table, producers ascending, so that equal tables give equal bytes.
func (t *Table) Snapshot() []byte {
	ids := make([]int64, 0, len(t.byID))
	for id := range t.byID {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	b := make([]byte, headerSize, headerSize+len(ids)*entrySize)
	binary.BigEndian.PutUint16(b, version)
	binary.BigEndian.PutUint32(b[6:], uint32(len(ids)))
	for _, id := range ids {
		p := t.byID[id]
		k := kept{lastSeq: noSequence, lastOffset: noOffset}
		if p.count > 0 {
			k = *p.last()
		}
		b = binary.BigEndian.AppendUint64(b, uint64(id))
		b = binary.BigEndian.AppendUint16(b, uint16(p.epoch))
		b = binary.BigEndian.AppendUint32(b, uint32(k.lastSeq))
		b = binary.BigEndian.AppendUint64(b, uint64(k.lastOffset))
		b = binary.BigEndian.AppendUint32(b, uint32(k.delta))
		b = binary.BigEndian.AppendUint64(b, uint64(p.timestamp))
		b = binary.BigEndian.AppendUint32(b, uint32(p.coordinatorEpoch))
		b = binary.BigEndian.AppendUint64(b, uint64(p.txnFirst))
	}
	binary.BigEndian.PutUint32(b[2:], crc32.Checksum(b[6:], castagnoli))
	return b
}

// Load replaces the table by a snapshot, leaving out producers whose last batch is
// older than the expiry time. err is a *CorruptError; the table is then empty.
func (t *Table) Load(b []byte, now time.Time) error {
	t.Reset()
	if len(b) < headerSize {
		return &CorruptError{Reason: fmt.Sprintf("%d bytes are less than a header", len(b))}
	}
	if v := int16(binary.BigEndian.Uint16(b)); v != version {
		return &CorruptError{Reason: fmt.Sprintf("version %d, want %d", v, version)}
	}
	if want, got := binary.BigEndian.Uint32(b[2:]), crc32.Checksum(b[6:], castagnoli); want != got {
		return &CorruptError{Reason: fmt.Sprintf("checksum %08x, want %08x", got, want)}
	}
	count, rest := int(int32(binary.BigEndian.Uint32(b[6:]))), b[headerSize:]
	if count < 0 || len(rest) != count*entrySize {
		return &CorruptError{Reason: fmt.Sprintf("%d bytes for %d producers", len(rest), count)}
	}
	for ; len(rest) > 0; rest = rest[entrySize:] {
		t.loadOne(rest[:entrySize], now.UnixMilli())
	}
	return nil
}

func (t *Table) loadOne(e []byte, now int64) {
	p := &producer{
		epoch:            int16(binary.BigEndian.Uint16(e[8:])),
		timestamp:        int64(binary.BigEndian.Uint64(e[26:])),
		coordinatorEpoch: int32(binary.BigEndian.Uint32(e[34:])),
		txnFirst:         int64(binary.BigEndian.Uint64(e[38:])),
	}
	if p.txnFirst == noOffset && now-p.timestamp >= t.expire.Milliseconds() {
		return
	}
	p.idleSince = min(max(p.timestamp, 1), now)
	if last := int64(binary.BigEndian.Uint64(e[14:])); last >= 0 {
		p.push(kept{
			lastSeq:    int32(binary.BigEndian.Uint32(e[10:])),
			lastOffset: last,
			delta:      int32(binary.BigEndian.Uint32(e[22:])),
			timestamp:  p.timestamp,
		})
	}
	if t.byID == nil {
		t.byID = make(map[int64]*producer)
	}
	t.byID[int64(binary.BigEndian.Uint64(e))] = p
}

// SnapshotName returns the file name for an offset: everything below it is covered.
func SnapshotName(offset int64) string { return fmt.Sprintf("%020d%s", offset, suffix) }

// ParseSnapshotName is its inverse.
func ParseSnapshotName(name string) (offset int64, ok bool) {
	digits, found := strings.CutSuffix(name, suffix)
	if !found || len(digits) != 20 {
		return 0, false
	}
	offset, err := strconv.ParseInt(digits, 10, 64)
	return offset, err == nil && offset >= 0
}

// WriteSnapshot writes <offset>.snapshot into dir. It is written beside and renamed,
// but not synced: a torn one is known by its checksum, and the log is the truth.
// Who deletes the batches behind it syncs it first.
func (t *Table) WriteSnapshot(fsys vfs.FS, dir string, offset int64) (err error) {
	path := filepath.Join(dir, SnapshotName(offset))
	f, err := createAnew(fsys, path+".tmp")
	if err != nil {
		return fmt.Errorf("producer snapshot: %w", err)
	}
	_, err = f.WriteAt(t.Snapshot(), 0)
	if err = errors.Join(err, f.Close()); err == nil {
		err = fsys.Rename(path+".tmp", path)
	}
	if err != nil {
		return fmt.Errorf("producer snapshot: %w", err)
	}
	return nil
}

// createAnew makes a file that has never held anything else. One of that name may be left from a rename that a loss of power took back; were
// it emptied and written again, unsynced, the next loss of power could keep the new rename alone and bring its former bytes back, which are whole.
func createAnew(fsys vfs.FS, name string) (vfs.File, error) {
	const flag = os.O_RDWR | os.O_CREATE | os.O_EXCL
	f, err := fsys.OpenFile(name, flag)
	if !errors.Is(err, fs.ErrExist) {
		return f, err
	}
	if err := fsys.Remove(name); err != nil {
		return nil, err
	}
	return fsys.OpenFile(name, flag)
}

// Snapshots lists the offsets of the snapshots in dir, ascending.
func Snapshots(fsys vfs.FS, dir string) ([]int64, error) {
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("producer snapshots: %w", err)
	}
	var offsets []int64
	for _, e := range entries { // sorted, and 20 digits sort as numbers do
		if off, ok := ParseSnapshotName(e.Name); ok && !e.IsDir {
			offsets = append(offsets, off)
		}
	}
	return offsets, nil
}

// LatestSnapshot returns the largest snapshot offset at or below maxOffset, -1 if
// there is none.
func LatestSnapshot(fsys vfs.FS, dir string, maxOffset int64) (int64, error) {
	offsets, err := Snapshots(fsys, dir)
	i, found := slices.BinarySearch(offsets, maxOffset)
	if found {
		return maxOffset, nil
	}
	if i == 0 {
		return -1, err
	}
	return offsets[i-1], err
}

// LoadLatest loads the newest whole snapshot at or below maxOffset and returns its
// offset, -1 if there is none: the table is empty then. Corrupt ones are removed.
func (t *Table) LoadLatest(fsys vfs.FS, dir string, maxOffset int64, now time.Time) (int64, error) {
	offsets, err := Snapshots(fsys, dir)
	if err != nil {
		return -1, err
	}
	for _, off := range slices.Backward(offsets) {
		if off > maxOffset {
			continue
		}
		err := t.LoadFile(fsys, filepath.Join(dir, SnapshotName(off)), now)
		var damaged *CorruptError
		switch {
		case err == nil:
			return off, nil
		case errors.As(err, &damaged):
			if err := fsys.Remove(damaged.File); err != nil {
				return -1, fmt.Errorf("remove corrupt producer snapshot: %w", err)
			}
		case !errors.Is(err, fs.ErrNotExist):
			return -1, err
		}
	}
	t.Reset()
	return -1, nil
}

// LoadFile is Load from one file. A *CorruptError names the file.
func (t *Table) LoadFile(fsys vfs.FS, path string, now time.Time) error {
	t.Reset()
	f, err := fsys.OpenFile(path, os.O_RDONLY)
	if err != nil {
		return fmt.Errorf("producer snapshot: %w", err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return fmt.Errorf("producer snapshot: %w", err)
	}
	if size > maxSnapshotBytes {
		return &CorruptError{File: path, Reason: fmt.Sprintf("%d bytes are more than a snapshot can have", size)}
	}
	b := make([]byte, size)
	if n, err := f.ReadAt(b, 0); n < len(b) {
		return fmt.Errorf("producer snapshot: %w", errors.Join(err, io.ErrUnexpectedEOF))
	}
	err = t.Load(b, now)
	var damaged *CorruptError
	if errors.As(err, &damaged) {
		damaged.File = path
	}
	return err
}
