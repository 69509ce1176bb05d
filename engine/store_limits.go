package engine

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"millrace/engine/checkpoint"
	"millrace/engine/vfs"
)

// Bounds of the Store, with their arithmetic.
const (
	// defaultIndexMaps: beyond some thousand mappings touching one costs
	// microseconds (LIMITS: 5.8 us at 10,000 against 20 ns), and Linux allows 65,530.
	defaultIndexMaps = 1000

	// Descriptors that are kept from segment files: those lent to indexes, journals,
	// locks, checkpoints, rings (at most ring.MaxRings), and sockets of clients. Where few are allowed a half must do.
	reservedFiles = defaultIndexMaps + 1500
	reservedShare = 2

	// leastFiles: with fewer a broker cannot keep its journals, some indexes and some
	// clients at work, and no more logs are made.
	leastFiles = 64

	// maxSegmentFiles is enough for anybody: about 1 KiB of the kernel's memory each.
	maxSegmentFiles = 1 << 20

	// Maps besides the indexes': the Go heap, libraries, thread stacks.
	reservedMaps = 4096

	// checkpointBytes is how much may be written before the recovery points are
	// written anew, out of their turn: about 50 ms of reading for a start after a crash.
	checkpointBytes = 128 << 20

	// recyclePause is the least time between two checkpoints that are written
	// because a journal file was recycled. It bounds what a start after a crash
	// reads to what arrives in that time, above two journal files.
	recyclePause = time.Second

	// progressEvery is how often a slow start says how far it is.
	progressEvery = 2 * time.Second

	// Kafka's bound on topic names, so that folder names stay below 255 bytes.
	maxTopicName = 249

	// lowSpace is when free space is worth a word: less than a few segments.
	lowSpace = 2 << 30
)

// Advice is one limit of the machine that is or may become too low.
type Advice struct {
	Name       string // "RLIMIT_NOFILE", "vm.max_map_count", "free space"
	Have, Need int64
	OK         bool
	Text       string // a sentence for the log: what it means and what to do
}

// CheckLimits compares what the process may use with what that many logs need. It
// returns all limits, those that suffice too (F127: the start logs limits and need).
func CheckLimits(logs int) []Advice {
	return []Advice{adviseFiles(logs, openFileLimit()), adviseMaps(mapLimit())}
}

// reserved is how many of the descriptors allowed are kept from segment files.
func reserved(have int64) int64 { return min(reservedFiles, have/reservedShare) }

// segmentFiles is how many segment files may be open, of however many logs.
func segmentFiles(have int64) int { return int(max(1, min(have-reserved(have), maxSegmentFiles))) }

// Sockets is how many of the descriptors allowed clients may have, so that the logs, which can do with few, find those (F127).
func Sockets() int {
	have := openFileLimit()
	return int(max(1, have-max(leastFiles, have/4)))
}

// indexFiles is how many indexes may keep their file open.
func indexFiles(have int64) int {
	return int(max(1, min(defaultIndexMaps, reserved(have)*defaultIndexMaps/reservedFiles)))
}

// adviseFiles: logs need no descriptors of their own, for files that are not in use are
// closed for others (FileSet). With one for each log nothing is ever opened twice.
func adviseFiles(logs int, have int64) Advice {
	a := Advice{Name: "RLIMIT_NOFILE", Have: have, Need: leastFiles}
	a.OK = have >= a.Need
	a.Text = fmt.Sprintf("%d open files are allowed, up to %d of them for segments of %d logs", a.Have, segmentFiles(have), logs)
	switch {
	case !a.OK:
		a.Text += fmt.Sprintf(": at least %d are needed; raise it (ulimit -n, LimitNOFILE= of the service); new topics are refused until then", a.Need)
	case logs > segmentFiles(have):
		a.Text += ": those that are not in use are closed for others, which costs some speed; raise it (ulimit -n, LimitNOFILE= of the service) to keep all open"
	}
	return a
}

func adviseMaps(have int64) Advice {
	a := Advice{Name: "vm.max_map_count", Have: have, Need: defaultIndexMaps + reservedMaps}
	a.OK = have >= a.Need
	a.Text = fmt.Sprintf("%d memory maps are allowed; about %d are used, however many logs there are", a.Have, a.Need)
	if !a.OK {
		a.Text += ": raise it (sysctl vm.max_map_count); until then indexes that find no map are written with the logs' own pages"
	}
	return a
}

// openFileLimit is the soft limit, which Go has raised to the hard one at the start.
func openFileLimit() int64 {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil || r.Cur > 1<<40 {
		return 1 << 40
	}
	return int64(r.Cur)
}

// mapLimit reads the kernel's setting; a system that does not tell is taken for Linux' default.
func mapLimit() int64 {
	b, err := checkpoint.ReadFile(vfs.OS(), "/proc/sys/vm/max_map_count")
	if err == nil {
		if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil {
			return n
		}
	}
	return 65530
}

// CheckSpace tells how much each data directory may still take.
func (s *Store) CheckSpace() []Advice {
	var list []Advice
	for _, d := range s.dirs {
		free, err := d.fs.Free(d.path)
		if err != nil || d.offline() != nil {
			continue
		}
		a := Advice{Name: "free space", Have: free, Need: lowSpace, OK: free >= lowSpace}
		a.Text = fmt.Sprintf("%s has %d MiB free", d.path, free>>20)
		if !a.OK {
			a.Text += ": appends are refused once it is full; lower retention, or give it more"
		}
		list = append(list, a)
	}
	return list
}

// LimitError refuses a new log because a limit of the machine is near. Nothing was made.
type LimitError struct {
	Name       string
	Have, Need int64
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("no more logs: %s is %d, %d would be needed", e.Name, e.Have, e.Need)
}

// Is makes it a storage error: what exists serves on.
func (e *LimitError) Is(target error) bool { return target == ErrStorage }
