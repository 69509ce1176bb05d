package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// franzSkipped are franz-go's own tests that need what is not built yet.
var franzSkipped = map[string]string{
	"TestTxnEtl":   "transactions",
	"TestIssue523": "transactions",
}

// franzChecks run the test suites that franz-go's authors hold brokers and client against.
func franzChecks() []check {
	return []check{
		{name: "franz-go's own tests: kgo", limit: 8 * time.Minute, run: func(e *env) error { return franzTests(e, "github.com/twmb/franz-go", "./pkg/kgo") }},
		{name: "franz-go's own tests: kadm", limit: 4 * time.Minute, run: func(e *env) error { return franzTests(e, "github.com/twmb/franz-go/pkg/kadm", ".") }},
	}
}

func franzTests(e *env, module, pkg string) error {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return err
	}
	m, err := startMillrace(e, "group.initial.rebalance.delay.ms=0")
	if err != nil {
		return err
	}
	defer m.kill()
	var skip []string
	for name := range franzSkipped {
		skip = append(skip, "^"+name+"$")
	}
	cmd := exec.Command("go", "test", "-C", strings.TrimSpace(string(dir)), "-count=1", "-v", "-timeout=7m", "-skip", strings.Join(skip, "|"), pkg)
	cmd.Env = append(os.Environ(), "KGO_SEEDS="+m.addr, "KGO_TEST_RECORDS=20000", "KGO_TEST_RF=1")
	out, err := cmd.CombinedOutput()
	if werr := os.WriteFile(filepath.Join(e.dir, "tests.out"), out, 0o644); werr != nil {
		return werr
	}
	passed, failed := bytes.Count(out, []byte("--- PASS")), bytes.Count(out, []byte("--- FAIL"))
	fmt.Printf("     %s: %d passed, %d failed, %d skipped by themselves; left out: %s\n", module, passed, failed, bytes.Count(out, []byte("--- SKIP")), leftOut())
	if err != nil {
		return fmt.Errorf("%d tests failed: %w", failed, err)
	}
	if passed == 0 {
		return fmt.Errorf("no test ran; the output ends: %s", lastLine(out))
	}
	return m.stop()
}

func leftOut() string {
	var all []string
	for name, why := range franzSkipped {
		all = append(all, name+" ("+why+")")
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}
