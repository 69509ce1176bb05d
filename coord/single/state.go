package single

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"

	"millrace/coord"
	"millrace/engine/vfs"
)

const (
	format  = "millrace single-broker state"
	version = 1
)

// state is what the file holds. Its values are never changed in place: a new
// state is a new one, written whole.
type state struct {
	ClusterID      string       `json:"cluster_id"`
	NextProducerID int64        `json:"next_producer_id"` // first that was never handed out
	Topics         []topicState `json:"topics"`           // by name
	Deleting       []topicState `json:"deleting"`         // logs may still be there

	// Settings of brokers that were changed while they ran: by id, and of all.
	Brokers map[string]map[string]string `json:"broker_configs,omitempty"`
	// Settings of groups, and subscriptions to clients' metrics, by name.
	Groups        coord.NamedConfigs `json:"group_configs,omitempty"`
	ClientMetrics coord.NamedConfigs `json:"client_metrics,omitempty"`
	// What clients may use, by entity.
	Quotas []quotaState `json:"client_quotas,omitempty"`
}

type topicState struct {
	Name   string            `json:"name"`
	ID     string            `json:"id"`
	Epochs []int32           `json:"leader_epochs,omitempty"` // one for each partition; none in Deleting
	Config map[string]string `json:"config,omitempty"`
}

// envelope is the file itself. The checksum covers the compact form of State,
// so that the file may be looked at and re-indented.
type envelope struct {
	Format   string          `json:"format"`
	Version  int             `json:"version"`
	Checksum string          `json:"crc32c"`
	State    json.RawMessage `json:"state"`
}

// FileError says that the state file cannot be used, and why. The broker must
// not start: an empty state in its place would hide every topic.
type FileError struct {
	Path   string
	Reason string
	Cause  error
}

func (e *FileError) Error() string {
	msg := fmt.Sprintf("topic state %s: %s", e.Path, e.Reason)
	if e.Cause != nil {
		msg += ": " + e.Cause.Error()
	}
	return msg + "; restore it from a copy, or move it away to adopt the topics from the logs (their settings are lost then)"
}

func (e *FileError) Unwrap() error { return e.Cause }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(raw []byte) (string, error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return "", err
	}
	return fmt.Sprintf("%08x", crc32.Checksum(compact.Bytes(), castagnoli)), nil
}

// load reads the file; found is false if there is none.
func load(fsys vfs.FS, path string) (s *state, found bool, err error) {
	info, err := fsys.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, &FileError{Path: path, Reason: "cannot be read", Cause: err}
	}
	raw, err := readAll(fsys, path, info.Size)
	if err != nil {
		return nil, false, &FileError{Path: path, Reason: "cannot be read", Cause: err}
	}
	if s, err = decode(raw); err != nil {
		return nil, false, &FileError{Path: path, Reason: "is damaged or of another version", Cause: err}
	}
	return s, true, nil
}

// maxFile bounds what is read: 200,000 partitions take about 4 MB.
const maxFile = 256 << 20

func readAll(fsys vfs.FS, path string, size int64) ([]byte, error) {
	if size > maxFile {
		return nil, fmt.Errorf("has %d bytes, more than %d", size, maxFile)
	}
	f, err := fsys.OpenFile(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw := make([]byte, size)
	if n, err := f.ReadAt(raw, 0); err != nil && !(errors.Is(err, io.EOF) && n == len(raw)) {
		return nil, err
	}
	return raw, nil
}

func decode(raw []byte) (*state, error) {
	var e envelope
	if err := json.Unmarshal(raw, &e); err != nil {
		return nil, err
	}
	if e.Format != format {
		return nil, fmt.Errorf("format is %q, want %q", e.Format, format)
	}
	if e.Version != version {
		return nil, fmt.Errorf("version is %d, this program knows %d", e.Version, version)
	}
	sum, err := checksum(e.State)
	if err != nil {
		return nil, err
	}
	if sum != e.Checksum {
		return nil, fmt.Errorf("checksum is %s, content has %s", e.Checksum, sum)
	}
	s := new(state)
	if err := json.Unmarshal(e.State, s); err != nil {
		return nil, err
	}
	return s, s.check()
}

// check demands what the rest relies on, in case somebody wrote the file.
func (s *state) check() error {
	if s.ClusterID == "" {
		return errors.New("cluster_id is empty")
	}
	if s.NextProducerID < 0 || s.NextProducerID > math.MaxInt64-producerBlock {
		return fmt.Errorf("next_producer_id is %d", s.NextProducerID)
	}
	names, ids := map[string]bool{}, map[coord.ID]bool{}
	for _, t := range s.Topics {
		if wrong := coord.CheckName(t.Name); wrong != "" {
			return errors.New(wrong)
		}
		id, ok := coord.ParseID(t.ID)
		if !ok || id == (coord.ID{}) || ids[id] {
			return fmt.Errorf("topic %q: id %q is malformed, zero or used twice", t.Name, t.ID)
		}
		if names[t.Name] {
			return fmt.Errorf("topic %q is there twice", t.Name)
		}
		if len(t.Epochs) == 0 || len(t.Epochs) > coord.MaxPartitions {
			return fmt.Errorf("topic %q has %d partitions", t.Name, len(t.Epochs))
		}
		names[t.Name], ids[id] = true, true
	}
	if !slices.IsSortedFunc(s.Topics, byName) {
		return errors.New("topics are not sorted by name")
	}
	if err := s.checkBrokers(); err != nil {
		return err
	}
	for key, named := range map[string]coord.NamedConfigs{"group_configs": s.Groups, "client_metrics": s.ClientMetrics} {
		if _, ok := named[""]; ok {
			return fmt.Errorf("%s: a name is empty", key)
		}
	}
	return s.checkQuotas()
}

func (s *state) encode() ([]byte, error) {
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	sum, err := checksum(raw)
	if err != nil {
		return nil, err
	}
	out, err := json.MarshalIndent(envelope{Format: format, Version: version, Checksum: sum, State: raw}, "", " ")
	return append(out, '\n'), err
}

// save puts the state in the place of the old one. changed says whether the
// file may be the new one although an error is returned: from the rename on,
// only another start can tell.
func save(fsys vfs.FS, path string, s *state) (changed bool, err error) {
	raw, err := s.encode()
	if err != nil {
		return false, err
	}
	tmp := path + ".tmp"
	if err := writeSynced(fsys, tmp, raw); err != nil {
		fsys.Remove(tmp) // only tidiness: the next save truncates it
		return false, err
	}
	if err := fsys.Rename(tmp, path); err != nil {
		return true, err
	}
	return true, fsys.SyncDir(filepath.Dir(path))
}

func writeSynced(fsys vfs.FS, path string, raw []byte) (err error) {
	f, err := fsys.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	if _, err := f.WriteAt(raw, 0); err != nil {
		return err
	}
	return f.Sync()
}
