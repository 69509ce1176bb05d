// Package frameworks holds the checks of what people run on top of Kafka: Streams, Connect, MirrorMaker 2, Flink and Storm,
// each from its own jars, with programs below java/ where it takes one.
package frameworks

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"millrace/tools/compat/harness"
)

// step bounds what one framework may take for one thing on a busy machine.
const step = 4 * time.Minute

// serviceLoad spares a worker the walk through all classes of its jars for plugins at each start; each of Kafka's own plugins
// has the manifest that it needs instead.
const serviceLoad = "plugin.discovery=service_load"

// Checks are all of the package's.
func Checks() []harness.Check {
	return slices.Concat(streamsChecks(), connectChecks(), mirrorChecks(), flinkChecks(), stormChecks())
}

// source is where a program of ours is.
func source(name string) string { return filepath.Join("frameworks", "java", name) }

// background starts the command; what it prints is appended to NAME.log in the check's folder.
func background(e *harness.Env, cmd *exec.Cmd, name string) error {
	log, err := os.OpenFile(filepath.Join(e.Dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	return cmd.Start()
}
