package vfs

import "sync"

// syncFSFrom is the number of dirty files from which one SyncFS is used in place
// of a sync of each. Measured: 10 files 0.71 ms against 1.15-2.1 ms side by side
// and 3.3-4.2 ms one by one; 100 files 2.2 ms against 7.3. The point between 1 and
// 10 is interpolated.
const syncFSFrom = 8

// SyncMany makes the contents of all files durable in the cheapest way for their
// number: none, nothing; one, its own Sync; up to seven, their Syncs side by side;
// more, one SyncFS(dir). All files must lie on the file system of dir. Every sync
// that was begun is waited for, whatever the others say; the error returned is
// that of the first file, in the order given, that failed. After an error the
// state of all the files' unsynced bytes is unknown (L4).
func SyncMany(fsys FS, dir string, files []File) error {
	switch n := len(files); {
	case n == 0:
		return nil
	case n == 1:
		return files[0].Sync()
	case n >= syncFSFrom:
		return fsys.SyncFS(dir)
	}
	var errs [syncFSFrom]error
	var wg sync.WaitGroup
	for i, f := range files[1:] {
		// Owned by this call: ends with its one Sync, waited for below.
		wg.Go(func() { errs[i+1] = f.Sync() })
	}
	errs[0] = files[0].Sync()
	wg.Wait()
	for _, err := range errs[:len(files)] {
		if err != nil {
			return err
		}
	}
	return nil
}
