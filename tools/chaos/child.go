package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync/atomic"
	"time"
)

// What a child says on standard output, a line each; anything else is for people.
const (
	sayEpisode = "episode " // its seed, before it begins
	sayCounts  = "counts "  // JSON, after each episode
)

// runOnce runs one episode and returns the exit status.
func runOnce(name string, seed uint64) int {
	var c counts
	if err := partOf(name).episode(seed, &c, func() bool { return false }); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(c)
	return 0
}

// runChild runs episodes with the seeds seed, seed+1, … until the time is over, standard input ends or one has a finding.
func runChild(name string, seed uint64, length time.Duration, in io.Reader, out io.Writer) int {
	p := partOf(name)
	ends := time.Now().Add(length)
	var stopped atomic.Bool
	go func() { // ends with the parent, or with this process
		io.Copy(io.Discard, in)
		stopped.Store(true)
	}()
	var c counts
	for ; time.Now().Before(ends) && !stopped.Load(); seed++ {
		fmt.Fprintf(out, "%s%d\n", sayEpisode, seed)
		hangs := time.AfterFunc(p.patient, func() { hang(p) })
		err := p.episode(seed, &c, stopped.Load)
		hangs.Stop()
		if err != nil {
			fmt.Fprintln(out, err)
			return 1
		}
		c.Episodes++
		if b, err := json.Marshal(c); err == nil {
			fmt.Fprintf(out, "%s%s\n", sayCounts, b)
		}
	}
	return 0
}

// hang ends a process whose episode does not end, with all its stacks.
func hang(p *part) {
	stacks := make([]byte, 1<<20)
	fmt.Printf("the episode has not ended after %v; all goroutines:\n%s\n", p.patient, stacks[:runtime.Stack(stacks, true)])
	os.Exit(3)
}
