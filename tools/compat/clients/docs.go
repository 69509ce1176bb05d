package clients

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"millrace/tools/compat/harness"
)

// pages are the applications of docs/clients and what each needs on the machine.
var pages = []struct {
	client, page string
	needs        []string
}{
	{"Java (kafka-clients)", "java.md", []string{"java", "mvn"}},
	{"Go (franz-go)", "go.md", []string{"go"}},
	{"Python (kafka-python)", "python.md", []string{"python3"}},
	{"Node (kafkajs)", "node.md", []string{"node", "npm"}},
	{"shell (kcat)", "shell.md", []string{"kcat"}},
}

// printedAddress is where the pages say that the broker is.
const printedAddress = "127.0.0.1:9092"

func docChecks() []harness.Check {
	var out []harness.Check
	for _, p := range pages {
		out = append(out, harness.Check{Client: "docs/clients", Name: p.client + ": the page's application, as printed", Limit: 5 * time.Minute, Run: func(e *harness.Env) error {
			for _, name := range p.needs {
				if name == "kcat" {
					if _, err := harness.NeedKcat(); err != nil {
						return err
					}
				}
				if _, err := exec.LookPath(name); err != nil {
					return harness.Skip{Reason: name + " is not installed"}
				}
			}
			return runPage(e, filepath.Join(e.Root, "docs", "clients", p.page))
		}})
	}
	return out
}

// page is what one tells a reader to do.
type page struct {
	files  map[string]string // name: content
	script string            // the sh block
	prints string            // the text block
}

var (
	fence    = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")
	colours  = regexp.MustCompile("\x1b\\[[0-9;]*m") // Maven sends some, which a terminal does not show
	fileName = regexp.MustCompile("`([\\w.]+)`:\\s*$")
)

// readPage takes the blocks out of a page: those below "`name`:" are files, sh is to be run, text is what comes out.
func readPage(path string) (page, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return page{}, err
	}
	p := page{files: map[string]string{}}
	before := 0
	for _, m := range fence.FindAllSubmatchIndex(b, -1) {
		kind, content := string(b[m[2]:m[3]]), string(b[m[4]:m[5]])
		name := fileName.FindSubmatch(b[before:m[0]])
		before = m[1]
		switch {
		case name != nil:
			p.files[string(name[1])] = content
		case kind == "sh":
			p.script += content
		case kind == "text":
			p.prints += content
		default:
			return p, fmt.Errorf("%s: a block of %s belongs to no file", path, kind)
		}
	}
	if p.script == "" || p.prints == "" {
		return p, fmt.Errorf("%s has no sh block or no text block", path)
	}
	return p, nil
}

// runPage does in an empty folder what the page says, with the broker's address put in, and compares what is printed.
func runPage(e *harness.Env, path string) error {
	p, err := readPage(path)
	if err != nil {
		return err
	}
	m, err := harness.StartMillrace(e)
	if err != nil {
		return err
	}
	defer m.Kill()
	dir := filepath.Join(e.Dir, "app")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	here := func(s string) string { return strings.ReplaceAll(s, printedAddress, m.Addr) }
	if !strings.Contains(p.script+fmt.Sprint(p.files), printedAddress) {
		return errors.New("the page does not name " + printedAddress)
	}
	for name, content := range p.files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(here(content)), 0o644); err != nil {
			return err
		}
	}
	cmd := e.Command("bash", "-e", "-o", "pipefail", "-c", here(p.script))
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%w: %s", err, harness.LastLine(stderr.Bytes()))
	}
	out = colours.ReplaceAll(out, nil)
	if string(out) != p.prints {
		return fmt.Errorf("it printed %q, the page says %q; standard error: %s", out, p.prints, harness.LastLine(stderr.Bytes()))
	}
	return m.Stop()
}
