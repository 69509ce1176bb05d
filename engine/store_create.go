package engine

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"millrace/engine/checkpoint"
)

// LogSpec asks for logs of one topic. They begin in leader epoch 0 at offset 0.
type LogSpec struct {
	Topic      string
	TopicID    [16]byte
	Partitions []int32
	Config     Config // zero: the Store's settings for the topic

	// New says that the topic is being made just now, so that none of it can lie in
	// a directory that was offline from the start. Without it Create refuses while there is one:
	// an empty log would take the place of a full one.
	New bool
}

// ErrExists is matched by the error of Create for a log that is there with another topic id.
var ErrExists = errors.New("engine: log exists")

// TopicNameError refuses a topic's name.
type TopicNameError struct{ Name, Reason string }

func (e *TopicNameError) Error() string {
	return fmt.Sprintf("engine: topic name %q %s", e.Name, e.Reason)
}

func checkTopicName(name string) error {
	switch {
	case name == "":
		return &TopicNameError{name, "is empty"}
	case name == "." || name == "..":
		return &TopicNameError{name, "is a folder's own"}
	case len(name) > maxTopicName:
		return &TopicNameError{name, fmt.Sprintf("has %d characters, %d are allowed", len(name), maxTopicName)}
	}
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
		default:
			return &TopicNameError{name, fmt.Sprintf("has the character %q; letters, digits, '.', '_' and '-' are allowed", c)}
		}
	}
	return nil
}

// draft is a log that is being made, under a name that a start would delete.
type draft struct {
	dir    *dataDir
	key    logKey
	id     [16]byte
	config Config
	path   string // now
	final  string
}

// Create makes logs. They are durable, and Log finds them, all at once, when it
// returns nil; after an error none is there. A log that exists with the same topic id
// is left as it is, so a Create may be repeated. New logs go to the directory with
// the fewest.
//
// The folders are filled under names ending in "-delete", which a start removes, the
// file system is synced once for all of them, and only then they get their names: a
// crash leaves whole logs or nothing.
func (s *Store) Create(specs ...LogSpec) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return ErrClosed
	}
	drafts, err := s.plan(specs)
	if err != nil || len(drafts) == 0 {
		return err
	}
	if err = forgetFormer(drafts); err == nil {
		err = s.draw(drafts)
	}
	var logs []*Log
	if err == nil {
		logs, err = openDrafts(drafts)
	}
	if err != nil {
		s.undo(drafts)
		return err
	}
	s.change(func(table map[checkpoint.TopicPartition]*Log) {
		for _, l := range logs {
			table[checkpoint.TopicPartition(l.key())] = l
		}
	})
	return nil
}

// forgetFormer takes out of the checkpoint files what they say of deleted logs with the
// same names: below a recovery point that is another's, a torn tail would be damage.
func forgetFormer(drafts []draft) error {
	for i := range drafts {
		dr := &drafts[i]
		d, key := dr.dir, checkpoint.TopicPartition(dr.key)
		d.mu.Lock()
		_, point := d.mu.points[key]
		_, start := d.mu.starts[key] // the files are written one after the other: a crash leaves what only one of them tells
		if point || start {
			delete(d.mu.points, key)
			delete(d.mu.starts, key)
			d.outdated = true
		}
		d.mu.Unlock()
		if !d.outdated {
			continue
		}
		if err := d.checkpoint(); err != nil {
			return dr.failure(err)
		}
		d.outdated = false
	}
	return nil
}

