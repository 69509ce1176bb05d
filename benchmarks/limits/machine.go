package main

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// warmMemory touches and gives back some GiB, so that page cache and servers get memory that the host has already backed.
func warmMemory(gib int) {
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

// busyShare is how much of all processors others used during d.
func busyShare(d time.Duration) float64 {
	idle0, all0 := procStat()
	time.Sleep(d)
	idle1, all1 := procStat()
	if all1 == all0 {
		return 0
	}
	return 1 - float64(idle1-idle0)/float64(all1-all0)
}

func procStat() (idle, all int64) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0
	}
	line, _, _ := strings.Cut(string(b), "\n")
	for i, f := range strings.Fields(line)[1:] {
		var v int64
		fmt.Sscan(f, &v)
		all += v
		if i == 3 || i == 4 {
			idle += v
		}
	}
	return idle, all
}

// machine says what the figures were measured on.
func machine(dir string) string {
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

// fill sends the worker's frame n times over one connection, one after the other.
func (w *worker) fill(addr string, n int) error {
	c, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(5 * time.Minute))
	w.conn = c
	for range n {
		if err := w.send(1); err != nil {
			return err
		}
		if _, err := w.answers(1); err != nil {
			return err
		}
	}
	return nil
}
