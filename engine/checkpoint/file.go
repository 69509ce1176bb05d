package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"millrace/engine/vfs"
)

// maxFileBytes is the largest text file that is read: a million lines of the longest
// topic name (249 bytes) and two numbers.
const maxFileBytes = 300 << 20

const tmpSuffix = ".tmp"

// FormatError says where a text file is not what it should be.
type FormatError struct {
	File  string
	Line  int // from 1
	Value string
	Want  string
}

func (e *FormatError) Error() string {
	value := e.Value
	if len(value) > 80 {
		value = value[:80] + "..."
	}
	return fmt.Sprintf("%s line %d: %q is not %s", e.File, e.Line, value, e.Want)
}

// WriteFile replaces a file atomically and durably: written beside (name + ".tmp"),
// synced, renamed, and the folder synced. After an error the old content is there, or
// the new one.
func WriteFile(fsys vfs.FS, path string, data []byte) error {
	if err := writeBeside(fsys, path, data, true); err != nil {
		return err
	}
	if err := fsys.SyncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	return nil
}

// writeBeside is WriteFile without the folder's sync and, if asked, without the file's.
func writeBeside(fsys vfs.FS, path string, data []byte, sync bool) error {
	f, err := fsys.OpenFile(path+tmpSuffix, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	_, err = f.WriteAt(data, 0)
	if err == nil && sync {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = fsys.Rename(path+tmpSuffix, path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	return nil
}

// ReadFile returns a small file's content; a missing one is an error that is fs.ErrNotExist.
func ReadFile(fsys vfs.FS, path string) ([]byte, error) {
	f, err := fsys.OpenFile(path, os.O_RDONLY)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", filepath.Base(path), err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", filepath.Base(path), err)
	}
	if size > maxFileBytes {
		return nil, &FormatError{File: path, Line: 1, Value: fmt.Sprintf("%d bytes", size), Want: "a text file of sensible size"}
	}
	b := make([]byte, size)
	if n, err := f.ReadAt(b, 0); n < len(b) {
		return nil, fmt.Errorf("read %s: %w", filepath.Base(path), errors.Join(err, io.ErrUnexpectedEOF))
	}
	return b, nil
}

// readLines reads a checkpoint: a line "0", a line with the count, and count lines
// of fields numbers separated by blanks, the first of which may be text. It calls
// entry for each; a false result says that the line is not want. A missing file
// has no entries. Blank lines and carriage returns, as editors leave them, are no error.
func readLines(fsys vfs.FS, path, want string, entry func(fields []string) bool) error {
	b, err := ReadFile(fsys, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	line, count, seen := 0, -1, 0
	headed := false
	for text := range strings.Lines(string(b)) {
		line++
		fields := strings.Fields(text)
		bad := func(want string) error {
			return &FormatError{File: path, Line: line, Value: strings.TrimRight(text, "\r\n"), Want: want}
		}
		switch {
		case len(fields) == 0:
		case !headed:
			if len(fields) != 1 || fields[0] != "0" {
				return bad("version 0")
			}
			headed = true
		case count < 0:
			if count, err = strconv.Atoi(fields[0]); err != nil || count < 0 || len(fields) != 1 {
				return bad("a count of entries")
			}
		case seen == count:
			return bad(fmt.Sprintf("the end of a file of %d entries", count))
		default:
			if !entry(fields) {
				return bad(want)
			}
			seen++
		}
	}
	if !headed || count < 0 || seen != count {
		return &FormatError{File: path, Line: line + 1, Value: "", Want: fmt.Sprintf("%s: the file ends after %d of %d entries", want, seen, max(count, 0))}
	}
	return nil
}

func appendHead(b []byte, count int) []byte {
	b = append(b, "0\n"...)
	b = strconv.AppendInt(b, int64(count), 10)
	return append(b, '\n')
}

func parseInt32(s string) (int32, bool) {
	n, err := strconv.ParseInt(s, 10, 32)
	return int32(n), err == nil
}
