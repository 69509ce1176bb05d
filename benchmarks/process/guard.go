package process

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// stat is what the guard needs of /proc/PID/stat.
type stat struct {
	pid, parent, group int
	name               string
	ticks              int64 // user and system time
	system             int64 // of them, in the kernel
}

// parseStat reads a line of /proc/PID/stat. The name may hold blanks and brackets.
func parseStat(line string) (stat, bool) {
	open, end := strings.IndexByte(line, '('), strings.LastIndexByte(line, ')')
	if open < 0 || end < open {
		return stat{}, false
	}
	f := strings.Fields(line[end+1:])
	if len(f) < 13 {
		return stat{}, false
	}
	s := stat{name: line[open+1 : end]}
	var err [5]error
	var user int64
	s.pid, err[0] = strconv.Atoi(strings.TrimSpace(line[:open]))
	s.parent, err[1] = strconv.Atoi(f[1])
	s.group, err[2] = strconv.Atoi(f[2])
	user, err[3] = strconv.ParseInt(f[11], 10, 64)
	s.system, err[4] = strconv.ParseInt(f[12], 10, 64)
	s.ticks = user + s.system
	for _, e := range err {
		if e != nil {
			return stat{}, false
		}
	}
	return s, true
}

func readStat(pid int) (stat, bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return stat{}, false
	}
	return parseStat(string(b))
}

// snapshot is every process there is, by id.
func snapshot() map[int]stat {
	out := map[int]stat{}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if s, ok := readStat(pid); ok {
				out[pid] = s
			}
		}
	}
	return out
}

// Busy is how much of the machine others use.
type Busy struct {
	Share float64  // of all processors, 0 to 1, by everything but us and what we started
	Who   []string // the largest users, "name[pid] 12 %"
}

func (b Busy) String() string {
	s := fmt.Sprintf("%.0f %% of the processors are busy with something else", b.Share*100)
	if len(b.Who) > 0 {
		s += ": " + strings.Join(b.Who, ", ")
	}
	return s
}

// Others looks for d at what runs beside this process and its children.
func Others(d time.Duration) Busy {
	before := snapshot()
	idle0, all0 := procStat()
	time.Sleep(d)
	after := snapshot()
	idle1, all1 := procStat()
	return judge(before, after, os.Getpid(), all1-all0-(idle1-idle0), all1-all0)
}

// judge splits the busy ticks (of all ticks) of the time between two snapshots into ours and others'. What no process accounts
// for, such as the host taking processors away, counts as others'.
func judge(before, after map[int]stat, self int, busy, all int64) Busy {
	if all <= 0 {
		return Busy{}
	}
	type user struct {
		stat
		used int64
	}
	var ours int64
	var others []user
	for pid, s := range after {
		used := s.ticks - before[pid].ticks
		switch {
		case used <= 0:
		case descends(after, pid, self):
			ours += used
		default:
			others = append(others, user{s, used})
		}
	}
	slices.SortFunc(others, func(a, b user) int { return cmp.Compare(b.used, a.used) })
	out := Busy{Share: max(0, float64(busy-ours)/float64(all))}
	for _, o := range others[:min(3, len(others))] {
		out.Who = append(out.Who, fmt.Sprintf("%s[%d] %.0f %%", o.name, o.pid, 100*float64(o.used)/float64(all)))
	}
	return out
}

// descends says whether pid is self or was started by it, at any remove.
func descends(all map[int]stat, pid, self int) bool {
	for range 64 { // deeper than any tree of processes here; ends a loop that a race of snapshots could show
		if pid == self {
			return true
		}
		s, ok := all[pid]
		if !ok || s.parent == 0 {
			return false
		}
		pid = s.parent
	}
	return false
}

func procStat() (idle, all int64) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0
	}
	return parseProcStat(string(b))
}

// parseProcStat reads the first line of /proc/stat: idle (with waiting for I/O) and all ticks. Guests' time is in user's already.
func parseProcStat(s string) (idle, all int64) {
	line, _, _ := strings.Cut(s, "\n")
	f := strings.Fields(line)
	for i, word := range f[min(1, len(f)):] {
		v, err := strconv.ParseInt(word, 10, 64)
		if err != nil || i >= 8 {
			break
		}
		all += v
		if i == 3 || i == 4 {
			idle += v
		}
	}
	return idle, all
}
