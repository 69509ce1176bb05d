package core

import (
	"bytes"
	"fmt"
	"millrace/tools/compat/harness"
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
func franzChecks() []harness.Check {
	return []harness.Check{
		{Client: "franz-go", Name: "its own tests: kgo", Limit: 8 * time.Minute, Run: func(e *harness.Env) error { return franzTests(e, "github.com/twmb/franz-go", "./pkg/kgo") }},
		{Client: "franz-go", Name: "its own tests: kadm", Limit: 4 * time.Minute, Run: func(e *harness.Env) error { return franzTests(e, "github.com/twmb/franz-go/pkg/kadm", ".") }},
	}
}

func franzTests(e *harness.Env, module, pkg string) error {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return err
	}
	m, err := harness.StartMillrace(e, "group.initial.rebalance.delay.ms=0")
	if err != nil {
		return err
	}
	defer m.Kill()
	var skip []string
	for name := range franzSkipped {
		skip = append(skip, "^"+name+"$")
	}
	cmd := e.Command("go", "test", "-C", strings.TrimSpace(string(dir)), "-count=1", "-v", "-timeout=7m", "-skip", strings.Join(skip, "|"), pkg)
	cmd.Env = append(os.Environ(), "KGO_SEEDS="+m.Addr, "KGO_TEST_RECORDS=20000", "KGO_TEST_RF=1")
	out, err := cmd.CombinedOutput()
	if werr := os.WriteFile(filepath.Join(e.Dir, "tests.out"), out, 0o644); werr != nil {
		return werr
	}
	passed, failed := bytes.Count(out, []byte("--- PASS")), bytes.Count(out, []byte("--- FAIL"))
	e.Note("%d passed, %d failed, %d skipped by themselves; left out: %s", passed, failed, bytes.Count(out, []byte("--- SKIP")), leftOut())
	if err != nil {
		return fmt.Errorf("%d tests failed: %w", failed, err)
	}
	if passed == 0 {
		return fmt.Errorf("no test ran; the output ends: %s", harness.LastLine(out))
	}
	return m.Stop()
}

func leftOut() string {
	var all []string
	for name, why := range franzSkipped {
		all = append(all, name+" ("+why+")")
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}
