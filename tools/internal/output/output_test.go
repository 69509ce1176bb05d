package output

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func sample() Table {
	t := Table{Title: "title", Head: []string{"name", "n"}, Numbers: []string{"n"}}
	t.Add("a", "1")
	t.Add("b\tc\nd", "22")
	return t
}

// Claim: in a pipe a table is one tab-separated line a row, with no head.
// Method: write to a buffer; cells hold a tab and a newline.
func TestTableInAPipeIsTabSeparated(t *testing.T) {
	var b bytes.Buffer
	table := sample()
	if err := table.Write(&b); err != nil {
		t.Fatal(err)
	}
	if want := "a\t1\nb c d\t22\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

// Claim: drawn for people it has title, head and numbers flush right.
// Method: draw and look for the lines.
func TestTableForPeople(t *testing.T) {
	table := sample()
	drawn := table.drawn(0)
	for _, want := range []string{"title", "│ name", "│  1 │"} {
		if !strings.Contains(drawn, want) {
			t.Errorf("no %q in\n%s", want, drawn)
		}
	}
}

// Claim: a table is no wider than the terminal; the widest columns give way, nothing is
// cut off, and numbers stay whole.
// Method: a wide cell beside narrow ones, in a terminal of 60 columns.
func TestTableFitsTheTerminal(t *testing.T) {
	table := Table{Head: []string{"name", "n", "value"}, Numbers: []string{"n"}}
	table.Add("short", "1234567890", strings.Repeat("x", 200))
	table.Add("a-name-that-is-longer", "1", "y")
	drawn := table.drawn(60)
	for line := range strings.Lines(drawn) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 60 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if strings.Count(drawn, "x") != 200 || !strings.Contains(drawn, "1234567890") {
		t.Errorf("got\n%s", drawn)
	}
}

// Claim: nobody watching means no progress and no crash.
// Method: a buffer instead of a terminal; every method on what comes back.
func TestNoProgressInAPipe(t *testing.T) {
	var b bytes.Buffer
	p := StartProgress(&b, 10, true, "x")
	ran := false
	p.Set(5)
	p.Aside(func() { ran = true })
	p.Stop()
	if p != nil || b.Len() > 0 || !ran {
		t.Errorf("got %v, wrote %q, ran %v", p, b.String(), ran)
	}
}

// Claim: JSON goes to the file as it is, without HTML escapes.
// Method: write and read back.
func TestJSONFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "out.json")
	if err := JSONFile(name, map[string]string{"a": "<b>"}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(name)
	if err != nil || string(got) != "{\n  \"a\": \"<b>\"\n}\n" {
		t.Errorf("got %q, %v", got, err)
	}
	if err := JSONFile(filepath.Join(name, "no"), nil); err == nil {
		t.Error("a path that cannot be was taken")
	}
}
