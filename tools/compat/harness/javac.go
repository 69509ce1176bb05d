package harness

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

var compiling struct {
	sync.Mutex
	had map[string]string
}

// Classes gives the folder of the libraries and the folder of the classes of our sources (patterns below tools/compat),
// compiled against them. Both are kept below the cache, the classes under a digest of their sources.
func Classes(e *Env, l Libs, patterns ...string) (libs, classes string, err error) {
	if libs, err = NeedJava(e.Cache, l); err != nil {
		return "", "", err
	}
	compiling.Lock()
	defer compiling.Unlock()
	key := l.Name + " " + strings.Join(patterns, " ")
	if dir, ok := compiling.had[key]; ok {
		return libs, dir, nil
	}
	var sources []string
	for _, p := range patterns {
		some, err := filepath.Glob(filepath.Join(e.Root, "tools", "compat", p))
		if err != nil || len(some) == 0 {
			return "", "", fmt.Errorf("no sources in %s: %v", p, err)
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
	classes = filepath.Join(e.Cache, "java", "classes", l.Name+"-"+hex.EncodeToString(digest.Sum(nil)[:8]))
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
		return Skip{"javac is not installed"}
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	temp, err := os.MkdirTemp(filepath.Dir(dir), "new-")
	if err != nil {
		return err
	}
	cmd := exec.Command(javac, append([]string{"-J-Xmx256M", "-nowarn", "-encoding", "UTF-8", "-d", temp, "-cp", filepath.Join(libs, "*")}, sources...)...)
	done := time.AfterFunc(4*time.Minute, func() { cmd.Process.Kill() })
	defer done.Stop()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("javac: %w: %s", err, out)
	}
	return os.Rename(temp, dir)
}
