package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"millrace/engine/vfs"
)

// MetaName is the file that says whose a data directory is.
const MetaName = "meta.properties"

// Meta is its content. Kafka has two versions: 0 (with ZooKeeper: broker.id) and 1
// (KRaft: node.id). Both are read. Version 0 is written for a new directory, since
// our coordination is ZooKeeper's kind; a directory of version 1 keeps its version and
// its directory.id, so that whoever wrote it can have it back.
type Meta struct {
	Version     int
	BrokerID    int32 // -1 if absent
	ClusterID   string
	DirectoryID string // "" if absent
}

// ReadMeta reads meta.properties of a data directory; ok is false if there is none.
func ReadMeta(fsys vfs.FS, dir string) (m Meta, ok bool, err error) {
	path := filepath.Join(dir, MetaName)
	b, err := ReadFile(fsys, path)
	if errors.Is(err, fs.ErrNotExist) {
		return Meta{}, false, nil
	}
	if err != nil {
		return Meta{}, false, err
	}
	m = Meta{BrokerID: -1}
	line := 0
	for text := range strings.Lines(string(b)) {
		line++
		key, value, found := cutProperty(strings.TrimSpace(text))
		if key == "" && !found {
			continue
		}
		bad := func(want string) error { return &FormatError{File: path, Line: line, Value: value, Want: want} }
		switch key {
		case "version":
			if m.Version, err = strconv.Atoi(value); err != nil || m.Version < 0 || m.Version > 1 {
				return Meta{}, false, bad("a known version (0 or 1)")
			}
		case "broker.id", "node.id":
			id, valid := parseInt32(value)
			if !valid || id < 0 {
				return Meta{}, false, bad("a broker id")
			}
			m.BrokerID = id
		case "cluster.id":
			m.ClusterID = value
		case "directory.id":
			if _, valid := ParseID(value); !valid {
				return Meta{}, false, bad("a directory id of 22 characters")
			}
			m.DirectoryID = value
		}
	}
	return m, true, nil
}

// cutProperty splits one line of a Java properties file; a comment or blank line has no key.
func cutProperty(text string) (key, value string, found bool) {
	if text == "" || text[0] == '#' || text[0] == '!' {
		return "", "", false
	}
	var parts [2]strings.Builder
	part := 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\' && i+1 < len(text):
			i++
			parts[part].WriteByte(text[i])
		case part == 0 && (c == '=' || c == ':'):
			part, found = 1, true
		default:
			parts[part].WriteByte(c)
		}
	}
	return strings.TrimSpace(parts[0].String()), strings.TrimSpace(parts[1].String()), found
}

// Write replaces meta.properties of a data directory, as Java's Properties.store does.
func (m Meta) Write(fsys vfs.FS, dir string, now time.Time) error {
	return WriteFile(fsys, filepath.Join(dir, MetaName), m.encode(now))
}

func (m Meta) encode(now time.Time) []byte {
	var b strings.Builder
	b.WriteString("#\n#" + now.UTC().Format("Mon Jan 02 15:04:05 MST 2006") + "\n")
	put := func(key, value string) {
		if value != "" {
			b.WriteString(key + "=" + escapeProperty(value) + "\n")
		}
	}
	id := ""
	if m.BrokerID >= 0 {
		id = strconv.Itoa(int(m.BrokerID))
	}
	if m.Version == 0 {
		put("broker.id", id)
	}
	put("cluster.id", m.ClusterID)
	put("directory.id", m.DirectoryID)
	if m.Version == 1 {
		put("node.id", id)
	}
	put("version", strconv.Itoa(m.Version))
	return []byte(b.String())
}

func escapeProperty(s string) string {
	return strings.NewReplacer(`\`, `\\`, "=", `\=`, ":", `\:`, "#", `\#`, "!", `\!`).Replace(s)
}

// MetaConflict says that a data directory belongs to another broker or cluster.
type MetaConflict struct {
	Dir       string
	Key       string // "broker.id" or "cluster.id"
	Want, Got string
	WantFrom  string // where Want comes from: another directory, or "the configuration"
}

func (e *MetaConflict) Error() string {
	return fmt.Sprintf("%s says %s %s in its %s, but %s says %s: is this another broker's directory?",
		e.Dir, e.Key, e.Got, MetaName, e.WantFrom, e.Want)
}

// Agree checks that the directories found belong together. brokerID < 0 and
// clusterID "" are not known yet and taken from the first directory that says so; the
// result is what holds for all of them, with -1 and "" left if nobody says.
func Agree(metas map[string]Meta, dirs []string, brokerID int32, clusterID string) (int32, string, error) {
	idFrom, clusterFrom := "the configuration", "the configuration"
	for _, dir := range dirs {
		m, ok := metas[dir]
		if !ok {
			continue
		}
		switch {
		case m.BrokerID < 0:
		case brokerID < 0:
			brokerID, idFrom = m.BrokerID, dir
		case m.BrokerID != brokerID:
			return 0, "", &MetaConflict{dir, "broker.id", strconv.Itoa(int(brokerID)), strconv.Itoa(int(m.BrokerID)), idFrom}
		}
		switch {
		case m.ClusterID == "":
		case clusterID == "":
			clusterID, clusterFrom = m.ClusterID, dir
		case m.ClusterID != clusterID:
			return 0, "", &MetaConflict{dir, "cluster.id", clusterID, m.ClusterID, clusterFrom}
		}
	}
	return brokerID, clusterID, nil
}
