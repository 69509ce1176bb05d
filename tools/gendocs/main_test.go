package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Claim: the documents made from tables say what the tables say now.
func TestMadeDocumentsAreCurrent(t *testing.T) {
	all, err := documents(filepath.Join("..", "..", "docs"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range all {
		got, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("docs/%s is not what the source says; run: go run ./tools/gendocs", name)
		}
	}
}

// Claim: the page tells every result of a recorded run, and says so when none is recorded.
func TestCompatibilityTellsEveryResult(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.json")
	got, err := compatibility(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(got, "No run is recorded") {
		t.Errorf("without a record the page says:\n%s", got)
	}
	record := `[{"client":"a 1","name":"reads","result":"pass","notes":["5 records","2 | 3"]},
		{"client":"a 1","name":"commits","result":"not built","detail":"transactions: no coordinator"},
		{"client":"b","name":"writes","result":"fail","detail":"offset 3 differs (see /somewhere/compat-1)"},
		{"client":"b","name":"lists","result":"skipped","detail":"b is not installed"}]`
	if err := os.WriteFile(path, []byte(record), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err = compatibility(path); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"1 passed, 1 failed, 1 skipped, 1 need what is not built", "| [a 1](#a-1) | 1 | | 1 | |", "| [b](#b) | | 1 | | 1 |", "### a 1\n", "| reads | pass | 5 records; 2 \\| 3 |",
		"| commits | **not built** | transactions: no coordinator |", "| writes | **fail** | offset 3 differs |", "| lists | skipped | b is not installed |"} {
		if !strings.Contains(got, want) {
			t.Errorf("the page lacks %q:\n%s", want, got)
		}
	}
}
