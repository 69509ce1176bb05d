// Command toy is the ceiling that the benchmarks hold Millrace against: a server that does for a
// Produce or Fetch request only what no broker can leave out. It reads frames, checks each batch's CRC,
// patches offset and epoch, writes the bytes with one pwrite a partition, makes them durable if asked,
// and answers; fetches go out by sendfile or, below 64 KiB, by one read and one write.
// It keeps no index, checks nothing else, recovers nothing, and serves only the two request versions
// that the load generator prepares (Produce v7, Fetch v11).
//
// Modes: echo (answer at once, nothing stored), page-cache (stored, not synced), journal (answers after one
// O_DIRECT|O_DSYNC write of everything gathered), files (answers after an fdatasync of what was written).
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

type server struct {
	mode string
	dir  string
	sync *syncer // nil unless answers wait for the disk

	mu    sync.RWMutex
	parts map[string]*partition
	files files
}

// partition is one file and the positions of its batches.
type partition struct {
	path  string
	files *files

	mu     sync.Mutex
	file   *os.File // nil while it is closed for another's sake
	fd     int
	slot   int // in files.open
	size   int64
	next   int64   // offset of the next batch
	starts []int64 // first offset of each batch, ascending
	at     []int64 // and its position in the file
}

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address to serve")
	dir := flag.String("dir", "toy-data", "folder for the files")
	mode := flag.String("mode", "page-cache", "echo, page-cache, journal or files")
	flag.Parse()
	if err := run(*listen, *dir, *mode); err != nil {
		fmt.Fprintln(os.Stderr, "toy:", err)
		os.Exit(1)
	}
}

func run(listen, dir, mode string) error {
	switch mode {
	case "echo", "page-cache", "journal", "files":
	default:
		return fmt.Errorf("mode %q: want echo, page-cache, journal or files", mode)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	s := &server{mode: mode, dir: dir, parts: map[string]*partition{}}
	s.files.max = openAtMost()
	if mode == "journal" || mode == "files" {
		var err error
		if s.sync, err = newSyncer(filepath.Join(dir, "journal"), mode == "journal"); err != nil {
			return err
		}
	}
	var lc net.ListenConfig
	lc.SetMultipathTCP(false)
	l, err := lc.Listen(context.Background(), "tcp", listen)
	if err != nil {
		return err
	}
	fmt.Printf("ready listeners=PLAINTEXT://%s\n", l.Addr())
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, os.Interrupt)
	go func() { // ends the process; nothing here needs a clean stop
		<-stop
		os.Exit(0)
	}()
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() { // one per connection, ends with it
			if err := s.serve(c.(*net.TCPConn)); err != nil {
				fmt.Fprintln(os.Stderr, "toy:", c.RemoteAddr(), err)
			}
			c.Close()
		}()
	}
}

// part finds or makes the file of a topic's partition. name is copied only when it is new.
func (s *server) part(topic []byte, index int32) (*partition, error) {
	var key [280]byte
	k := append(key[:0], topic...)
	k = append(k, '-')
	k = strconv.AppendInt(k, int64(index), 10)
	s.mu.RLock()
	p := s.parts[string(k)]
	s.mu.RUnlock()
	if p != nil {
		return p, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p = s.parts[string(k)]; p != nil {
		return p, nil
	}
	p = &partition{path: filepath.Join(s.dir, string(k)+".log"), files: &s.files}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.open(os.O_CREATE | os.O_TRUNC); err != nil {
		return nil, err
	}
	s.parts[string(k)] = p
	return p, nil
}

// append stamps one batch and writes it; the answer is its base offset.
func (p *partition) append(b []byte, count int64) (int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.open(0); err != nil {
		return 0, err
	}
	base := p.next
	stamp(b, base)
	if _, err := unix.Pwrite(p.fd, b, p.size); err != nil {
		return 0, err
	}
	p.starts = append(p.starts, base)
	p.at = append(p.at, p.size)
	p.size += int64(len(b))
	p.next += count
	return base, nil
}
