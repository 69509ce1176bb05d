package java

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"millrace/tools/compat/harness"
)

// actLimit is how long one act of a tool may take. With a busy machine in mind: a tool waits up to 60 s for a broker by itself.
const actLimit = 90 * time.Second

// jvm is a Java process that runs the tools of one release of Kafka one after another (src/tools/ToolDriver.java).
type jvm struct {
	libs harness.Libs
	cmd  *exec.Cmd
	in   *bufio.Writer
	out  *bufio.Reader
}

// result is what one act of a tool came to.
type result struct {
	status   int
	out, err string
}

func startJVM(e *harness.Env, l harness.Libs) (*jvm, error) {
	libs, classes, err := compiled(e, l, "tools")
	if err != nil {
		return nil, err
	}
	cmd, err := e.Java(libs, "384M", []string{classes}, "ToolDriver")
	if err != nil {
		return nil, err
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(e.Dir, "tools.err"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stderr = log
	return &jvm{libs: l, cmd: cmd, in: bufio.NewWriter(in), out: bufio.NewReader(out)}, cmd.Start()
}

// stop ends the process.
func (j *jvm) stop() {
	j.cmd.Process.Kill()
	j.cmd.Wait()
}

// run has a class's main run with standard input and arguments.
func (j *jvm) run(class, stdin string, args []string) (result, error) {
	words := append([]string{strconv.FormatInt(actLimit.Milliseconds(), 10), stdin, class}, args...)
	binary.Write(j.in, binary.BigEndian, int32(len(words)))
	for _, w := range words {
		binary.Write(j.in, binary.BigEndian, int32(len(w)))
		j.in.WriteString(w)
	}
	if err := j.in.Flush(); err != nil {
		return result{}, fmt.Errorf("the tools' JVM is gone: %w", err)
	}
	var r result
	var status int32
	if err := binary.Read(j.out, binary.BigEndian, &status); err != nil {
		return r, fmt.Errorf("the tools' JVM ended during %s: %w", class, err)
	}
	r.status = int(status)
	for _, to := range []*string{&r.out, &r.err} {
		var n int32
		if err := binary.Read(j.out, binary.BigEndian, &n); err != nil {
			return r, err
		}
		b := make([]byte, n)
		if _, err := io.ReadFull(j.out, b); err != nil {
			return r, err
		}
		*to = string(b)
	}
	if status < 0 {
		return r, fmt.Errorf("%s did not end within %s: %s", class, actLimit, r.err)
	}
	return r, nil
}
