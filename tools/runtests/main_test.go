package main

import (
	"bytes"
	"strings"
	"testing"
)

// Claim: passes, failures and skips are counted by test, failed output is shown, passed output is not, and a skip shows its reason.
func TestDigestCountsAndShowsWhatMatters(t *testing.T) {
	in := `{"Action":"output","Package":"p","Test":"TestA","Output":"quiet\n"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestB","Output":"broken here\n"}
{"Action":"fail","Package":"p","Test":"TestB"}
{"Action":"output","Package":"p","Test":"TestC","Output":"=== RUN   TestC\n"}
{"Action":"output","Package":"p","Test":"TestC","Output":"    c_test.go:3: strace is not installed\n"}
{"Action":"skip","Package":"p","Test":"TestC"}
{"Action":"build-output","ImportPath":"q","Output":"q.go:1: does not compile\n"}
{"Action":"fail","Package":"p","Elapsed":1.5}
`
	var out bytes.Buffer
	got, err := digest(strings.NewReader(in), &out)
	if err != nil {
		t.Fatal(err)
	}
	if want := (tally{1, 1, 1}); got != want {
		t.Errorf("counted %v, want %v", got, want)
	}
	for _, want := range []string{"broken here", "strace is not installed", "does not compile", "FAIL p"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output lacks %q:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "quiet") {
		t.Errorf("output of a passed test was shown:\n%s", out.String())
	}
}
