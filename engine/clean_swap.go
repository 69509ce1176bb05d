package engine

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"millrace/engine/vfs"
)

// swap puts fresh segments in the places of old ones, a run of closed segments in the log's list. Readers of the old ones go on.
//
// A crash at any point leaves the group as it was or as it is after (finishSwap), whatever of the names since the last sync of the
// folder has reached the disk:
//  1. the fresh files take names in .swap, the lowest one last and by itself: from then on they count;
//  2. the old files take names in .deleted;
//  3. the fresh files take their own names.
//
// cuts are the log's truncations when the fresh files were begun. taken says that the fresh segments are not the caller's any more, whatever the error: they are the log's, or the next opening's.
func (l *Log) swap(old, fresh []*segment, cuts int) (taken bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refusal(); err != nil {
		return false, err
	}
	list := *l.segments.Load()
	at := slices.Index(list, old[0]) // L9: all of them are still there, side by side
	if at < 0 || at+len(old) >= len(list) || !slices.Equal(list[at:at+len(old)], old) || l.cleaning.cuts != cuts {
		return false, errCut // retention or a truncation has been here; a segment that was cut, filled and closed again is still the same one
	}
	if err := l.commitSwap(fresh); err != nil {
		return !l.undoSwap(fresh), err
	}
	// Nothing may fail from here on without an end to appends: the files are on their way to what the new list says. Reads need no names, for
	// the fresh files are open.
	l.setSegments(slices.Concat(list[:at], fresh, list[at+len(old):]))
	if err := l.giveUp(newestFirst(old)); err != nil {
		return true, err
	}
	if err := l.syncDir(); err != nil {
		return true, err
	}
	for _, s := range fresh {
		if err := s.takeName(); err != nil {
			l.mu.failed = l.storageError("swap cleaned segment", err)
			return true, l.mu.failed
		}
	}
	return true, l.syncDir()
}

// commitSwap is the first step.
func (l *Log) commitSwap(fresh []*segment) error {
	for i, s := range newestFirst(fresh) {
		if i == len(fresh)-1 && i > 0 {
			if err := l.syncDir(); err != nil {
				return err
			}
		}
		for _, kind := range []string{txnSuffix, logSuffix} {
			err := l.fs().Rename(s.path(kind)+cleanedSuffix, s.path(kind)+swapSuffix)
			if err != nil && !(kind == txnSuffix && errors.Is(err, os.ErrNotExist)) {
				return l.storageError("swap cleaned segment", err)
			}
		}
	}
	return l.syncDir()
}

// undoSwap takes the first step back, in reverse, durably: the lowest file first, so that the group does not count any more. It reports
// whether the files are the caller's to remove; if not, what became of them is the next opening's to find out, and appends end.
func (l *Log) undoSwap(fresh []*segment) bool {
	for _, part := range [][]*segment{fresh[:1], fresh[1:]} {
		for _, s := range part {
			for _, kind := range []string{logSuffix, txnSuffix} {
				err := l.fs().Rename(s.path(kind)+swapSuffix, s.path(kind)+cleanedSuffix)
				if err != nil && !errors.Is(err, os.ErrNotExist) {
					return l.leaveSwap(fresh, err)
				}
			}
		}
		if err := l.syncDir(); err != nil {
			return l.leaveSwap(fresh, err)
		}
	}
	return true
}

// leaveSwap gives up fresh segments and leaves their files as they are.
func (l *Log) leaveSwap(fresh []*segment, cause error) bool {
	l.mu.failed = l.storageError("take back a cleaned segment", cause)
	for _, s := range fresh {
		s.index.Discard()
		s.times.Discard()
		s.letGo()
	}
	return false
}

// takeName is the third step for one segment.
func (s *segment) takeName() error {
	if err := errors.Join(s.index.Rename(s.path(indexSuffix)), s.times.Rename(s.path(timeSuffix))); err != nil {
		return err
	}
	for _, kind := range []string{txnSuffix, logSuffix} {
		err := s.folder.fs.Rename(s.path(kind)+swapSuffix, s.path(kind))
		if err != nil && (kind == logSuffix || !errors.Is(err, os.ErrNotExist)) {
			return err
		}
	}
	return nil
}

