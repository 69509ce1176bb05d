package main

import (
	"fmt"
	"strings"
	"sync"
)

// counts is what a run did.
type counts struct {
	Episodes, Operations, PowerCuts, Kills, Records, Damages int64
}

func (c *counts) add(o counts) {
	c.Episodes += o.Episodes
	c.Operations += o.Operations
	c.PowerCuts += o.PowerCuts
	c.Kills += o.Kills
	c.Records += o.Records
	c.Damages += o.Damages
}

func (c counts) String() string {
	return fmt.Sprintf("%d episodes, %d operations, %d power cuts, %d kills, %d records checked, %d planted damages found", c.Episodes, c.Operations, c.PowerCuts, c.Kills, c.Records, c.Damages)
}

// tail keeps the last lines written to it.
type tail struct {
	mu    sync.Mutex
	lines []string
}

func (t *tail) Write(p []byte) (int, error) {
	const kept = 600 // enough for the stacks that SIGQUIT asks for
	t.mu.Lock()
	defer t.mu.Unlock()
	for line := range strings.Lines(string(p)) {
		t.lines = append(t.lines, line)
	}
	t.lines = t.lines[max(0, len(t.lines)-kept):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, "")
}
