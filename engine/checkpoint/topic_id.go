package checkpoint

import (
	"encoding/base64"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"millrace/engine/vfs"
)

// PartitionMetadataName is the file that names the topic id of a log, in the log's folder.
const PartitionMetadataName = "partition.metadata"

// FormatID writes a 16-byte id as Kafka does: 22 characters of URL-safe base64.
func FormatID(id [16]byte) string { return base64.RawURLEncoding.EncodeToString(id[:]) }

// ParseID is its inverse.
func ParseID(s string) (id [16]byte, ok bool) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) != len(id) {
		return id, false
	}
	return [16]byte(b), true
}

// ReadTopicID reads partition.metadata of a log's folder; ok is false if there is none.
func ReadTopicID(fsys vfs.FS, dir string) (id [16]byte, ok bool, err error) {
	path := filepath.Join(dir, PartitionMetadataName)
	b, err := ReadFile(fsys, path)
	if errors.Is(err, fs.ErrNotExist) {
		return id, false, nil
	}
	if err != nil {
		return id, false, err
	}
	line := 0
	for text := range strings.Lines(string(b)) {
		line++
		key, value, _ := strings.Cut(strings.TrimSpace(text), ":")
		value = strings.TrimSpace(value)
		bad := func(want string) error { return &FormatError{File: path, Line: line, Value: value, Want: want} }
		switch key {
		case "":
		case "version":
			if value != "0" {
				return id, false, bad("version 0")
			}
		case "topic_id":
			if id, ok = ParseID(value); !ok || id == [16]byte{} {
				return [16]byte{}, false, bad("a topic id of 22 characters")
			}
		default:
			return id, false, bad("the value of version or topic_id")
		}
	}
	if !ok {
		return id, false, &FormatError{File: path, Line: line + 1, Want: "a line with topic_id"}
	}
	return id, true, nil
}

// WriteTopicID writes partition.metadata. With unsynced nothing is durable yet: the
// caller makes many logs and syncs the file system once.
func WriteTopicID(fsys vfs.FS, dir string, id [16]byte, unsynced bool) error {
	path := filepath.Join(dir, PartitionMetadataName)
	data := []byte("version: 0\ntopic_id: " + FormatID(id)) // Kafka ends it without a newline
	if unsynced {
		return writeBeside(fsys, path, data, false)
	}
	return WriteFile(fsys, path, data)
}
