package vfs_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"millrace/engine/vfs"
	"millrace/engine/vfs/faultfs"
)

// Claim: without faults and cuts, the disk that tests use behaves as the real one.
// Method: the same random operations on both; after each, the results must be
// equal: bytes, counts, sizes, listings and the kind of error.
func TestFaultfsAgreesWithTheSystem(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp("", "agree")
		if err != nil {
			r.Fatal(err)
		}
		defer os.RemoveAll(dir)
		disk := faultfs.New(r)
		if err := disk.MkdirAll(dir); err != nil {
			r.Fatal(err)
		}
		real, fake := newPlayer(vfs.OS(), dir), newPlayer(disk, dir)
		defer real.closeAll()
		for i := range rapid.IntRange(1, 40).Draw(r, "operations") {
			step := drawStep(r)
			want, got := real.play(step), fake.play(step)
			if want != got {
				r.Fatalf("operation %d, %+v: the system says %q, faultfs %q", i, step, want, got)
			}
		}
		if want, got := real.tree("."), fake.tree("."); want != got {
			r.Fatalf("at the end: the system has %s, faultfs %s", want, got)
		}
	})
}

// step is one operation, understood by both players alike.
type step struct {
	op   string
	a, b string // names
	slot int    // which open file
	off  int64
	n    int
	fill byte
	flag int
}

var (
	opNames = []string{
		"open", "write", "writev", "read", "truncate", "size", "close", "map", "sync", "preallocate",
		"mkdir", "rename", "remove", "removeall", "readdir", "stat", "chtimes", "syncdir", "syncfs",
	}
	stepNames = []string{"a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "a/x"}
	stepFlags = []int{
		os.O_RDONLY, os.O_RDWR, os.O_RDWR | os.O_CREATE, os.O_RDWR | os.O_CREATE | os.O_TRUNC,
		os.O_RDWR | os.O_CREATE | os.O_EXCL, os.O_WRONLY | os.O_CREATE,
	}
)

func drawStep(r *rapid.T) step {
	return step{
		op:   rapid.SampledFrom(opNames).Draw(r, "op"),
		a:    rapid.SampledFrom(stepNames).Draw(r, "a"),
		b:    rapid.SampledFrom(stepNames).Draw(r, "b"),
		slot: rapid.IntRange(0, 2).Draw(r, "slot"),
		off:  rapid.Int64Range(0, 9000).Draw(r, "off"),
		n:    rapid.IntRange(1, 9000).Draw(r, "n"),
		fill: rapid.Byte().Draw(r, "fill"),
		flag: rapid.SampledFrom(stepFlags).Draw(r, "flag"),
	}
}

// player carries steps out on one file system and puts the results in words.
type player struct {
	vfs.FS
	dir   string
	files [3]vfs.File
}

func newPlayer(f vfs.FS, dir string) *player { return &player{FS: f, dir: dir} }

func (p *player) closeAll() {
	for _, f := range p.files {
		if f != nil {
			f.Close()
		}
	}
}

func (p *player) play(s step) string {
	a, b := filepath.Join(p.dir, s.a), filepath.Join(p.dir, s.b)
	switch s.op {
	case "open":
		return p.open(s, a)
	case "mkdir":
		return word(p.MkdirAll(a))
	case "rename":
		return word(p.Rename(a, b))
	case "remove":
		return word(p.Remove(a))
	case "removeall":
		return word(p.RemoveAll(a))
	case "readdir":
		list, err := p.ReadDir(a)
		return fmt.Sprint(list, word(err))
	case "stat":
		info, err := p.Stat(a)
		if info.IsDir {
			info.Size = 0
		}
		return fmt.Sprint(info.Size, info.IsDir, word(err))
	case "chtimes":
		err := p.Chtimes(a, time.Unix(int64(s.n), 0))
		info, _ := p.Stat(a)
		return fmt.Sprint(err == nil && info.ModTime.Unix() == int64(s.n), word(err))
	case "syncdir":
		if s.n > 1000 {
			return ""
		}
		return word(p.SyncDir(a))
	case "syncfs": // the real one waits for everybody's data; once in a while is enough
		if s.n > 50 {
			return ""
		}
		return word(p.SyncFS(p.dir))
	}
	if p.files[s.slot] == nil {
		return ""
	}
	return p.playFile(s, p.files[s.slot])
}

func (p *player) open(s step, name string) string {
	if p.files[s.slot] != nil {
		return ""
	}
	if info, err := p.Stat(name); err == nil && info.IsDir {
		return "" // the system opens directories for reading; nobody needs that
	}
	f, err := p.OpenFile(name, s.flag)
	if err == nil {
		p.files[s.slot] = f
	}
	return word(err)
}

func (p *player) playFile(s step, f vfs.File) string {
	data := make([]byte, s.n)
	for i := range data {
		data[i] = s.fill + byte(i/700)
	}
	switch s.op {
	case "write":
		n, err := f.WriteAt(data, s.off)
		return fmt.Sprint(n, word(err))
	case "writev":
		n, err := f.WriteVAt([][]byte{data[:s.n/3], nil, data[s.n/3:]}, s.off)
		return fmt.Sprint(n, word(err))
	case "read":
		n, err := f.ReadAt(data, s.off)
		return fmt.Sprint(n, data[:n], word(err))
	case "truncate":
		return word(f.Truncate(s.off))
	case "size":
		n, err := f.Size()
		return fmt.Sprint(n, word(err))
	case "close":
		p.files[s.slot] = nil
		return word(f.Close())
	case "sync":
		if s.n > 1000 {
			return ""
		}
		return word(f.Sync())
	case "preallocate":
		return word(f.Preallocate(s.off, int64(s.n)))
	case "map":
		m, err := f.Map(s.n)
		if err != nil {
			return word(err)
		}
		copy(m.Bytes()[s.n/2:], "stored")
		seen := fmt.Sprint(m.Bytes()[:s.n/2])
		return fmt.Sprint(seen, word(m.Close()))
	}
	return ""
}

// tree is everything below a directory.
func (p *player) tree(dir string) string {
	list, err := p.ReadDir(filepath.Join(p.dir, dir))
	out := word(err)
	for _, e := range list {
		name := path.Join(dir, e.Name)
		if e.IsDir {
			out += fmt.Sprintf(" %s/(%s)", name, p.tree(name))
			continue
		}
		f, err := p.OpenFile(filepath.Join(p.dir, name), os.O_RDONLY)
		if err != nil {
			out += word(err)
			continue
		}
		b, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<20))
		out += fmt.Sprintf(" %s=%d:%x%s", name, len(b), b, word(err))
		f.Close()
	}
	return out
}

// word is the kind of an error; nobody branches on more.
func word(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, io.EOF):
		return "end"
	case errors.Is(err, fs.ErrNotExist):
		return "absent"
	case errors.Is(err, fs.ErrExist): // ENOTEMPTY too, in the eyes of package syscall
		return "exists"
	case errors.Is(err, fs.ErrClosed):
		return "closed"
	case errors.Is(err, syscall.ENOTDIR):
		return "not a directory"
	}
	return "refused"
}
