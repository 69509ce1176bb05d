package engine

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"

	"millrace/engine/batch"
	"millrace/engine/vfs"
	"millrace/engine/vfs/faultfs"
)

// logTB is what the helpers need of *testing.T, *testing.B and *rapid.T.
type logTB interface {
	Helper()
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
}

const logDir = "/data/t-0"

// smallLog has segments that roll after a few batches and an index entry for
// nearly every batch.
func smallLog() Config {
	c := DefaultConfig()
	c.SegmentBytes, c.IndexBytes, c.IndexInterval = 1000, 4096, 150
	c.DeleteDelay = 0
	return c
}

// openFilesOfTests bounds the open segment files of the logs and stores of tests; 0: nothing does. TestFewOpenFiles sets
// it, and MILLRACE_TEST_OPEN_FILES=1 does for a whole run.
var openFilesOfTests, _ = strconv.Atoi(os.Getenv("MILLRACE_TEST_OPEN_FILES"))

func openTestLog(t logTB, fs vfs.FS, c Config, change ...func(*LogOptions)) *Log {
	t.Helper()
	l, err := tryOpen(fs, c, change...)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return l
}

func tryOpen(fs vfs.FS, c Config, change ...func(*LogOptions)) (*Log, error) {
	o := LogOptions{FS: fs, Topic: "t", Config: c, JournalBytes: 16 << 10}
	if openFilesOfTests > 0 {
		o.Files = NewFileSet(openFilesOfTests)
	}
	for _, f := range change {
		f(&o)
	}
	return OpenLog(logDir, o)
}

func withLogger(l *slog.Logger) func(*LogOptions) {
	return func(o *LogOptions) { o.Logger = l }
}

// said collects log lines.
type said struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *said) count(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Count(s.b.String(), what)
}

func (s *said) logger() *slog.Logger { return slog.New(slog.NewTextHandler(s, nil)) }

// newBatch makes a batch of records with the given values, timestamp ts each.
func newBatch(ts int64, values []string, opts ...batch.Option) []byte {
	b := batch.NewBuilder(batch.None, 0)
	for _, v := range values {
		if err := b.Add(batch.Record{Timestamp: ts, Value: []byte(v)}); err != nil {
			panic(err)
		}
	}
	return b.Bytes(opts...)
}

func leaderAppend(b []byte) *Append {
	info, err := batch.Check(b, &batch.Rules{AllowControl: true})
	if err != nil {
		panic(fmt.Sprintf("test batch: %v", err))
	}
	return &Append{Batch: b, Info: info}
}

func followerAppend(b []byte) *Append {
	info, err := batch.CheckStored(b)
	if err != nil {
		panic(fmt.Sprintf("test batch: %v", err))
	}
	return &Append{Batch: b, Info: info, Follower: true}
}

// put appends one batch of the given values and returns its base offset.
func put(t logTB, l *Log, values ...string) Offset {
	t.Helper()
	a := leaderAppend(newBatch(1000, values))
	if err := l.Append(a, 0); err != nil {
		t.Fatalf("append: %v", err)
	}
	return a.Base
}

// putN appends n batches of one record, with values that say their number.
func putN(t logTB, l *Log, n int) {
	t.Helper()
	for range n {
		put(t, l, valueOf(l.End()))
	}
}

// valueOf is what putN writes at an offset: enough bytes that a thousand hold a few.
func valueOf(o Offset) string { return fmt.Sprintf("value-%06d-%s", o, strings.Repeat("x", 40)) }

type gotRecord struct {
	offset Offset
	value  string
}

// contents reads everything between Start and limit in pieces of at most max bytes.
func contents(l *Log, limit Offset, max int) ([]gotRecord, error) {
	var got []gotRecord
	for at := l.Start(); at < limit; {
		s, err := l.Read(at, max, limit, true)
		if err != nil {
			return got, err
		}
		data := make([]byte, s.Size())
		err = s.ReadInto(data)
		s.Release()
		if err != nil {
			return got, err
		}
		if len(data) == 0 {
			return got, nil // a gap up to limit
		}
		before := at
		for r, err := range batch.Records(data) {
			if errors.Is(err, batch.ErrShort) {
				break
			}
			if err != nil {
				return got, err
			}
			if Offset(r.Offset) >= at {
				got = append(got, gotRecord{Offset(r.Offset), string(r.Value)})
				at = Offset(r.Offset) + 1
			}
		}
		if at == before {
			return got, fmt.Errorf("no progress at %d with %d bytes", at, len(data))
		}
	}
	return got, nil
}

func mustContents(t logTB, l *Log) []gotRecord {
	t.Helper()
	got, err := contents(l, l.End(), 1<<20)
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	return got
}

// requireValues demands the records [from, to) as putN writes them, and no others.
func requireValues(t logTB, l *Log, from, to Offset) {
	t.Helper()
	if l.End() != to {
		t.Fatalf("end %d, want %d", l.End(), to)
	}
	got := mustContents(t, l)
	if len(got) != int(to-from) {
		t.Fatalf("%d records, want %d", len(got), to-from)
	}
	for i, r := range got {
		if want := from + Offset(i); r.offset != want || r.value != valueOf(want) {
			t.Fatalf("record %d is %+v, want offset %d", i, r, want)
		}
	}
}

func closeLog(t logTB, l *Log) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
}

// crash is kill -9: the disk as it is now, for another process.
func crash(d *faultfs.Disk) *faultfs.Disk { return d.Clone() }

// fileNames lists the files of the log with a suffix.
func fileNames(t logTB, fs vfs.FS, suffix string) []string {
	t.Helper()
	list, err := fs.ReadDir(logDir)
	if err != nil {
		t.Fatalf("list: %v", err)
	}
	var names []string
	for _, e := range list {
		if strings.HasSuffix(e.Name, suffix) {
			names = append(names, logDir+"/"+e.Name)
		}
	}
	return names
}

func readFile(t logTB, d *faultfs.Disk, name string) []byte {
	t.Helper()
	b, err := d.ReadFile(name)
	if err != nil {
		t.Fatalf("read %s: %v", name, err)
	}
	return b
}

func writeFile(t logTB, d *faultfs.Disk, name string, data []byte) {
	t.Helper()
	if err := d.WriteFile(name, data); err != nil {
		t.Fatalf("write %s: %v", name, err)
	}
}

// pageCache is smallLog without syncs.
func pageCache() Config {
	c := smallLog()
	c.Durability = PageCache
	return c
}
