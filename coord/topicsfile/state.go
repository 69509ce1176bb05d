package topicsfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"

	"millrace/coord"
	"millrace/engine/checkpoint"
	"millrace/engine/vfs"
)

// Name is the file's name, in the first data directory. Kafka ignores plain files there.
const Name = "millrace-topics.json"

// DoneSuffix is what is added to the name once everything has been taken over.
const DoneSuffix = ".imported"

const (
	format  = "millrace single-broker state"
	version = 1
)

// File is what was read.
type File struct {
	coord.Saved
	Deleting []coord.Found // topics whose logs may still be there; of any partition
	Checksum string        // of the content
}

// state is what the file holds.
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

// quotaState is one entity's quotas in the file. A null name is not given, "" is the
// default.
type quotaState struct {
	User   *string            `json:"user,omitempty"`
	Client *string            `json:"client_id,omitempty"`
	IP     *string            `json:"ip,omitempty"`
	Values map[string]float64 `json:"values"`
}

// envelope is the file itself. The checksum covers the compact form of State,
// so that the file may be looked at and re-indented.
type envelope struct {
	Format   string          `json:"format"`
	Version  int             `json:"version"`
	Checksum string          `json:"crc32c"`
	State    json.RawMessage `json:"state"`
}

// FileError says that the file cannot be used, and why. The broker must not start: an empty state in its place would hide every topic.
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

// Read reads the file; nil if there is none.
func Read(fsys vfs.FS, path string) (*File, error) {
	raw, err := checkpoint.ReadFile(fsys, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &FileError{Path: path, Reason: "cannot be read", Cause: err}
	}
	f, err := decode(raw)
	if err != nil {
		return nil, &FileError{Path: path, Reason: "is damaged or of another version", Cause: err}
	}
	return f, nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(raw []byte) (string, error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return "", err
	}
	return fmt.Sprintf("%08x", crc32.Checksum(compact.Bytes(), castagnoli)), nil
}

func decode(raw []byte) (*File, error) {
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
	var s state
	if err := json.Unmarshal(e.State, &s); err != nil {
		return nil, err
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	return s.file(sum), nil
}

// file is the state as the rest of the program has it. s is checked.
func (s *state) file(sum string) *File {
	f := &File{Checksum: sum, Saved: coord.Saved{
		ClusterID: s.ClusterID, NextProducerID: s.NextProducerID, Groups: s.Groups, ClientMetrics: s.ClientMetrics,
		Brokers: map[int32]map[string]string{}, Quotas: map[coord.QuotaEntity]map[string]float64{},
	}}
	for _, t := range s.Topics {
		id, _ := coord.ParseID(t.ID)
		f.Topics = append(f.Topics, coord.SavedTopic{Name: t.Name, ID: id, Epochs: t.Epochs, Config: t.Config})
	}
	for _, t := range s.Deleting {
		if id, ok := coord.ParseID(t.ID); ok {
			f.Deleting = append(f.Deleting, coord.Found{Topic: t.Name, ID: id})
		}
	}
	for key, config := range s.Brokers {
		if key == allBrokers {
			f.Defaults = config
			continue
		}
		id, _ := strconv.ParseInt(key, 10, 32)
		f.Brokers[int32(id)] = config
	}
	for i := range s.Quotas {
		f.Quotas[s.Quotas[i].entity()] = s.Quotas[i].Values
	}
	return f
}

// check demands what the rest relies on, in case somebody wrote the file.
func (s *state) check() error {
	if s.ClusterID == "" {
		return errors.New("cluster_id is empty")
	}
	if s.NextProducerID < 0 || s.NextProducerID > math.MaxInt64-1000 {
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
	if !slices.IsSortedFunc(s.Topics, func(a, b topicState) int { return strings.Compare(a.Name, b.Name) }) {
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

// allBrokers is the key of the settings of all brokers in the file.
const allBrokers = "default"

// checkBrokers demands ids of brokers as numbers are written.
func (s *state) checkBrokers() error {
	for key := range s.Brokers {
		if key == allBrokers {
			continue
		}
		if id, err := strconv.ParseInt(key, 10, 32); err != nil || id < 0 || strconv.FormatInt(id, 10) != key {
			return fmt.Errorf("broker_configs: %q is no broker's id", key)
		}
	}
	return nil
}

func partOf(name *string) coord.QuotaPart {
	if name == nil {
		return coord.QuotaPart{}
	}
	return coord.QuotaPart{Given: true, Name: *name}
}

func (q *quotaState) entity() coord.QuotaEntity {
	return coord.QuotaEntity{User: partOf(q.User), Client: partOf(q.Client), IP: partOf(q.IP)}
}

// checkQuotas demands entities of somebody, each once and in order, and numbers that
// are rates.
func (s *state) checkQuotas() error {
	for i := range s.Quotas {
		q := &s.Quotas[i]
		e := q.entity()
		if e == (coord.QuotaEntity{}) || len(q.Values) == 0 {
			return fmt.Errorf("client_quotas: entry %d is for nobody or has no values", i)
		}
		if i > 0 && coord.CompareQuotaEntities(s.Quotas[i-1].entity(), e) >= 0 {
			return fmt.Errorf("client_quotas: entry %d is there twice or out of order", i)
		}
		for key, value := range q.Values {
			if !(value > 0) || math.IsInf(value, 0) {
				return fmt.Errorf("client_quotas: %s of entry %d is %v", key, i, value)
			}
		}
	}
	return nil
}
