package main

import (
	"os"
	"path/filepath"
	"testing"
)

// Claim: the documents made from tables say what the tables say now.
func TestMadeDocumentsAreCurrent(t *testing.T) {
	for name, want := range documents() {
		got, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("docs/%s is not what the source says; run: go run ./tools/gendocs", name)
		}
	}
}
