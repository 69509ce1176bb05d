package store

import "path/filepath"

// Usage is what the store has on disk.
type Usage struct {
	SnapshotDir, LogDir string
	Snapshots, Log      int64 // bytes
}

// Usage looks at the files. One that goes away meanwhile is not counted.
func (s *Store) Usage() Usage {
	u := Usage{SnapshotDir: s.o.Dir, LogDir: s.log.Dir(), Log: s.log.Size()}
	entries, err := s.o.FS.ReadDir(s.o.Dir)
	if err != nil {
		return u
	}
	for _, e := range entries {
		if info, err := s.o.FS.Stat(filepath.Join(s.o.Dir, e.Name)); err == nil && !e.IsDir {
			u.Snapshots += info.Size
		}
	}
	return u
}
