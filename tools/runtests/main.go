// Command runtests runs `go test -json` with the given arguments and prints what a person wants to read of it: a line for
// each package, the output of what failed, the reason of each skip, and a closing line "N passed, N failed, N skipped".
// It exits with 1 when a test or a build failed, and also when no test ran at all.
//
// With -C FOLDER the tests of another module are run. With -tally FILE the three counts are appended to FILE as one line, so that several runs can be added up (-sum FILE).
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// event is one line of go test -json (go doc test2json).
type event struct {
	Action     string
	Package    string
	ImportPath string // of build output
	Test       string
	Output     string
	Elapsed    float64
}

type tally struct{ passed, failed, skipped int }

func (t tally) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", t.passed, t.failed, t.skipped)
}

func main() {
	file := flag.String("tally", "", "append the counts to this file")
	dir := flag.String("C", "", "run go test in this folder: that of another module")
	sum := flag.String("sum", "", "only add up the counts in this file and print them")
	flag.Parse()
	if *sum != "" {
		os.Exit(printSum(*sum))
	}
	t, err := run(*dir, flag.Args(), os.Stdout)
	if *file != "" {
		if werr := appendTally(*file, t); werr != nil {
			err = errors.Join(err, werr)
		}
	}
	fmt.Println(t)
	if err != nil || t.failed > 0 {
		fmt.Fprintln(os.Stderr, "runtests:", err)
		os.Exit(1)
	}
	if t.passed == 0 {
		fmt.Fprintln(os.Stderr, "runtests: no test ran")
		os.Exit(1)
	}
}

func run(dir string, args []string, out io.Writer) (tally, error) {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Dir = dir
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return tally{}, err
	}
	if err := cmd.Start(); err != nil {
		return tally{}, err
	}
	t, readErr := digest(pipe, out)
	return t, errors.Join(readErr, cmd.Wait())
}

// digest reads events until the end and prints as it goes.
func digest(in io.Reader, out io.Writer) (tally, error) {
	var t tally
	output := map[string][]string{} // of the tests that have not ended
	sc := bufio.NewScanner(in)
	sc.Buffer(nil, 16<<20)
	for sc.Scan() {
		var e event
		if err := json.Unmarshal(sc.Bytes(), &e); err != nil {
			fmt.Fprintln(out, sc.Text())
			continue
		}
		key := e.Package + " " + e.Test
		switch e.Action {
		case "build-output":
			fmt.Fprint(out, e.Output)
		case "output":
			output[key] = append(output[key], e.Output)
		case "pass", "fail", "skip":
			if e.Test != "" {
				t.count(e, output[key], out)
			} else {
				printPackage(e, output[key], out)
			}
			delete(output, key)
		}
	}
	return t, sc.Err()
}

func (t *tally) count(e event, lines []string, out io.Writer) {
	switch e.Action {
	case "pass":
		t.passed++
	case "skip":
		t.skipped++
		fmt.Fprintf(out, "skip %s %s: %s\n", e.Package, e.Test, reason(lines))
	case "fail":
		t.failed++
		fmt.Fprintf(out, "FAIL %s %s\n%s", e.Package, e.Test, strings.Join(lines, ""))
	}
}

func printPackage(e event, lines []string, out io.Writer) {
	switch {
	case e.Action == "fail":
		fmt.Fprintf(out, "FAIL %s %.1fs\n%s", e.Package, e.Elapsed, strings.Join(lines, ""))
	case e.Action == "pass":
		fmt.Fprintf(out, "ok   %s %.1fs\n", e.Package, e.Elapsed)
	}
}

// reason is what the test printed before it skipped, without go test's own lines.
func reason(lines []string) string {
	var out []string
	for _, l := range lines {
		l = strings.TrimSpace(l)
		if l != "" && !strings.HasPrefix(l, "=== ") && !strings.HasPrefix(l, "--- ") {
			out = append(out, l)
		}
	}
	return strings.Join(out, " ")
}

func appendTally(file string, t tally) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, t)
	return errors.Join(err, f.Close())
}

// printSum adds the lines of a tally file; the exit code is 1 when something failed or nothing passed.
func printSum(file string) int {
	b, err := os.ReadFile(file)
	if err != nil {
		fmt.Fprintln(os.Stderr, "runtests:", err)
		return 1
	}
	var sum tally
	for line := range strings.Lines(string(b)) {
		var t tally
		if _, err := fmt.Sscanf(line, "%d passed, %d failed, %d skipped", &t.passed, &t.failed, &t.skipped); err != nil {
			fmt.Fprintf(os.Stderr, "runtests: %s: line %q: %v\n", file, line, err)
			return 1
		}
		sum.passed, sum.failed, sum.skipped = sum.passed+t.passed, sum.failed+t.failed, sum.skipped+t.skipped
	}
	fmt.Println(sum)
	if sum.failed > 0 || sum.passed == 0 {
		return 1
	}
	return 0
}
