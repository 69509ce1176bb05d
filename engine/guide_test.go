package engine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Claim: the code in docs/library.md is that of the examples, which compile and run.
func TestGuideShowsCompiledCode(t *testing.T) {
	guide, err := os.ReadFile("../docs/library.md")
	if err != nil {
		t.Fatal(err)
	}
	var examples strings.Builder
	files, _ := filepath.Glob("example*_test.go")
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		examples.Write(b)
	}
	blocks := 0
	for i, part := range strings.Split(string(guide), "```") {
		code, isGo := strings.CutPrefix(part, "go\n")
		if i%2 == 0 || !isGo {
			continue
		}
		if blocks++; !strings.Contains(examples.String(), code) {
			t.Errorf("no example has this:\n%s", code)
		}
	}
	if blocks < 5 {
		t.Errorf("%d blocks of code", blocks)
	}
}
