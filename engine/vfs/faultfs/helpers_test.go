package faultfs

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"millrace/engine/vfs"
)

// seeds is how many runs a claim about chance gets.
const seeds = 200

// eachSeed runs a claim with many seeds on a disk that has the directory /d, durably.
func eachSeed(t *testing.T, claim func(d *Disk)) {
	t.Helper()
	for seed := uint64(1); seed <= seeds && !t.Failed(); seed++ {
		d := New(t, Seed(seed))
		ready(t, d)
		claim(d)
	}
}

func newDisk(t *testing.T, opts ...Option) *Disk {
	t.Helper()
	d := New(t, opts...)
	ready(t, d)
	return d
}

func ready(t *testing.T, d *Disk) {
	t.Helper()
	must(t, d.MkdirAll("/d"))
	must(t, d.SyncDir("/"))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func failsWith(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%s: got error %v, want %v", what, err, want)
	}
}

func create(t testing.TB, d *Disk, name string) vfs.File {
	t.Helper()
	f, err := d.OpenFile(name, os.O_RDWR|os.O_CREATE)
	must(t, err)
	return f
}

// durable makes a file with contents, name and all.
func durable(t testing.TB, d *Disk, name string, data []byte) vfs.File {
	t.Helper()
	must(t, d.WriteFile(name, data))
	return create(t, d, name)
}

func write(t testing.TB, f vfs.File, data []byte, off int64) {
	t.Helper()
	_, err := f.WriteAt(data, off)
	must(t, err)
}

// read returns a file's contents; nil if there is none of that name.
func read(t testing.TB, d *Disk, name string) []byte {
	t.Helper()
	b, err := d.ReadFile(name)
	if isAbsent(err) {
		return nil
	}
	must(t, err)
	if b == nil {
		b = []byte{}
	}
	return b
}

// list is the names in a directory, joined.
func list(t testing.TB, d *Disk, dir string) string {
	t.Helper()
	entries, err := d.ReadDir(dir)
	must(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name)
	}
	return strings.Join(names, " ")
}

// sectors is n sectors filled with b.
func sectors(n int, b byte) []byte { return bytes.Repeat([]byte{b}, n*sectorBytes) }

// sectorsOf says what each sector of p is filled with; -1 for a mix.
func sectorsOf(p []byte) []int {
	var fill []int
	for len(p) > 0 {
		part := p[:min(sectorBytes, len(p))]
		v := int(part[0])
		if !bytes.Equal(part, bytes.Repeat(part[:1], len(part))) {
			v = -1
		}
		fill = append(fill, v)
		p = p[len(part):]
	}
	return fill
}