// plan checks the specs and places the logs that are not there yet.
func (s *Store) plan(specs []LogSpec) ([]draft, error) {
	load := make(map[*dataDir]int)
	for _, d := range s.dirs {
		if d.offline() == nil {
			load[d] = len(d.logs())
		}
	}
	if len(load) == 0 {
		return nil, &StorageError{Op: "create log", Dir: s.dirs[0].path, Cause: fmt.Errorf("no data directory is online: %w", s.dirs[0].offline())}
	}
	var drafts []draft
	planned := make(map[logKey]bool)
	for i := range specs {
		spec := &specs[i]
		if err := checkTopicName(spec.Topic); err != nil {
			return nil, err
		}
		if spec.Config == (Config{}) {
			spec.Config = s.configOf(spec.Topic)
		}
		if err := spec.Config.Validate(); err != nil {
			return nil, fmt.Errorf("topic %s: %w", spec.Topic, err)
		}
		for _, p := range spec.Partitions {
			key := logKey{spec.Topic, p}
			there, err := s.exists(key, spec.TopicID)
			if err != nil {
				return nil, err
			}
			if there || planned[key] {
				continue
			}
			if d := s.unlisted(); d != nil && !spec.New {
				return nil, &StorageError{Op: "create log " + folderName(key), Dir: d.path,
					Cause: fmt.Errorf("the directory is offline and may hold it: %w", d.offline())}
			}
			planned[key] = true
			d := s.wantedDir(key)
			if d == nil {
				d = leastLoaded(s.dirs, load)
			}
			load[d]++
			drafts = append(drafts, draft{
				dir: d, key: key, id: spec.TopicID, config: spec.Config,
				path: filepath.Join(d.path, deletedName(key)), final: filepath.Join(d.path, folderName(key)),
			})
		}
	}
	need := adviseFiles(len(*s.table.Load())+len(drafts), openFileLimit())
	if len(drafts) > 0 && !need.OK {
		return nil, &LimitError{need.Name, need.Have, need.Need}
	}
	return drafts, nil
}

// unlisted returns a directory of which nobody knows what it holds.
func (s *Store) unlisted() *dataDir {
	for _, d := range s.dirs {
		if !d.listed {
			return d
		}
	}
	return nil
}

// exists tells whether the log is there already, with that topic id.
func (s *Store) exists(key logKey, id [16]byte) (bool, error) {
	if key.Partition < 0 {
		return false, fmt.Errorf("engine: partition %d of %s is negative", key.Partition, key.Topic)
	}
	if l := s.Log(key.Topic, key.Partition); l != nil {
		if l.ID().Topic != id {
			return true, fmt.Errorf("%w: %s has topic id %s", ErrExists, folderName(key), checkpoint.FormatID(l.ID().Topic))
		}
		return true, nil
	}
	for _, x := range s.Damaged() {
		if x.Topic == key.Topic && x.Partition == key.Partition {
			return true, fmt.Errorf("%w: %s is damaged and set aside: %w", ErrExists, folderName(key), x.Err)
		}
	}
	return false, nil
}

// leastLoaded prefers the earlier directory among equals.
func leastLoaded(dirs []*dataDir, load map[*dataDir]int) *dataDir {
	var best *dataDir
	for _, d := range dirs {
		if n, online := load[d]; online && (best == nil || n < load[best]) {
			best = d
		}
	}
	return best
}

// draw puts the files of all drafts on disk and gives the folders their names.
func (s *Store) draw(drafts []draft) error {
	touched := make(map[*dataDir]bool)
	for i := range drafts {
		if err := drafts[i].fill(); err != nil {
			return drafts[i].failure(err)
		}
		touched[drafts[i].dir] = true
	}
	for d := range touched {
		if err := d.fs.SyncFS(d.path); err != nil {
			return d.failedSync("create log", err)
		}
	}
	for i := range drafts {
		dr := &drafts[i]
		if err := dr.dir.fs.Rename(dr.path, dr.final); err != nil {
			return dr.failure(err)
		}
		dr.path = dr.final
	}
	for d := range touched {
		if err := d.fs.SyncDir(d.path); err != nil {
			return d.failedSync("create log", err)
		}
	}
	return nil
}