// finishSwap brings to an end, or takes back, what compaction was doing when the process ended. It is given the files of the folder
// and returns what they are afterwards.
func (l *Log) finishSwap(infos []vfs.DirEntry) ([]vfs.DirEntry, error) {
	var logs, cleaned, swaps []Offset
	var names []string
	for _, i := range infos {
		n := i.Name
		if strings.HasSuffix(n, cleanedSuffix) || strings.HasSuffix(n, swapSuffix) {
			names = append(names, n)
		}
		whole, kind := n, &logs
		if w, ok := strings.CutSuffix(n, cleanedSuffix); ok {
			whole, kind = w, &cleaned
		} else if w, ok := strings.CutSuffix(n, swapSuffix); ok {
			whole, kind = w, &swaps
		}
		if base, suffix, ok := parseName(whole); ok && suffix == logSuffix {
			*kind = append(*kind, base)
		}
	}
	slices.Sort(swaps)
	if len(cleaned) > 0 {
		// L9: swaps above a file that is still being written were not committed: the lowest of a group comes last.
		least := slices.Min(cleaned)
		swaps = slices.DeleteFunc(swaps, func(o Offset) bool { return o >= least })
	}
	if len(names) == 0 {
		return infos, nil
	}
	if len(swaps) > 0 {
		if err := l.completeSwap(swaps, logs); err != nil {
			return nil, err
		}
	}
	// What is not to count goes before what says so: were the lowest file of a group gone first, the others would count.
	slices.SortStableFunc(names, func(a, b string) int { return -strings.Compare(filepath.Ext(a), filepath.Ext(b)) })
	for i, n := range names {
		if i > 0 && filepath.Ext(n) != filepath.Ext(names[i-1]) {
			if err := l.fs().SyncDir(l.Dir()); err != nil {
				return nil, err
			}
		}
		whole, isSwap := strings.CutSuffix(n, swapSuffix)
		var err error
		switch base := baseOf(whole); {
		case isSwap && slices.Contains(swaps, base) && !strings.HasSuffix(whole, indexSuffix) && !strings.HasSuffix(whole, timeSuffix):
			continue // completeSwap has dealt with it
		case isSwap && strings.HasSuffix(whole, txnSuffix) && slices.Contains(logs, base) && !slices.Contains(cleaned, base):
			err = l.fs().Rename(l.file(n), l.file(whole)) // its segment has its own name already
		default:
			err = l.fs().Remove(l.file(n))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return l.fs().ReadDir(l.Dir())
}

func baseOf(name string) Offset {
	base, _, _ := parseName(name)
	return base
}

// completeSwap does steps two and three for committed segments. logs are the bases of the segments there are.
func (l *Log) completeSwap(swaps, logs []Offset) error {
	highest := baseName(swaps[len(swaps)-1]) + logSuffix + swapSuffix
	last, err := l.lastOffsetOf(highest)
	if err != nil {
		return err
	}
	old := slices.DeleteFunc(slices.Clone(logs), func(base Offset) bool { return base < swaps[0] || base > last })
	if err := l.putAwayFiles(old, logSuffix, indexSuffix, timeSuffix, txnSuffix); err != nil {
		return err
	}
	// A log file may have gone to .deleted and its indexes not: beside the fresh file nothing would tell that they are another's. Fresh ones are made again.
	if err := l.putAwayFiles(swaps, indexSuffix, timeSuffix); err != nil {
		return err
	}
	if err := l.fs().SyncDir(l.Dir()); err != nil {
		return err
	}
	for _, base := range swaps {
		name := l.file(baseName(base))
		for _, from := range []string{cleanedSuffix, swapSuffix} {
			if err := l.fs().Rename(name+txnSuffix+from, name+txnSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		if err := l.fs().Rename(name+logSuffix+swapSuffix, name+logSuffix); err != nil {
			return err
		}
	}
	l.logger.Info("a compaction that was cut off has been brought to its end", "log", l.Dir(), "segments", len(swaps))
	return l.fs().SyncDir(l.Dir())
}

// putAwayFiles gives the files of some kinds of the segments at bases names in .deleted, those that there are.
func (l *Log) putAwayFiles(bases []Offset, kinds ...string) error {
	for _, base := range bases {
		for _, kind := range kinds {
			from := l.file(baseName(base) + kind)
			if err := l.fs().Rename(from, from+deletedSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// lastOffsetOf walks a file's headers to its end.
func (l *Log) lastOffsetOf(name string) (Offset, error) {
	f, err := l.fs().OpenFile(l.file(name), os.O_RDONLY)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := l.fs().Stat(l.file(name))
	if err != nil {
		return 0, err
	}
	buf := walkBuffers.Get().(*[]byte)
	defer walkBuffers.Put(buf)
	w := walker{file: f, name: l.file(name), end: info.Size, buf: *buf}
	last := Offset(-1)
	for {
		e, err := w.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return 0, err
		}
		last = e.last
	}
	if last < 0 {
		return 0, fmt.Errorf("%s: %w", l.Dir(), &CorruptError{File: name, Want: "at least one batch", Got: "an empty file"})
	}
	return last, nil
}
