package zk

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"millrace/coord/zk/server"
	"millrace/coord/zk/store"
	"millrace/coord/zk/tree"
	"millrace/engine"
	"millrace/engine/checkpoint"
	"millrace/engine/vfs"
)

// Names below Options.Dir.
const (
	logName      = "log-0"
	snapshotName = "snapshots"
	secretName   = "secret"
)

// journalBytes is the size of a file of the log's journal, of which there are two: small, since an empty start makes the first.
const journalBytes = 2 << 20

// secretBytes is how many random bytes session passwords are made with.
const secretBytes = 32

// Options say where a service keeps its tree and how it serves. Dir must be given; the zero value of each other field is usable. Without Listener and
// Address only Dial connects. The key of ZooKeeper's configuration is named beside each field that has one.
type Options struct {
	Dir     string // dataDir: log, snapshots and secret; made if it is not there; of one service at a time
	Address string // clientPortAddress:clientPort, if there is no Listener; port 0: a free one
	FS      vfs.FS // nil: vfs.OS()

	server.Config // its Listener is closed also if Start fails

	SnapshotEvery int   // snapCount: transactions from one snapshot to the next; 0: store.DefaultSnapshotEvery
	SnapshotBytes int64 // snapSizeLimitInKb: likewise, bytes of transactions; 0: store.DefaultSnapshotBytes
	Keep          int   // autopurge.snapRetainCount: snapshots kept; 0: store.DefaultKeep
}

// Service is coordination on one node, kept in one folder.
type Service struct {
	*server.Server
	store *store.Store
	log   *engine.Log
}

// Start recovers what is in o.Dir and serves it until Close. A second service over the same folder is refused, in this process and in others; the log's
// lock sees to that. An error names the folder or the address, and the reason.
func Start(o Options) (_ *Service, err error) {
	if o.Listener == nil && o.Address != "" {
		if o.Listener, err = net.Listen("tcp", o.Address); err != nil {
			return nil, fmt.Errorf("coordination cannot listen: %w", err)
		}
	}
	fail := func(err error) (*Service, error) {
		if o.Listener != nil {
			o.Listener.Close()
		}
		return nil, fmt.Errorf("coordination in %s: %w", o.Dir, err)
	}
	s, err := open(&o)
	if err != nil {
		return fail(err)
	}
	secret, err := secretOf(o.FS, filepath.Join(o.Dir, secretName))
	if err == nil {
		s.Server, err = server.Start(s.store, secret, o.Config)
	}
	if err != nil {
		return fail(errors.Join(err, s.closeFiles()))
	}
	return s, nil
}

// open recovers the tree.
func open(o *Options) (*Service, error) {
	if o.Dir == "" {
		return nil, errors.New("no folder is given")
	}
	if o.FS == nil {
		o.FS = vfs.OS()
	}
	log, err := engine.OpenLog(filepath.Join(o.Dir, logName), engine.LogOptions{FS: o.FS, Config: store.LogConfig(), JournalBytes: journalBytes, Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	st, err := store.Open(log, store.Options{
		FS: o.FS, Dir: filepath.Join(o.Dir, snapshotName), Logger: o.Logger,
		SnapshotEvery: o.SnapshotEvery, SnapshotBytes: o.SnapshotBytes, Keep: o.Keep,
	})
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return &Service{store: st, log: log}, nil
}

// Close ends all connections, but no session, and closes the files, so that the next start need not look for what a crash has left.
func (s *Service) Close() error {
	s.Server.Close()
	return s.closeFiles()
}

func (s *Service) closeFiles() error {
	s.store.Close()
	return s.log.Close()
}

// View lets f read the tree (see store.Store.View).
func (s *Service) View(f func(*tree.Tree)) { s.store.View(f) }

// secretOf reads the secret that session passwords are made with, or makes one: it must be the same after a restart, or no session is resumed. Nobody
// else may read the file.
func secretOf(fsys vfs.FS, path string) ([]byte, error) {
	text, err := checkpoint.ReadFile(fsys, path)
	if errors.Is(err, fs.ErrNotExist) {
		return newSecret(fsys, path)
	}
	if err != nil {
		return nil, err
	}
	secret, err := hex.DecodeString(string(bytes.TrimSpace(text)))
	if err == nil && len(secret) != secretBytes {
		err = fmt.Errorf("%d bytes, not %d", len(secret), secretBytes)
	}
	if err != nil {
		return nil, fmt.Errorf("%s is not a secret: %w; remove it and a new one is made, which ends no session but lets none be resumed", path, err)
	}
	return secret, nil
}

func newSecret(fsys vfs.FS, path string) ([]byte, error) {
	secret := make([]byte, secretBytes)
	if _, err := io.ReadFull(rand.Reader, secret); err != nil {
		return nil, err
	}
	beside := path + ".tmp"
	f, err := fsys.OpenFile(beside, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return nil, err
	}
	if fsys == vfs.OS() { // a file system of tests has no modes
		err = os.Chmod(beside, 0o600) // before anything is in it
	}
	if err == nil {
		_, err = f.WriteAt(append(hex.AppendEncode(nil, secret), '\n'), 0)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = fsys.Rename(beside, path)
	}
	if err == nil {
		err = fsys.SyncDir(filepath.Dir(path))
	}
	if err != nil {
		return nil, fmt.Errorf("the secret of sessions could not be written: %w", err)
	}
	return secret, nil
}
