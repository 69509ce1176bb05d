package tidy

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// mayImport is the table of docs/ARCHITECTURE.md: a room and the rooms below it. What is not listed may not be imported;
// tools and benchmarks may import anything and nothing may import them.
var mayImport = map[string][]string{
	"engine":  {},
	"wire":    {},
	"replica": {"engine", "wire"},
	"coord":   {"replica", "engine", "wire"},
	"broker":  {"engine", "wire", "replica", "coord"},
}

// leaves may not know the rooms around them, only what is named here.
var leaves = map[string][]string{
	"engine/vfs":         {},
	"engine/batch":       {},
	"engine/journal":     {"engine/vfs"},
	"engine/index":       {"engine/vfs"},
	"engine/producers":   {"engine/vfs", "engine/batch"},
	"engine/checkpoint":  {"engine/vfs"},
	"engine/vfs/faultfs": {"engine/vfs"},
}

// goFiles calls f for every Go file of the repository.
func goFiles(t *testing.T, f func(path string, test bool)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		if d.IsDir() && rel != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "data" || d.Name() == "bin" || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(rel, ".go") {
			f(rel, strings.HasSuffix(rel, "_test.go"))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func imports(t *testing.T, path string) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, path), nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, i := range f.Imports {
		if p, ok := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), "millrace/"); ok {
			out = append(out, p)
		}
	}
	return out
}

// illegal says why a file in room from may not import to, or "".
func illegal(from, to string, test bool) string {
	fromTop, _, _ := strings.Cut(from, "/")
	toTop, _, _ := strings.Cut(to, "/")
	switch {
	case to == "engine/vfs/faultfs" && !test && fromTop != "tools" && from != to:
		return "faultfs is for tests and tools only"
	case fromTop == "tools" || fromTop == "benchmarks":
		return ""
	case toTop == "tools" || toTop == "benchmarks":
		return "nothing imports tools or benchmarks"
	}
	if allowed, ok := leaves[from]; ok && !test && from != to && !slices.Contains(allowed, to) {
		return "a leaf may import only " + strings.Join(allowed, ", ")
	}
	if fromTop != toTop && !slices.Contains(mayImport[fromTop], toTop) {
		return fromTop + " may import only " + strings.Join(mayImport[fromTop], ", ")
	}
	return ""
}

// Claim: imports go in one direction, as docs/ARCHITECTURE.md draws it.
func TestImportsGoOneWay(t *testing.T) {
	goFiles(t, func(path string, test bool) {
		for _, to := range imports(t, path) {
			if why := illegal(filepath.ToSlash(filepath.Dir(path)), to, test); why != "" {
				t.Errorf("%s imports millrace/%s: %s", path, to, why)
			}
		}
	})
}

// Claim: the rule above can fire.
func TestImportRuleCatchesPlantedImports(t *testing.T) {
	for _, c := range []struct{ from, to string }{{"engine", "wire"}, {"wire", "engine/batch"}, {"replica", "broker"}, {"broker", "tools/tidy"}, {"engine/batch", "engine/vfs"}, {"engine", "engine/vfs/faultfs"}} {
		if illegal(c.from, c.to, false) == "" {
			t.Errorf("%s importing %s was allowed", c.from, c.to)
		}
	}
	if why := illegal("broker", "engine", false); why != "" {
		t.Errorf("broker importing engine was refused: %s", why)
	}
}

// Claim: every relative link in a document leads to a file that is there.
func TestDocumentLinksLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:\s]+)(#[^)]*)?\)`)
	docs, _ := filepath.Glob(filepath.Join(root, "*.md"))
	more, _ := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	deeper, _ := filepath.Glob(filepath.Join(root, "docs", "*", "*.md"))
	for _, doc := range slices.Concat(docs, more, deeper) {
		b, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(b), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(doc), m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", doc, m[1])
			}
		}
	}
}

// Claim: each invariant of docs/INVARIANTS.md is cited by code (its checks) and by a test (its attack), and the test it names exists.
func TestInvariantsHaveChecksAndTests(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(root, "docs", "INVARIANTS.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`(?m)^### ([LWRCGT]\d+)\b`).FindAllStringSubmatch(string(b), -1)
	if len(named) == 0 {
		t.Fatal("docs/INVARIANTS.md names no invariant as a heading '### L1 …'")
	}
	code, tests := map[string]int{}, map[string]int{}
	funcs := map[string]bool{}
	cite := regexp.MustCompile(`\b([LWRCGT]\d+)\b`)
	decl := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)`)
	goFiles(t, func(path string, test bool) {
		src, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range cite.FindAllStringSubmatch(string(src), -1) {
			if test {
				tests[m[1]]++
			} else {
				code[m[1]]++
			}
		}
		for _, m := range decl.FindAllStringSubmatch(string(src), -1) {
			funcs[m[1]] = true
		}
	})
	for _, m := range named {
		if code[m[1]] < 2 {
			t.Errorf("%s is cited %d times in code, want at least its two checks", m[1], code[m[1]])
		}
		if tests[m[1]] < 1 {
			t.Errorf("%s is attacked by no test", m[1])
		}
	}
	for _, m := range regexp.MustCompile("`((?:Test|Fuzz)\\w+)`").FindAllStringSubmatch(string(b), -1) {
		if !funcs[m[1]] {
			t.Errorf("docs/INVARIANTS.md names the test %s, which does not exist", m[1])
		}
	}
}

// Claim: go.mod and go.sum are what the sources need, also those of the library's examples.
func TestModuleFilesAreTidy(t *testing.T) {
	for _, module := range []string{".", "engine/examples"} {
		cmd := exec.Command("go", "mod", "tidy", "-diff")
		cmd.Dir = filepath.Join(root, module)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: go mod tidy would change something: %v\n%s", module, err, out)
		}
	}
}

// Claim: every Go file is formatted.
func TestSourcesAreFormatted(t *testing.T) {
	cmd := exec.Command("gofmt", "-l", "engine", "wire", "replica", "coord", "broker", "tools", "benchmarks")
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("gofmt: %v; not formatted:\n%s", err, out)
	}
}

// Claim: no top-level folder appears beside the fixed ones.
func TestTopLevelFoldersAreFixed(t *testing.T) {
	fixed := []string{"engine", "wire", "replica", "coord", "broker", "tools", "benchmarks", "docs", "bin", "data"}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && !slices.Contains(fixed, e.Name()) {
			t.Errorf("top-level folder %s: the folders are fixed", e.Name())
		}
	}
}
