package frameworks

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"millrace/tools/compat/harness"
)

// dialog is a program that answers each line on its standard input with one line, "ok ..." or "error ...".
type dialog struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers chan string
}

// startDialog runs the command; its standard error goes to a file in the check's folder.
func startDialog(e *harness.Env, cmd *exec.Cmd, name string) (*dialog, error) {
	log, err := os.Create(filepath.Join(e.Dir, name+".log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stderr = log
	d := &dialog{cmd: cmd, answers: make(chan string)}
	if d.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() { // ends with the program's output
		defer close(d.answers)
		for r := bufio.NewReaderSize(out, 1<<20); ; {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			if strings.HasPrefix(line, "ok") || strings.HasPrefix(line, "error") {
				d.answers <- strings.TrimSpace(line)
			}
		}
	}()
	return d, nil
}

// ask gives the rest of an "ok" answer; an "error" answer is the error.
func (d *dialog) ask(command string) (string, error) {
	if _, err := io.WriteString(d.in, command+"\n"); err != nil {
		return "", fmt.Errorf("%s: %w", command, err)
	}
	select {
	case a, more := <-d.answers:
		if !more {
			return "", fmt.Errorf("%s: the program ended", command)
		}
		if rest, ok := strings.CutPrefix(a, "ok"); ok {
			return strings.TrimSpace(rest), nil
		}
		return "", errors.New(command + ": " + a)
	case <-time.After(step):
		return "", fmt.Errorf("%s: no answer within %s", command, step)
	}
}

// answerOnce runs a program that takes no commands, answers once and ends.
func answerOnce(e *harness.Env, cmd *exec.Cmd, name string) error {
	d, err := startDialog(e, cmd, name)
	if err != nil {
		return err
	}
	if _, err := d.ask(name); err != nil {
		return err
	}
	return d.end()
}

// end closes the program's input and waits for its end.
func (d *dialog) end() error {
	d.in.Close()
	for range d.answers {
	}
	return d.cmd.Wait()
}
