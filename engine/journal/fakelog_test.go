package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"math"
	"os"
	"sync"
	"sync/atomic"

	"millrace/engine/vfs"
)

const dataDir = "data"

// fakeLog is the smallest log that keeps the Owner contract: one file, a start offset, then batches that look like Kafka's
// as far as the journal looks (offset, size, magic, last offset delta).
type fakeLog struct {
	fs   vfs.FS
	id   LogID
	name string
	j    *Journal
	file vfs.File
	// fileMu guards file against SyncTargets; whoever appends or cuts is alone.
	fileMu sync.Mutex

	start int64
	size  int64
	all   []batch // what is in the file, in order

	end     atomic.Int64
	durable atomic.Int64
	synced  atomic.Int64
	notices atomic.Int64
	pins    atomic.Int64
}

// batch is one batch: the offsets [base, base+count) and which of all batches ever written it is.
type batch struct {
	base, count int64
	serial      uint64
	size        int // of the payload
}

func (b batch) end() int64 { return b.base + b.count }

const batchHead = 27

// bytes is the batch as it stands: the payload follows from the serial, so that any mix-up of bytes is seen.
func (b batch) bytes() []byte {
	p := make([]byte, batchHead+8+b.size)
	be := binary.BigEndian
	be.PutUint64(p, uint64(b.base))
	be.PutUint32(p[8:], uint32(len(p)-12))
	p[16] = 2
	be.PutUint32(p[23:], uint32(b.count-1))
	be.PutUint64(p[batchHead:], b.serial)
	for i := batchHead + 8; i < len(p); i++ {
		p[i] = byte(b.serial*31 + uint64(i))
	}
	be.PutUint32(p[17:], crc32.Checksum(p[21:], castagnoli))
	return p
}

// nextBatch takes the first batch off p; ok is false if there is no whole one.
func nextBatch(p []byte) (b batch, rest []byte, ok bool) {
	if len(p) < batchHead+8 {
		return b, p, false
	}
	be := binary.BigEndian
	size := int(be.Uint32(p[8:])) + 12
	if size < batchHead+8 || size > len(p) || be.Uint32(p[17:]) != crc32.Checksum(p[21:size], castagnoli) {
		return b, p, false
	}
	b = batch{
		base:   int64(be.Uint64(p)),
		count:  int64(be.Uint32(p[23:])) + 1,
		serial: be.Uint64(p[batchHead:]),
		size:   size - batchHead - 8,
	}
	if !bytes.Equal(b.bytes(), p[:size]) {
		return b, p, false
	}
	return b, p[size:], true
}

func fakeID(name string) LogID { return LogID{Topic: [16]byte{0: 'T', 1: name[0]}, Partition: 7} }

// openFake opens or makes a log and brings back what the journal has of it: recovery as log.go does it.
func openFake(fsys vfs.FS, j *Journal, name string) (*fakeLog, error) {
	l := &fakeLog{fs: fsys, j: j, id: fakeID(name), name: dataDir + "/" + name + ".log"}
	if _, err := fsys.Stat(l.name); errors.Is(err, fs.ErrNotExist) {
		if err := l.makeFile(0); err != nil {
			return nil, err
		}
	}
	var err error
	if l.file, err = fsys.OpenFile(l.name, os.O_RDWR); err != nil {
		return nil, err
	}
	size, err := l.file.Size()
	if err != nil {
		return nil, err
	}
	p := make([]byte, size)
	if _, err := l.file.ReadAt(p, 0); err != nil {
		return nil, err
	}
	l.start = int64(binary.BigEndian.Uint64(p))
	l.size = 8
	l.end.Store(l.start)
	for rest := p[8:]; ; {
		b, r, ok := nextBatch(rest)
		if !ok || b.base != l.end.Load() {
			break
		}
		l.took(b)
		rest = r
	}
	// What was found is written again in place, and its end cut again: after a sync that failed, a machine that went on running shows
	// a state that the disk does not have and that no later sync brings there.
	if _, err := l.file.WriteAt(append(p[:l.size:l.size], 0), 0); err != nil {
		return nil, err
	}
	if err := l.file.Truncate(l.size); err != nil {
		return nil, err
	}
	for _, e := range j.Replay(l.id) {
		if e.Base > l.end.Load() {
			break
		}
		if err := l.replay(&e); err != nil {
			return nil, err
		}
	}
	if err := l.file.Sync(); err != nil {
		return nil, err
	}
	l.durable.Store(l.end.Load())
	l.synced.Store(l.end.Load())
	return l, nil
}

