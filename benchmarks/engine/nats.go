package main

import (
	"path/filepath"
	"strconv"
	"unsafe"

	"github.com/nats-io/nats-server/v2/server"
)

// NATS' file store, without the server around it: its constructor is not exported, so its functions are linked by name; the version is fixed in go.mod.
// Unsynced, StoreMsg writes to the page cache (one write a message: there is no call for several). Synced, the store is set to sync when it is told
// to flush, as a replicated stream with sync_interval "always" is, and one flush follows each group of appends. It keeps the block that is written in memory.
var natsPeer = peer{name: "nats file store", module: "github.com/nats-io/nats-server/v2", open: openNATS}

//go:linkname newFileStore github.com/nats-io/nats-server/v2/server.newFileStore
func newFileStore(f server.FileStoreConfig, c server.StreamConfig) (unsafe.Pointer, error)

//go:linkname natsStore github.com/nats-io/nats-server/v2/server.(*fileStore).StoreMsg
func natsStore(fs unsafe.Pointer, subject string, header, msg []byte, ttl int64) (uint64, int64, error)

//go:linkname natsFlush github.com/nats-io/nats-server/v2/server.(*fileStore).FlushAllPending
func natsFlush(fs unsafe.Pointer) error

//go:linkname natsLoad github.com/nats-io/nats-server/v2/server.(*fileStore).LoadMsg
func natsLoad(fs unsafe.Pointer, seq uint64, m *server.StoreMsg) (*server.StoreMsg, error)

//go:linkname natsState github.com/nats-io/nats-server/v2/server.(*fileStore).FastState
func natsState(fs unsafe.Pointer, s *server.StreamState)

//go:linkname natsStop github.com/nats-io/nats-server/v2/server.(*fileStore).Stop
func natsStop(fs unsafe.Pointer) error

// natsMsg has the fields of server.StoreMsg, none of which is exported.
type natsMsg struct {
	subject  string
	hdr, msg []byte
	buf      []byte
	seq      uint64
	ts       int64
}

const _ = unsafe.Sizeof(server.StoreMsg{}) - unsafe.Sizeof(natsMsg{}) // does not compile if another field comes
const _ = unsafe.Sizeof(natsMsg{}) - unsafe.Sizeof(server.StoreMsg{})

type natsLogs struct{ logs []*natsLog }

type natsLog struct {
	fs     unsafe.Pointer
	synced bool
	combiner
}

func openNATS(dir string, o options) (store, error) {
	logs, err := openAll(o.logs, func(i int) (*natsLog, error) {
		name := strconv.Itoa(i)
		fs, err := newFileStore(server.FileStoreConfig{StoreDir: filepath.Join(dir, name), SyncAlways: o.synced, SyncOnFlush: o.synced},
			server.StreamConfig{Name: name, Subjects: []string{"s"}, Storage: server.FileStorage})
		if err != nil {
			return nil, err
		}
		l := &natsLog{fs: fs, synced: o.synced}
		l.alone, l.flush = o.writers == 1, l.store
		return l, nil
	})
	return &natsLogs{logs}, err
}

func (l *natsLog) store(records [][]byte) error {
	for _, r := range records {
		if _, _, err := natsStore(l.fs, "s", nil, r, 0); err != nil {
			return err
		}
	}
	if !l.synced {
		return nil
	}
	return natsFlush(l.fs)
}

func (l *natsLog) close() error { return natsStop(l.fs) }

func (s *natsLogs) writer() func(int, [][]byte) error {
	return func(log int, records [][]byte) error { return s.logs[log].append(log, records) }
}

func (s *natsLogs) scan(log int, each func([]byte) error) error {
	var state server.StreamState
	natsState(s.logs[log].fs, &state)
	return (&natsReader{fs: s.logs[log].fs}).read(0, int(state.Msgs), each)
}

func (s *natsLogs) reader(bool) (reader, error) { return &natsReader{fs: s.logs[0].fs}, nil }
func (s *natsLogs) close() error                { return closeAll(s.logs) }

type natsReader struct {
	fs unsafe.Pointer
	m  server.StoreMsg
}

func (r *natsReader) read(first int64, n int, each func([]byte) error) error {
	for i := range n {
		m, err := natsLoad(r.fs, uint64(first)+uint64(i)+1, &r.m)
		if err != nil {
			return err
		}
		if err := each((*natsMsg)(unsafe.Pointer(m)).msg); err != nil {
			return err
		}
	}
	return nil
}

func (r *natsReader) close() error { return nil }
