package journal

import (
	"log/slog"

	"millrace/engine/vfs"
)

// Options say where a journal lives and how it behaves. FS, Dir and DataDir must be set; zero means default elsewhere.
type Options struct {
	FS      vfs.FS
	Dir     string // where the journal's files live; of this journal alone
	DataDir string // where the owners' files live; may be on another device than Dir

	// Off makes rounds sync the owners' files and write no journal. What an earlier life left in Dir is still replayed.
	Off bool

	FileBytes int64 // size of a full-grown journal file; default DefaultFileBytes
	Files     int   // how many files at most; default DefaultFiles
	Threshold int   // more bytes than this of one log in one round skip the journal; default DefaultThreshold; < 0: nothing does

	Logger    *slog.Logger // default: discarded
	Poison    func(error)  // called once, without locks, on the first failed write or sync
	OnRecycle func()       // called by the keeper, without locks, when a file's records are all synced where they belong
}
