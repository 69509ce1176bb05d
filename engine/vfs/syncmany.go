package vfs

import "sync"

// syncFSFrom is the number of dirty files from which one SyncFS is used in place of a sync of each. benchmarks/crossover on a quiet machine,
// p50 in µs of syncfs, goroutines and ring: 2 files 225, 288, 283; 4 files 275, 464, 414; 7 files 400, 795, 487; 8 files 371, 895, 563; 64 files
// 693, 3968, 3254; beside other writers, 4 files 1264, 689, 535; 7 files 709, 879, 609; 8 files 524, 882, 779; 64 files 932, 4372, 3724. Where
// nobody else writes, syncfs is ahead from two files on; but it writes all that is dirty in the file system, whosever it is, so few files are
// synced by themselves.
const syncFSFrom = 8

// SyncMany makes the contents of all files durable in the cheapest way for their
// number: none, nothing; one, its own Sync; up to seven, their Syncs side by side,
// in one batch where fsys has a way for that (System); more, one SyncFS(dir). All files must lie on the file system of dir. Every sync
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
	if b, ok := fsys.(batchSyncer); ok && b.syncBatch(files, errs[:]) {
		return firstOf(errs[:])
	}
	var wg sync.WaitGroup
	for i, f := range files[1:] {
		// Owned by this call: ends with its one Sync, waited for below.
		wg.Go(func() { errs[i+1] = f.Sync() })
	}
	errs[0] = files[0].Sync()
	wg.Wait()
	return firstOf(errs[:])
}

func firstOf(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// batchSyncer is an FS that may sync files in a batch. false: nothing was done.
type batchSyncer interface {
	syncBatch(files []File, errs []error) bool
}

// SyncGuard is a File around another one that has a say in its syncs. A batch syncs the inner file between BeginSync and EndSync.
type SyncGuard interface {
	File

	// BeginSync takes the right to sync the inner file. ok is false if somebody has it, or if there is nothing to take: then Sync is called.
	BeginSync() (inner File, ok bool)

	// EndSync gives the right back, with the result, and returns what Sync would have.
	EndSync(err error) error
}