func (dr *draft) fill() error {
	fsys := dr.dir.fs
	if _, err := fsys.Stat(dr.final); err == nil {
		return fmt.Errorf("%w: there is a folder %s that is no log of this store", ErrExists, dr.final)
	}
	if err := fsys.MkdirAll(dr.path); err != nil {
		return err
	}
	if err := checkpoint.WriteTopicID(fsys, dr.path, dr.id, true); err != nil {
		return err
	}
	if err := checkpoint.WriteFirstEpoch(fsys, dr.path); err != nil {
		return err
	}
	f, err := fsys.OpenFile(filepath.Join(dr.path, baseName(0)+logSuffix), os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	return f.Close()
}

func (dr *draft) failure(err error) error {
	if errors.Is(err, ErrExists) {
		return err
	}
	return &StorageError{Op: "create log", Dir: dr.dir.path, Cause: err}
}

// failedSync is L4: what the directory holds is not known any more.
func (d *dataDir) failedSync(op string, err error) error {
	d.fail(err)
	return &StorageError{Op: op, Dir: d.path, Cause: err}
}

func openDrafts(drafts []draft) ([]*Log, error) {
	logs := make([]*Log, 0, len(drafts))
	for i := range drafts {
		dr := &drafts[i]
		d := dr.dir
		l, err := openLog(dr.path, &LogOptions{
			FS: d.fs, Topic: dr.key.Topic, Partition: dr.key.Partition, TopicID: dr.id, Config: dr.config,
			Journal: d.journal, Clean: true,
			Checkpoint: d.checkpointFor, wrote: d.store.wrote, low: &d.low, Background: d.store.background,
			Logger: d.store.log, Now: d.store.o.Now, Indexes: d.store.indexes, Files: d.store.files,
		})
		if err == nil {
			err = l.recovered(true)
		}
		if err != nil {
			for _, l := range logs {
				l.discard()
			}
			return nil, dr.failure(err)
		}
		logs = append(logs, l)
	}
	for i, l := range logs {
		drafts[i].dir.adopt(l)
	}
	return logs, nil
}

func (d *dataDir) adopt(l *Log) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.live[checkpoint.TopicPartition(l.key())] = l
}

// undo takes back what a failed Create has made. What cannot be taken back now has a
// name that the next start removes, or is a whole empty log.
func (s *Store) undo(drafts []draft) {
	for i := range drafts {
		dr := &drafts[i]
		if dr.path == dr.final {
			away := filepath.Join(dr.dir.path, deletedName(dr.key))
			err := dr.dir.fs.Rename(dr.final, away)
			if err == nil {
				err = dr.dir.nameGone() // or a loss of power might leave half a log
			}
			if err != nil {
				s.log.Warn("a log that could not be made whole is left behind", "folder", dr.final, "error", err)
				continue
			}
			dr.path = away
		}
		s.removeLater(dr.path, 0)
	}
}

// nameGone has it on disk that a folder's name is not that of a log any more; what is in the folder may go then, and not before.
func (d *dataDir) nameGone() error {
	if err := d.offline(); err != nil {
		return err
	}
	if err := d.fs.SyncDir(d.path); err != nil {
		return d.failedSync("take away a log", err)
	}
	return nil
}

// deletedName is Kafka's name for a folder on its way out; the topic is cut so that it
// stays a legal file name.
func deletedName(k logKey) string {
	tail := fmt.Sprintf("-%d.%s%s", k.Partition, hex.EncodeToString(idBytes()), deleteSuffix)
	return k.Topic[:min(len(k.Topic), 255-len(tail))] + tail
}

func idBytes() []byte {
	id := newID()
	return id[:]
}

// newID makes a random id, like Kafka's Uuid.randomUuid: never one that starts with a
// dash when written, which would look like an option.
func newID() [16]byte {
	for {
		var id [16]byte
		rand.Read(id[:]) // never fails
		id[6] = id[6]&0x0f | 0x40
		id[8] = id[8]&0x3f | 0x80
		if checkpoint.FormatID(id)[0] != '-' {
			return id
		}
	}
}
