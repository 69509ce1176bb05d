package main

import (
	"fmt"
	"strings"
)

type kind string

const (
	appends kind = "append" // as many as there is time for
	scans   kind = "scan"   // a whole log in order, appends over
	tails   kind = "tail"   // a batch that was appended just now; only the reading is timed
	randoms kind = "random" // one record by its number, anywhere in the log
	reopens kind = "reopen" // a copy of the files of a store in use, opened until it is ready for the next append
)

// row is one kind of load.
type row struct {
	kind    kind
	synced  bool
	batch   int // records an append
	size    int // bytes of a record
	logs    int
	writers int
}

func (r row) name() string {
	mode := "unsynced"
	if r.synced {
		mode = "synced"
	}
	size := fmt.Sprintf("%d B", r.size)
	if r.size == 1<<10 {
		size = "1 KiB"
	}
	load := fmt.Sprintf("%d × %s", r.batch, size)
	switch r.kind {
	case appends:
		return fmt.Sprintf("append %s, %s, %s, %s", mode, load, many(r.logs, "log"), many(r.writers, "writer"))
	case tails:
		return fmt.Sprintf("tail read, %s", load)
	case scans:
		return fmt.Sprintf("scan, %s a batch", load)
	case randoms:
		return fmt.Sprintf("random read, %s a batch", load)
	}
	return fmt.Sprintf("reopen after a crash, %s a batch, %s", load, mode)
}

func many(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// weaker says that a peer's acknowledgement means less than the row asks for.
func (r row) weaker(p peer) bool { return r.kind == appends && !r.synced && p.weaker != "" }

// not says why a peer cannot do the row.
func (r row) not(p peer) string {
	switch {
	case r.kind == appends && !r.synced && p.unsynced != "":
		return p.unsynced
	case r.kind == reopens && !r.synced:
		return p.weaker
	case r.kind == randoms:
		return p.random
	case r.kind == tails:
		return p.tail
	}
	return ""
}

// fillsSynced: a store that is filled for a read is filled without syncs where the library can, since only reading is measured.
func (r row) fillsSynced(p peer) bool {
	if r.kind == appends || r.kind == reopens {
		return r.synced || p.unsynced != ""
	}
	return p.unsynced != ""
}

func rows() []row {
	var out []row
	for _, synced := range []bool{true, false} {
		for _, size := range []int{100, 1 << 10} {
			for _, batch := range []int{1, 100, 1000} {
				out = append(out, row{appends, synced, batch, size, 1, 1})
			}
		}
		for _, writers := range []int{8, 64} {
			out = append(out, row{appends, synced, 1, 100, 1, writers}, row{appends, synced, 100, 100, 1, writers})
		}
		out = append(out, row{appends, synced, 1, 1 << 10, 1, 64})
		for _, logs := range []int{10, 100} {
			out = append(out, row{appends, synced, 1, 100, logs, 64}, row{appends, synced, 100, 1 << 10, logs, 64})
		}
		out = append(out, row{appends, synced, 1, 100, 1000, 64}) // opening seven times a thousand logs takes most of its time
	}
	for _, k := range []kind{scans, tails, randoms} {
		for _, load := range [][2]int{{1, 100}, {100, 100}, {1, 1 << 10}} {
			out = append(out, row{k, false, load[0], load[1], 1, 1})
		}
	}
	for _, synced := range []bool{true, false} {
		out = append(out, row{reopens, synced, 1000, 100, 1, 1})
	}
	return out
}

// short are a few rows of each kind, small enough for a test.
func short() []row {
	var out []row
	for _, r := range rows() {
		if r.logs <= 10 && (r.kind != appends || r.size == 100 && r.batch <= 100) {
			out = append(out, r)
		}
	}
	return out
}

// unit is what the row's main figure counts.
func (r row) unit() string {
	switch r.kind {
	case appends:
		return "appends a second"
	case reopens:
		return "seconds"
	case scans:
		return "records a second"
	}
	return strings.TrimSuffix(string(r.kind), "s") + " reads a second"
}
