package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// pythonPackages are what the Python checks import.
var pythonPackages = []string{"kafka-python", "python-snappy", "lz4", "zstandard", "cramjam", "confluent-kafka", "aiokafka"}

// NeedKcat finds kcat or installs it with the distribution's package manager.
var NeedKcat = sync.OnceValues(func() (string, error) {
	if p, err := exec.LookPath("kcat"); err == nil {
		return p, nil
	}
	if os.Geteuid() != 0 {
		return "", Skip{"kcat is not installed, and installing it takes root"}
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return "", Skip{"kcat is not installed, and there is no apt-get to install it with"}
	}
	for _, args := range [][]string{{"update"}, {"install", "-y", "--no-install-recommends", "kcat"}} {
		if out, err := exec.Command("apt-get", args...).CombinedOutput(); err != nil {
			return "", Skip{fmt.Sprintf("apt-get %s: %v: %s", strings.Join(args, " "), err, LastLine(out))}
		}
	}
	return exec.LookPath("kcat")
})

var python struct {
	once sync.Once
	path string
	err  error
}

// NeedPython makes a virtual environment with the packages, once; it stays in the cache.
func NeedPython(cache string) (string, error) {
	python.once.Do(func() { python.path, python.err = makePython(cache) })
	return python.path, python.err
}

func makePython(cache string) (string, error) {
	venv := filepath.Join(cache, "venv")
	bin := filepath.Join(venv, "bin", "python")
	if exec.Command(bin, "-c", "import kafka, snappy, lz4.frame, zstandard, confluent_kafka, aiokafka, cramjam").Run() == nil {
		return bin, nil
	}
	p, err := exec.LookPath("python3")
	if err != nil {
		return "", Skip{"python3 is not installed"}
	}
	if out, err := exec.Command(p, "-m", "venv", "--clear", venv).CombinedOutput(); err != nil {
		return "", Skip{fmt.Sprintf("python3 -m venv: %v: %s", err, LastLine(out))}
	}
	args := append([]string{"-m", "pip", "install", "--quiet", "--disable-pip-version-check"}, pythonPackages...)
	if out, err := exec.Command(bin, args...).CombinedOutput(); err != nil {
		return "", Skip{fmt.Sprintf("pip install %s: %v: %s", strings.Join(pythonPackages, " "), err, LastLine(out))}
	}
	return bin, nil
}

func LastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}
