package payload

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

func readAll(t testing.TB, r io.Reader, o Options) ([]string, error) {
	t.Helper()
	reader := NewReader(r, o)
	var out []string
	for {
		record, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out = append(out, string(record))
	}
}

// Claim: records are the bytes between delimiters; a delimiter at the end ends
// the last record and begins none.
// Method: small inputs with every edge, read whole and byte by byte.
func TestRecordsAreTheBytesBetweenDelimiters(t *testing.T) {
	huge := strings.Repeat("x", 3*bufferBytes+17)
	for _, c := range []struct {
		name, in string
		o        Options
		want     []string
	}{
		{"nothing", "", Options{Delimiter: "\n"}, nil},
		{"one empty", "\n", Options{Delimiter: "\n"}, []string{""}},
		{"ends with newline", "a\nb\n", Options{Delimiter: "\n"}, []string{"a", "b"}},
		{"ends without newline", "a\nb", Options{Delimiter: "\n"}, []string{"a", "b"}},
		{"empty lines", "\n\na\n\n", Options{Delimiter: "\n"}, []string{"", "", "a", ""}},
		{"carriage returns stay", "a\r\nb\r\n", Options{Delimiter: "\n"}, []string{"a\r", "b\r"}},
		{"zero bytes", "a\x00b\x00", Options{Delimiter: "\x00"}, []string{"a", "b"}},
		{"long delimiter", "a--b-c--", Options{Delimiter: "--"}, []string{"a", "b-c"}},
		{"half a delimiter at the end", "a--b-", Options{Delimiter: "--"}, []string{"a", "b-"}},
		{"three of two", "a---b", Options{Delimiter: "--"}, []string{"a", "-b"}},
		{"kept", "a\n\nb", Options{Delimiter: "\n", Keep: true}, []string{"a\n", "\n", "b"}},
		{"no delimiter", "a\nb\n", Options{}, []string{"a\nb\n"}},
		{"no delimiter, nothing", "", Options{}, nil},
		{"longer than the buffer", huge + "\n" + huge, Options{Delimiter: "\n"}, []string{huge, huge}},
		{"whole longer than the buffer", huge, Options{}, []string{huge}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, r := range map[string]io.Reader{
				"whole":    strings.NewReader(c.in),
				"by bytes": iotest.OneByteReader(strings.NewReader(c.in)),
				"data+EOF": iotest.DataErrReader(strings.NewReader(c.in)),
			} {
				got, err := readAll(t, r, c.o)
				if err != nil || !slices.Equal(got, c.want) {
					t.Errorf("%s: got %d records %.80q, %v; want %d", name, len(got), got, err, len(c.want))
				}
			}
		})
	}
}

// Claim: with Keep, the records joined are the stream, whatever it holds.
// Method: random bytes over a small alphabet, random delimiters.
func TestKeptRecordsJoinToTheStream(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := []byte(rapid.StringMatching(`[ab\n-]{0,200}`).Draw(t, "in"))
		delimiter := rapid.StringMatching(`[b\n-]{0,3}`).Draw(t, "delimiter")
		reader := NewReader(bytes.NewReader(in), Options{Delimiter: delimiter, Keep: true})
		var joined []byte
		for {
			record, err := reader.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			joined = append(joined, record...)
		}
		if !bytes.Equal(joined, in) || reader.Bytes() != int64(len(in)) {
			t.Fatalf("got %q (%d bytes counted)", joined, reader.Bytes())
		}
	})
}

// Claim: a record longer than the limit is named, and is not gathered in memory.
// Method: limits at, one below and far below the length; an endless line.
func TestTooLongRecordIsNamed(t *testing.T) {
	if got, err := readAll(t, strings.NewReader("abc\nabc\n"), Options{Delimiter: "\n", Limit: 3}); err != nil || len(got) != 2 {
		t.Errorf("at the limit: %q, %v", got, err)
	}
	var long *TooLongError
	got, err := readAll(t, strings.NewReader("ab\nabcd\n"), Options{Delimiter: "\n", Limit: 3})
	if !errors.As(err, &long) || long.Record != 2 || long.Limit != 3 || len(got) != 1 {
		t.Errorf("above the limit: %q, %v", got, err)
	}
	endless := NewReader(repeat('x'), Options{Delimiter: "\n", Limit: bufferBytes})
	if _, err := endless.Next(); !errors.As(err, &long) || long.Record != 1 {
		t.Errorf("endless: %v", err)
	}
	if cap(endless.long) > 4*bufferBytes {
		t.Errorf("an endless line took %d bytes", cap(endless.long))
	}
}

// repeat is an endless stream of one byte.
type repeat byte

func (r repeat) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(r)
	}
	return len(p), nil
}

// Claim: what goes wrong while reading is passed on, not taken for the end.
// Method: a reader that fails after some bytes.
func TestReadErrorIsNotTheEnd(t *testing.T) {
	broken := io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(io.ErrUnexpectedEOF))
	got, err := readAll(t, broken, Options{Delimiter: "\n"})
	if !errors.Is(err, io.ErrUnexpectedEOF) || !slices.Equal(got, []string{"a"}) {
		t.Errorf("got %q, %v", got, err)
	}
}

// Claim: Look counts what Next would give.
// Method: a small stream with an empty and a long record.
func TestLookCountsRecords(t *testing.T) {
	s, err := Look(strings.NewReader("abc\n\nabcdef"), Options{Delimiter: "\n"})
	if want := (Survey{Records: 3, Bytes: 11, Longest: 6, Least: 0}); err != nil || s != want {
		t.Errorf("got %+v, %v; want %+v", s, err, want)
	}
}