func (l *fakeLog) took(b batch) {
	l.all = append(l.all, b)
	l.size += int64(batchHead + 8 + b.size)
	l.end.Store(b.end())
}

// replay applies one entry: what is there already is passed over, one that is there in part is completed.
func (l *fakeLog) replay(e *Entry) error {
	p := make([]byte, e.Size)
	if err := e.Read(p); err != nil {
		return err
	}
	for len(p) > 0 {
		b, rest, ok := nextBatch(p)
		if !ok {
			return fmt.Errorf("entry [%d,%d) of %s holds no batch %d bytes before its end", e.Base, e.End, l.name, len(p))
		}
		one := p[:len(p)-len(rest)]
		p = rest
		if b.base != l.end.Load() {
			continue // there, or below the start, or from before a reset that no Cut record tells of yet
		}
		if _, err := l.file.WriteAt(one, l.size); err != nil {
			return err
		}
		l.took(b)
	}
	return nil
}

func (l *fakeLog) makeFile(start int64) error {
	f, err := l.fs.OpenFile(l.name+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteAt(binary.BigEndian.AppendUint64(nil, uint64(start)), 0); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := l.fs.Rename(l.name+".new", l.name); err != nil {
		return err
	}
	return l.fs.SyncDir(dataDir)
}

// append writes batches with one write and gives them to the journal with one Add.
func (l *fakeLog) append(batches ...batch) (Ticket, error) {
	base := l.end.Load()
	var data [][]byte
	for i := range batches {
		batches[i].base = base
		if i > 0 {
			batches[i].base = batches[i-1].end()
		}
		data = append(data, batches[i].bytes())
	}
	if _, err := l.file.WriteVAt(data, l.size); err != nil {
		return Ticket{}, err
	}
	for _, b := range batches {
		l.took(b)
	}
	return l.j.Add(l, 3, base, l.end.Load(), data), nil
}

// truncate takes back every batch that ends above to. It returns when that is durable.
func (l *fakeLog) truncate(to int64) error {
	keep := l.all
	size := l.size
	for len(keep) > 0 && keep[len(keep)-1].end() > to {
		size -= int64(batchHead + 8 + keep[len(keep)-1].size)
		keep = keep[:len(keep)-1]
	}
	if err := l.file.Truncate(size); err != nil {
		return err
	}
	if err := l.file.Sync(); err != nil {
		l.j.Fail(err)
		return err
	}
	end := l.start
	if len(keep) > 0 {
		end = keep[len(keep)-1].end()
	}
	l.all, l.size = keep[:len(keep):len(keep)], size
	l.end.Store(end)
	return l.cut(end, end)
}

func (l *fakeLog) cut(end, from int64) error {
	t := l.j.Cut(l, from)
	l.durable.Store(min(l.durable.Load(), end))
	l.synced.Store(min(l.synced.Load(), end))
	return l.j.Wait(t)
}

// reset empties the log and lets it begin at start. It returns when that is durable.
func (l *fakeLog) reset(start int64) error {
	if err := l.makeFile(start); err != nil {
		l.j.Fail(err)
		return err
	}
	f, err := l.fs.OpenFile(l.name, os.O_RDWR)
	if err != nil {
		return err
	}
	l.swapFile(f)
	l.start, l.size, l.all = start, 8, nil
	l.end.Store(start)
	if err := l.cut(start, math.MinInt64); err != nil {
		return err
	}
	l.durable.Store(start)
	l.synced.Store(start)
	return nil
}

// swapFile leaves the old file open: somebody may be syncing it.
func (l *fakeLog) swapFile(f vfs.File) {
	l.fileMu.Lock()
	defer l.fileMu.Unlock()
	l.file = f
}

func (l *fakeLog) ID() LogID  { return l.id }
func (l *fakeLog) End() int64 { return l.end.Load() }
func (l *fakeLog) Notify()    { l.notices.Add(1) }

// Both under the journal's lock, so that a plain rise is whole.
func (l *fakeLog) Synced(end int64)        { l.durable.Store(max(l.durable.Load(), end)) }
func (l *fakeLog) SegmentSynced(end int64) { l.synced.Store(max(l.synced.Load(), end)) }

func (l *fakeLog) SyncTargets() []vfs.File {
	l.pins.Add(1)
	l.fileMu.Lock()
	defer l.fileMu.Unlock()
	return []vfs.File{l.file}
}

func (l *fakeLog) ReleaseTargets(files []vfs.File) {
	if l.pins.Add(-1) < 0 || len(files) != 1 {
		panic("released what was not taken")
	}
}
