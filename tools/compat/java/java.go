// Package java holds the checks with Apache Kafka's own tools and Java clients, from the newest line back to 0.8.2.
package java

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"millrace/tools/compat/harness"
)

// Checks are all of the package's.
func Checks() []harness.Check {
	return slices.Concat(toolChecks(), clientChecks(), oldChecks())
}

var compiling struct {
	sync.Mutex
	had map[string]string
}

// compiled gives the folder of the libraries and the folder of the classes of src/<part> for each of the parts (joined by +),
// compiled against them. Both are kept below the cache, the classes under a digest of their sources.
func compiled(e *harness.Env, l harness.Libs, parts string) (libs, classes string, err error) {
	if libs, err = harness.NeedJava(e.Cache, l); err != nil {
		return "", "", err
	}
	compiling.Lock()
	defer compiling.Unlock()
	key := l.Name + "/" + parts
	if dir, ok := compiling.had[key]; ok {
		return libs, dir, nil
	}
	var sources []string
	for part := range strings.SplitSeq(parts, "+") {
		some, err := filepath.Glob(filepath.Join(e.Root, "tools", "compat", "java", "src", part, "*.java"))
		if err != nil || len(some) == 0 {
			return "", "", fmt.Errorf("no sources in src/%s: %v", part, err)
		}
		sources = append(sources, some...)
	}
	digest := sha256.New()
	for _, s := range sources {
		b, err := os.ReadFile(s)
		if err != nil {
			return "", "", err
		}
		fmt.Fprintf(digest, "%s %d\n%s", filepath.Base(s), len(b), b)
	}
	classes = filepath.Join(e.Cache, "java", "classes", l.Name+"-"+parts+"-"+hex.EncodeToString(digest.Sum(nil)[:8]))
	if _, err := os.Stat(classes); err != nil {
		if err := compile(classes, libs, sources); err != nil {
			return "", "", err
		}
	}
	if compiling.had == nil {
		compiling.had = map[string]string{}
	}
	compiling.had[key] = classes
	return libs, classes, nil
}

// compile runs javac into dir, which appears whole or not at all.
func compile(dir, libs string, sources []string) error {
	javac, err := exec.LookPath("javac")
	if err != nil {
		return harness.Skip{Reason: "javac is not installed"}
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	temp, err := os.MkdirTemp(filepath.Dir(dir), "new-")
	if err != nil {
		return err
	}
	cmd := exec.Command(javac, append([]string{"-nowarn", "-encoding", "UTF-8", "-d", temp, "-cp", filepath.Join(libs, "*")}, sources...)...)
	done := time.AfterFunc(2*time.Minute, func() { cmd.Process.Kill() })
	defer done.Stop()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("javac: %w: %s", err, out)
	}
	return os.Rename(temp, dir)
}
