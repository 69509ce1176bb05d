package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"millrace/engine/batch"
)

// Claim: dump-log check of a data directory looks at every partition in it and says where the damage is; one path that is not there hides
// nothing of the others.
// Method: a folder that is whole and one with a flipped byte.
func TestDumpLogCheckOfADataDirectory(t *testing.T) {
	data := t.TempDir()
	b := batch.NewBuilder(batch.None, 0)
	if err := b.Add(batch.Record{Timestamp: 1, Value: []byte("whole")}); err != nil {
		t.Fatal(err)
	}
	for _, topic := range []string{"a-0", "b-0", "empty-0"} {
		dir := filepath.Join(data, topic)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		segment := bytes.Clone(b.Bytes())
		switch topic {
		case "b-0":
			segment[len(segment)-1] ^= 1
		case "empty-0":
			segment = nil
		}
		if err := os.WriteFile(filepath.Join(dir, "00000000000000000000.log"), segment, 0o644); err != nil {
			t.Fatal(err)
		}
		for _, index := range []string{".index", ".timeindex"} {
			if err := os.WriteFile(filepath.Join(dir, "00000000000000000000"+index), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	var out, errs bytes.Buffer
	status := runNamed(t.Context(), "millrace", []string{"dump-log", "check", filepath.Join(data, "none"), data}, strings.NewReader(""), &out, &errs)
	for _, want := range []string{"ok " + filepath.Join(data, "a-0") + "\n", "DAMAGE b-0/00000000000000000000.log: batch at position 0", "ok " + filepath.Join(data, "empty-0") + "\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in %s", want, out.String())
		}
	}
	if status != 1 || !strings.Contains(errs.String(), "damaged places: 1;") || !strings.Contains(errs.String(), "none: no such file") {
		t.Errorf("exit status %d: %s", status, errs.String())
	}
}
