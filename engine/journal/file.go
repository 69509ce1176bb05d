package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"millrace/engine/vfs"
)

const (
	filePrefix  = "millrace-journal-"
	againSuffix = ".again" // behind a file's name for a moment, while nothing in it is to be replayed (renew)
)

// file is one journal file, written through in order from its first byte, then used again from there.
//
// It is in exactly one place: Journal.free (nothing in it can be replayed), Journal.current (rounds go here), Journal.sealed (full;
// waiting until everything in it is synced where it belongs), or in the keeper's hands (being made or grown; nothing
// in it can be replayed).
type file struct {
	name   string
	io     vfs.File
	direct bool // writes are synced when they return

	size int64 // usable bytes, whole pages; all of them written before; changed only in the keeper's hands

	pos  int64                 // next block; Journal.mu
	pins map[*ownerState]int64 // owners with batches here, and the end of their last; Journal.mu
}

// pin notes that s has batches up to end in f. Batches of a log come in order and cuts lower the pins, so the last one told counts.
func (f *file) pin(s *ownerState, end int64) {
	if _, ok := f.pins[s]; !ok {
		s.pins++
	}
	f.pins[s] = end
}

// write writes whole pages from an aligned buffer and returns when they are durable.
func (f *file) write(pages []byte, at int64) error {
	if _, err := f.io.WriteAt(pages, at); err != nil {
		return fmt.Errorf("write journal %s: %w", f.name, err)
	}
	if f.direct {
		return nil
	}
	if err := f.io.Sync(); err != nil {
		return fmt.Errorf("sync journal %s: %w", f.name, err)
	}
	return nil
}

// kill makes the file's head say that nothing in it is to be replayed. page is an aligned page for it.
func (f *file) kill(page []byte) error {
	clear(page)
	copy(page, emptyHead)
	return f.write(page, 0)
}

// renew takes the file's name away and gives it back, so that the next sync of the folder writes it. When a sync has failed, of the folder or of the
// whole file system, the system takes names for written that are on no disk, and an earlier life may have seen one fail. Nothing in f is to be replayed.
func (f *file) renew(fsys vfs.FS) error {
	if err := fsys.Rename(f.name, f.name+againSuffix); err != nil {
		return err
	}
	return fsys.Rename(f.name+againSuffix, f.name)
}

// openForRounds opens an existing file of at least size bytes.
func openForRounds(fsys vfs.FS, name string, size int64) (*file, error) {
	f, direct, err := fsys.OpenDirect(name)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	return &file{name: name, io: f, direct: direct, size: size &^ (pageBytes - 1), pins: map[*ownerState]int64{}}, nil
}

// prewrite writes zeros to [from, to) of a file, so that later writes find real blocks (space that is only reserved costs
// a round as much as new space), and syncs them. With a stop it takes its time, and gives up with errStopped when that is closed.
func prewrite(fsys vfs.FS, name string, from, to int64, stop <-chan struct{}) (err error) {
	f, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
	}()
	zeros := vfs.AlignedBuffer(int(min(prewriteBytes, to-from)))
	defer vfs.FreeBuffer(zeros)
	for at := from; at < to; {
		begun := time.Now()
		n := min(int64(len(zeros)), to-at)
		if _, err := f.WriteAt(zeros[:n], at); err != nil {
			return err
		}
		if err := f.Sync(); err != nil {
			return err
		}
		if at += n; at == to || stop == nil {
			continue
		}
		select {
		case <-stop:
			return errStopped
		case <-time.After(time.Since(begun)):
		}
	}
	// Rounds go past the page cache; what is left of the zeros in it would only have to be thrown out write by write.
	_ = f.Advise(from, to-from, vfs.AdviseDontNeed)
	return nil
}

// failedNamesError is a failed sync of the journal's folder. The folder may be that of the logs too, and the system tells of a failure once: whoever
// syncs it next, for a name of his own, is told that all is well.
type failedNamesError struct{ error }

func (e *failedNamesError) Unwrap() error { return e.error }

// makeFile makes a new file and its name durable. A failure leaves nothing behind and harms nobody, for no round is in it,
// except a *failedNamesError, after which nothing may be acknowledged (L4).
func (j *Journal) makeFile(size int64, stop <-chan struct{}) (*file, error) {
	free, err := j.fs.Free(j.dir)
	if err != nil {
		return nil, err
	}
	if free < size+spareFiles*j.fileBytes {
		return nil, fmt.Errorf("%w: %d bytes free", errNoSpace, free)
	}
	name := filepath.Join(j.dir, filePrefix+strconv.Itoa(j.nextIndex))
	j.nextIndex++
	err = prewrite(j.fs, name, 0, size, stop)
	if err == nil {
		if err = j.fs.SyncDir(j.dir); err != nil {
			err = &failedNamesError{err}
		}
	}
	if err == nil {
		var f *file
		if f, err = openForRounds(j.fs, name, size); err == nil {
			return f, nil
		}
	}
	_ = j.fs.Remove(name)
	return nil, err
}

// listFiles returns the indexes of the journal files in dir; none if there is no dir.
func listFiles(fsys vfs.FS, dir string) (indexes []int, left []string, err error) {
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil, nil
		}
		return nil, nil, fmt.Errorf("list journal: %w", err)
	}
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name, filePrefix)
		digits, again := strings.CutSuffix(digits, againSuffix)
		n, err := strconv.Atoi(digits)
		if !ok || err != nil || e.IsDir || strconv.Itoa(n) != digits || n < 0 {
			continue
		}
		if again {
			left = append(left, filepath.Join(dir, e.Name))
		} else {
			indexes = append(indexes, n)
		}
	}
	return indexes, left, nil
}
