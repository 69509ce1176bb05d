package frameworks

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Claim: sameCounts finds a value that is missing, too often or foreign; at least once forgives only too often.
func TestSameCountsFindsEachDifference(t *testing.T) {
	want := map[string]int{"a": 2, "b": 1}
	for _, c := range []struct {
		name           string
		got            map[string]int
		exact, atLeast bool // is no error
	}{
		{"equal", map[string]int{"a": 2, "b": 1}, true, true},
		{"missing", map[string]int{"a": 2}, false, false},
		{"too few", map[string]int{"a": 1, "b": 1}, false, false},
		{"twice", map[string]int{"a": 3, "b": 1}, false, true},
		{"foreign", map[string]int{"a": 2, "b": 1, "c": 1}, false, false},
	} {
		for _, atLeast := range []bool{false, true} {
			ok := c.exact
			if atLeast {
				ok = c.atLeast
			}
			if _, err := sameCounts(want, c.got, atLeast); (err == nil) != ok {
				t.Errorf("%s, at least %v: %v", c.name, atLeast, err)
			}
		}
	}
}

// Claim: sameRecords finds a difference in each field of a record, and null is not empty.
func TestSameRecordsFindsEachDifference(t *testing.T) {
	record := func(change func(*kgo.Record)) [][]*kgo.Record {
		r := &kgo.Record{Key: []byte("k"), Value: []byte{}, Timestamp: time.UnixMilli(5), Headers: []kgo.RecordHeader{{Key: "h", Value: []byte("1")}}}
		change(r)
		return [][]*kgo.Record{{r}}
	}
	want := record(func(*kgo.Record) {})
	if err := sameRecords(want, record(func(*kgo.Record) {})); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*kgo.Record){
		"key":        func(r *kgo.Record) { r.Key = []byte("l") },
		"null value": func(r *kgo.Record) { r.Value = nil },
		"timestamp":  func(r *kgo.Record) { r.Timestamp = time.UnixMilli(6) },
		"headers":    func(r *kgo.Record) { r.Headers = nil },
		"header":     func(r *kgo.Record) { r.Headers[0].Value = nil },
	} {
		if sameRecords(want, record(change)) == nil {
			t.Errorf("a different %s was not seen", name)
		}
	}
	if sameRecords(want, [][]*kgo.Record{{}}) == nil {
		t.Error("a missing record was not seen")
	}
}

// Claim: a place that brought two values is an error, the same value twice is not.
func TestCollectedRefusesTwoValuesAtAPlace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "collected")
	for text, ok := range map[string]bool{"0 0 YQ==\n0 0 YQ==\n": true, "0 0 YQ==\n0 0 Yg==\n": false, "0 0\n": false} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := collected(file); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Claim: of a chain of exceptions the one with the text is shown.
func TestCauseIsTheExceptionWithTheText(t *testing.T) {
	if got := cause("start: error outer: x <- middle: not built <- inner", "not built"); got != "middle: not built" {
		t.Errorf("got %q", got)
	}
	if got := cause("start: error other", "not built"); !strings.Contains(got, "other") {
		t.Errorf("got %q", got)
	}
}
