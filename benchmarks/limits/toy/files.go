package main

import (
	"math/rand/v2"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// files bounds how many are open: as in the broker, seven eighths of the descriptors that are allowed. One drawn by
// lot is closed for one more.
type files struct {
	max int

	mu   sync.Mutex
	list []*partition // with an open file
}

func openAtMost() int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 1000
	}
	return int(limit.Cur / 8 * 7) // the runtime has raised Cur to Max
}

// open opens the file unless it is open. Caller holds p.mu.
func (p *partition) open(flag int) error {
	if p.file != nil {
		return nil
	}
	f, err := os.OpenFile(p.path, os.O_RDWR|flag, 0o644)
	if err != nil {
		return err
	}
	p.file, p.fd = f, int(f.Fd())
	fs := p.files
	fs.mu.Lock()
	defer fs.mu.Unlock()
	p.slot = len(fs.list)
	fs.list = append(fs.list, p)
	for range 100 { // tries: one in use stays
		if len(fs.list) <= fs.max {
			break
		}
		if v := fs.list[rand.IntN(len(fs.list))]; v != p && v.mu.TryLock() {
			v.file.Close()
			v.file = nil
			end := fs.list[len(fs.list)-1]
			fs.list[v.slot], end.slot = end, v.slot
			fs.list = fs.list[:len(fs.list)-1]
			v.mu.Unlock()
		}
	}
	return nil
}

// sync brings the file to the disk.
func (p *partition) sync() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.open(0); err != nil {
		return err
	}
	return unix.Fdatasync(p.fd)
}
