package harness

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// What a check came to.
const (
	Pass       = "pass"
	Fail       = "fail"
	Absent     = "not built"
	SkippedFor = "skipped"
)

// Result is a line of the table.
type Result struct {
	Client string   `json:"client"`
	Name   string   `json:"name"`
	Result string   `json:"result"`
	Detail string   `json:"detail,omitempty"` // the first difference, the missing API with the error, or the reason of a skip
	Notes  []string `json:"notes,omitempty"`
}

// Options choose what runs.
type Options struct {
	Short  bool
	Only   string // only checks whose title contains it, letter case aside
	MB     int
	Jobs   int    // checks at a time
	Tally  string // file that the counts are appended to
	Record string // file that the results are written to, as JSON; results of checks that did not run stay
}

// RunAll runs the checks from the repository's root and prints a line for each. A failed check is an error, and so is a run of none.
func RunAll(checks []Check, o Options) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	bin := filepath.Join(root, "bin")
	if _, err := os.Stat(filepath.Join(bin, "millrace")); err != nil {
		return fmt.Errorf("bin/millrace is not there; run make build first: %w", err)
	}
	var chosen []Check
	for _, c := range checks {
		if (!o.Short || c.Short) && strings.Contains(strings.ToLower(c.Title()), strings.ToLower(o.Only)) {
			chosen = append(chosen, c)
		}
	}
	if len(chosen) == 0 {
		return fmt.Errorf("no check has %q in its name", o.Only)
	}
	zk := &ensemble{env: &Env{Root: root, Cache: filepath.Join(root, ".cache")}, roots: map[string]string{}}
	results := make([]Result, len(chosen))
	next := make(chan int)
	var wg sync.WaitGroup
	var printing sync.Mutex
	for range max(o.Jobs, 1) {
		wg.Go(func() { // ends when the checks are through
			for i := range next {
				e := &Env{Root: root, Bin: bin, Cache: filepath.Join(root, ".cache"), Short: o.Short, MB: o.MB}
				if chosen[i].ensemble {
					e.ensemble = zk
				}
				start := time.Now()
				results[i] = result(chosen[i], e)
				printing.Lock()
				printResult(results[i], time.Since(start))
				printing.Unlock()
			}
		})
	}
	for i := range chosen {
		next <- i
	}
	close(next)
	wg.Wait()
	return errors.Join(conclude(results, o), zk.end())
}

func result(c Check, e *Env) Result {
	err := c.run(e)
	r := Result{Client: c.Client, Name: c.Name, Notes: e.notes}
	var s Skip
	var n NotBuilt
	switch {
	case err == nil:
		r.Result = Pass
	case errors.As(err, &n):
		r.Result, r.Detail = Absent, n.API+": "+n.Got
	case errors.As(err, &s) && os.Getenv("CI") == "":
		r.Result, r.Detail = SkippedFor, s.Reason
	default:
		r.Result, r.Detail = Fail, err.Error()
	}
	return r
}

func printResult(r Result, took time.Duration) {
	fmt.Printf("%-9s %-90s %s", r.Result, r.Client+": "+r.Name, took.Round(100*time.Millisecond))
	if r.Detail != "" {
		fmt.Printf(": %s", r.Detail)
	}
	fmt.Println()
	for _, n := range r.Notes {
		fmt.Println("          " + n)
	}
}

// conclude prints the sums and writes the files.
func conclude(results []Result, o Options) error {
	n := map[string]int{}
	for _, r := range results {
		n[r.Result]++
	}
	line := fmt.Sprintf("%d passed, %d failed, %d skipped", n[Pass], n[Fail], n[SkippedFor])
	fmt.Printf("%s; %d need what is not built\n", line, n[Absent])
	if o.Tally != "" {
		f, err := os.OpenFile(o.Tally, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(f, line); err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	if o.Record != "" {
		if err := record(o.Record, results); err != nil {
			return err
		}
	}
	if n[Fail] > 0 {
		return fmt.Errorf("%d checks failed", n[Fail])
	}
	if n[Pass] == 0 {
		return errors.New("no check passed")
	}
	return nil
}

// record merges the results into a file of an earlier run and sorts by client.
func record(path string, results []Result) error {
	old, err := ReadResults(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	ran := map[string]bool{}
	for _, r := range results {
		ran[r.Client+"\n"+r.Name] = true
	}
	all := results
	for _, r := range old {
		if !ran[r.Client+"\n"+r.Name] {
			all = append(all, r)
		}
	}
	slices.SortStableFunc(all, func(a, b Result) int { return strings.Compare(a.Client, b.Client) })
	b, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}

// ReadResults reads a file that a run with Record wrote.
func ReadResults(path string) ([]Result, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []Result
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return all, nil
}
