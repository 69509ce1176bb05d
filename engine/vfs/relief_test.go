package vfs

import (
	"errors"
	"syscall"
	"testing"
)

// scarce is a file system that finds no descriptor for so many operations.
type scarce struct {
	FS
	left int
	err  error
}

func (s *scarce) SyncDir(string) error {
	if s.left == 0 {
		return nil
	}
	s.left--
	return s.err
}

// Claim (F127): an operation that finds no descriptor is done again as long as some are found for it, a bounded number of times; other errors
// are nobody's to retry.
func TestRelievedTriesAgain(t *testing.T) {
	for _, c := range []struct {
		name  string
		fails int
		err   error
		finds int // how often files can be closed
		ok    bool
		asked int
	}{
		{"nothing is wrong", 0, syscall.EMFILE, 9, true, 0},
		{"once", 1, syscall.EMFILE, 9, true, 1},
		{"others were quicker", 3, syscall.ENFILE, 9, true, 3},
		{"nothing to close", 1, syscall.EMFILE, 0, false, 1},
		{"never", 99, syscall.EMFILE, 99, false, reliefs},
		{"another error", 1, syscall.EIO, 9, false, 0},
	} {
		asked := 0
		fs := Relieved(&scarce{left: c.fails, err: c.err}, func() bool { asked++; return asked <= c.finds })
		err := fs.SyncDir("/")
		if (err == nil) != c.ok || asked != c.asked || err != nil && !errors.Is(err, c.err) {
			t.Errorf("%s: %v, asked %d times, want %d", c.name, err, asked, c.asked)
		}
	}
}
