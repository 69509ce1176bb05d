package dump

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"millrace/engine/batch"
)

// Finding is something wrong with a file.
type Finding struct {
	File string
	What string
	// Fatal: records are damaged or gone. Otherwise the broker makes the file again by itself.
	Fatal bool
}

func (f Finding) String() string {
	kind := "note"
	if f.Fatal {
		kind = "DAMAGE"
	}
	return fmt.Sprintf("%s %s: %s", kind, f.File, f.What)
}

// Check reads every file of a partition's folder (or one segment) and says what is wrong. Nothing is changed.
func Check(path string) ([]Finding, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.IsDir() {
		found, _, err := checkSegment(path, -1)
		return found, err
	}
	logs, err := segmentsOf(path)
	if err != nil {
		return nil, err
	}
	var all []Finding
	next := int64(-1)
	for i, log := range logs {
		found, end, err := checkSegment(log, next)
		if err != nil {
			return nil, err
		}
		if i < len(logs)-1 {
			next = end
		}
		all = append(all, found...)
	}
	others, err := filepath.Glob(filepath.Join(path, "*.snapshot"))
	if err != nil {
		return nil, err
	}
	for _, s := range others {
		b, err := os.ReadFile(s)
		if err == nil {
			_, err = readSnapshot(s, b)
		}
		if err != nil {
			all = append(all, Finding{File: filepath.Base(s), What: fmt.Sprintf("%v; producers are found out from the records instead", err)})
		}
	}
	return all, nil
}

// Folders are the partitions' folders in a data directory, sorted; of anything else path itself.
func Folders(path string) ([]string, error) {
	logs, err := filepath.Glob(filepath.Join(path, "*", "*.log"))
	if err != nil {
		return nil, err
	}
	if own, err := filepath.Glob(filepath.Join(path, "*.log")); err != nil || len(own) > 0 || len(logs) == 0 {
		return []string{path}, err
	}
	for i, l := range logs {
		logs[i] = filepath.Dir(l)
	}
	slices.Sort(logs)
	return slices.Compact(logs), nil
}

func segmentsOf(dir string) ([]string, error) {
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err == nil && len(logs) == 0 {
		err = fmt.Errorf("%s: %w: no segment (*.log) in it", dir, fs.ErrNotExist)
	}
	slices.Sort(logs)
	return logs, err
}

// checkSegment checks a segment and its indexes. from is where its offsets have to begin at the earliest.
func checkSegment(path string, from int64) (found []Finding, end int64, err error) {
	name := filepath.Base(path)
	add := func(fatal bool, format string, args ...any) {
		found = append(found, Finding{name, fmt.Sprintf(format, args...), fatal})
	}
	end = from
	starts := map[int64]int64{} // position of a batch: its last offset
	rest, why, err := entries(path, func(pos int64, b []byte) error {
		info, err := batch.CheckStored(b)
		if err != nil {
			add(true, "batch at position %d, %d bytes: %v", pos, len(b), err)
			return nil
		}
		if info.BaseOffset < end {
			add(true, "batch at position %d begins at offset %d, but offsets up to %d come before it", pos, info.BaseOffset, end-1)
		}
		for _, err := range batch.Records(b) {
			if err != nil {
				add(true, "records of the batch at position %d, offsets %d to %d: %v", pos, info.BaseOffset, info.LastOffset(), err)
				break
			}
		}
		end = max(end, info.LastOffset()+1)
		starts[pos] = info.LastOffset()
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	if rest > 0 {
		add(true, "%d bytes at the end are no batch: %v; after a crash that is a torn write, which the broker cuts off", rest, why)
	}
	return append(found, checkIndexes(path, starts)...), end, nil
}

// checkIndexes checks the indexes of a segment. starts are its batches: position to last offset.
func checkIndexes(log string, starts map[int64]int64) (found []Finding) {
	path := strings.TrimSuffix(log, ".log") + ".index"
	add := func(what string) {
		found = append(found, Finding{File: filepath.Base(path), What: what + "; the broker makes it again"})
	}
	all, _, err := readIndex(path, offsetEntry)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		add("missing")
	case err != nil:
		add(err.Error())
	}
	for _, e := range all {
		if last, ok := starts[e.value]; !ok || last != e.key {
			add(fmt.Sprintf("entry offset %d position %d points at no batch that ends there", e.key, e.value))
			break
		}
	}
	path = strings.TrimSuffix(log, ".log") + ".timeindex"
	times, _, err := readIndex(path, timeEntry)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		add("missing")
	case err != nil:
		add(err.Error())
	default:
		if err := rising(path, times); err != nil {
			add(err.Error())
		}
	}
	return found
}
