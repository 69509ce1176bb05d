package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// WarmMemory touches and gives back some GiB, so that page cache and servers get memory that the host has already backed.
func WarmMemory(gib int) {
	for range gib {
		b, err := unix.Mmap(-1, 0, 1<<30, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		if err != nil {
			return
		}
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		defer unix.Munmap(b)
	}
}

// BusyShare is how much of all processors anybody used during d.
func BusyShare(d time.Duration) float64 {
	idle0, all0 := procStat()
	time.Sleep(d)
	idle1, all1 := procStat()
	if all1 == all0 {
		return 0
	}
	return 1 - float64(idle1-idle0)/float64(all1-all0)
}

// Machine says what the figures were measured on; dir is on the disk in question.
func Machine(dir string) string {
	var u unix.Utsname
	unix.Uname(&u)
	var fs unix.Statfs_t
	unix.Statfs(dir, &fs)
	cpu := "?"
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(b)) {
			if v, ok := strings.CutPrefix(line, "model name"); ok {
				cpu = strings.TrimSpace(strings.TrimLeft(v, "\t: "))
				break
			}
		}
	}
	return fmt.Sprintf("Linux %s, %s, %d × %s, file system type 0x%x", unix.ByteSliceToString(u.Release[:]), runtime.Version(), runtime.NumCPU(), cpu, fs.Type)
}

// DropFromMemory writes out and drops the page cache of all files of a folder.
func DropFromMemory(dir string) error {
	unix.Sync()
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && !d.Type().IsRegular() {
			return nil // a segment may go at any time
		}
		if err != nil {
			return err
		}
		f, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		defer f.Close()
		return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
	})
}

// WorkDir is the folder to measure in: the one that was asked for, or, for "", a new one in this folder, which remove takes away.
func WorkDir(asked string) (dir string, remove func(), err error) {
	if asked != "" {
		return asked, func() {}, nil
	}
	dir, err = os.MkdirTemp(".", ".bench-")
	return dir, func() { os.RemoveAll(dir) }, err
}
