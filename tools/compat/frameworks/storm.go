package frameworks

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"millrace/tools/compat/harness"
)

const stormRecords = 3000

// stormLibs: the spout is compiled against kafka-clients 3.9.0 and leaves it to the user to bring it; slf4j-api is named since that
// client would bring one too old for Storm's log binding.
var stormLibs = harness.Libs{Name: "storm-2.8.0", Artifacts: []string{
	"org.slf4j:slf4j-api:2.0.16", "org.apache.storm:storm-kafka-client:2.8.0", "org.apache.storm:storm-server:2.8.0", "org.apache.kafka:kafka-clients:3.9.0"}}

func stormChecks() []harness.Check {
	return []harness.Check{{Client: "Storm 2.8.0 (storm-kafka-client)", Name: "spout to bolt in a local cluster, at least once, offsets committed", Limit: 12 * time.Minute, Run: storm}}
}

func storm(e *harness.Env) error {
	lines, err := textLines(e, stormRecords, anyText)
	if err != nil {
		return err
	}
	libs, classes, err := harness.Classes(e, stormLibs, source("Spout.java"))
	if err != nil {
		return err
	}
	m, err := harness.StartMillrace(e)
	if err != nil {
		return err
	}
	defer m.Kill()
	if err := harness.CreateTopic(m.Addr, "tuples", 2); err != nil {
		return err
	}
	if err := send(m.Addr, "tuples", 2, lines); err != nil {
		return err
	}
	file := filepath.Join(e.Dir, "collected")
	cmd, err := e.Java(libs, "384M", []string{classes}, "Spout", m.Addr, "tuples", "storm", fmt.Sprint(len(lines)), file)
	if err != nil {
		return err
	}
	if err := answerOnce(e, cmd, "storm"); err != nil {
		return err
	}
	got, err := collected(file)
	if err != nil {
		return err
	}
	for i, l := range lines {
		place := fmt.Sprint(i%2, " ", i/2)
		if v, ok := got[place]; !ok || v != l {
			return fmt.Errorf("partition and offset %s brought %.60q (there: %v), want %.60q", place, v, ok, l)
		}
	}
	if len(got) != len(lines) {
		return fmt.Errorf("the bolt got %d records, want %d", len(got), len(lines))
	}
	if err := committedToTheEnd(m.Addr, "storm", "tuples"); err != nil {
		return err
	}
	return m.Stop()
}

// collected reads what the bolt got: the value at each "partition offset". The same place twice with two values is an error.
func collected(file string) (map[string]string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	got := map[string]string{}
	for line := range strings.Lines(string(b)) {
		f := strings.Split(strings.TrimSpace(line), " ")
		if len(f) != 3 {
			return nil, fmt.Errorf("%s: line %q has %d fields, want 3", file, line, len(f))
		}
		v, err := base64.StdEncoding.DecodeString(f[2])
		if err != nil {
			return nil, err
		}
		place := f[0] + " " + f[1]
		if old, ok := got[place]; ok && old != string(v) {
			return nil, fmt.Errorf("%s: %s brought %.60q and %.60q", file, place, old, v)
		}
		got[place] = string(v)
	}
	return got, nil
}
