package engine

import (
	"millrace/engine/vfs"
	"millrace/engine/vfs/faultfs"
)

// nullFS keeps nothing of what is written to segments: what is left is our own
// work.
type nullFS struct{ vfs.FS }

type nullFile struct{ vfs.File }

func newNullFS(t faultfs.TB) vfs.FS { return &nullFS{faultfs.New(nil)} }

func (n *nullFS) OpenFile(name string, flag int) (vfs.File, error) {
	f, err := n.FS.OpenFile(name, flag)
	return &nullFile{f}, err
}

func (f *nullFile) WriteAt(p []byte, off int64) (int, error) { return len(p), nil }
func (f *nullFile) WriteVAt(b [][]byte, off int64) (int, error) {
	n := 0
	for _, p := range b {
		n += len(p)
	}
	return n, nil
}
