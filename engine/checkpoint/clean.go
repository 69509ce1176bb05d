package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"millrace/engine/vfs"
)

// CleanName marks a data directory whose logs were all synced and closed in order.
// Its presence counts, not its content: before 3.7 Kafka left it empty.
const CleanName = ".kafka_cleanshutdown"

// TakeClean reports whether a data directory was stopped cleanly, and removes the
// marker, durably, before it returns: from here on a crash is an unclean stop, also
// one in the middle of loading (F010).
func TakeClean(fsys vfs.FS, dir string) (clean bool, err error) {
	err = fsys.Remove(filepath.Join(dir, CleanName))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = fsys.SyncDir(dir)
	}
	if err != nil {
		return false, fmt.Errorf("remove the marker of a clean stop: %w", err)
	}
	return true, nil
}

// MarkClean leaves the marker. Everything it vouches for must be durable before.
// brokerEpoch is -1 if there is none.
func MarkClean(fsys vfs.FS, dir string, brokerEpoch int64) error {
	return WriteFile(fsys, filepath.Join(dir, CleanName), fmt.Appendf(nil, `{"version":0,"brokerEpoch":%d}`, brokerEpoch))
}
