package harness

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// corpusMaking: checks run side by side.
var corpusMaking sync.Mutex

// Corpus writes a file of at least mb million bytes of lines from the machine's own sources, documentation and package
// lists, and returns its path. Empty lines are left out (kcat does not send them) and so are lines over 64 KiB.
func Corpus(cache string, mb int) (string, error) {
	corpusMaking.Lock()
	defer corpusMaking.Unlock()
	path := filepath.Join(cache, fmt.Sprintf("corpus-%d.txt", mb))
	if st, err := os.Stat(path); err == nil && st.Size() >= int64(mb)*1_000_000 {
		return path, nil
	}
	f, err := os.Create(path + ".tmp")
	if err != nil {
		return "", err
	}
	defer f.Close()
	w := &counting{w: bufio.NewWriterSize(f, 1<<20)}
	want := int64(mb) * 1_000_000
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	roots := []string{filepath.Join(strings.TrimSpace(string(goroot)), "src"), "/usr/share/doc", "/var/lib/dpkg/info"}
	for w.n < want {
		before := w.n
		for _, root := range roots {
			if err := addLines(w, root, want); err != nil {
				return "", err
			}
		}
		if w.n == before {
			return "", fmt.Errorf("found no text below %s", strings.Join(roots, ", "))
		}
	}
	if err := w.w.Flush(); err != nil {
		return "", err
	}
	return path, os.Rename(path+".tmp", path)
}

type counting struct {
	w *bufio.Writer
	n int64
}

func addLines(w *counting, root string, want int64) error {
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || strings.HasSuffix(path, ".gz") {
			return nil // what cannot be read is not needed
		}
		if w.n >= want {
			return filepath.SkipAll
		}
		b, err := os.ReadFile(path)
		if err != nil || bytes.IndexByte(b, 0) >= 0 {
			return nil
		}
		for line := range bytes.Lines(b) {
			line = bytes.TrimRight(line, "\r\n")
			if len(line) == 0 || len(line) > 64<<10 {
				continue
			}
			w.w.Write(line)
			if err := w.w.WriteByte('\n'); err != nil {
				return err
			}
			w.n += int64(len(line)) + 1
		}
		return nil
	})
	if os.IsNotExist(err) {
		return nil
	}
	return err
}

func digest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// SameFile says where two files first differ.
func SameFile(want, got string) error {
	a, err := digest(want)
	if err != nil {
		return err
	}
	b, err := digest(got)
	if err != nil {
		return err
	}
	if a == b {
		return nil
	}
	x, err := os.ReadFile(want)
	if err != nil {
		return err
	}
	y, err := os.ReadFile(got)
	if err != nil {
		return err
	}
	at := 0
	for at < len(x) && at < len(y) && x[at] == y[at] {
		at++
	}
	return fmt.Errorf("%s differs from %s at byte %d (line %d); sizes %d and %d", got, want, at, bytes.Count(x[:at], []byte("\n"))+1, len(y), len(x))
}
