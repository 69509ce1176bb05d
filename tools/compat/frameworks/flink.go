package frameworks

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"millrace/tools/compat/harness"
)

const flinkRecords = 5000

var flinkLibs = harness.Libs{Name: "flink-2.2.0", Artifacts: []string{
	"org.apache.flink:flink-streaming-java:2.2.0", "org.apache.flink:flink-clients:2.2.0", "org.apache.flink:flink-connector-base:2.2.0",
	"org.apache.flink:flink-connector-kafka:5.0.0-2.2", "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4"}}

func flinkChecks() []harness.Check {
	check := func(name string, run func(*harness.Env) error) harness.Check {
		return harness.Check{Client: "Flink 2.2.0 (flink-connector-kafka 5.0.0)", Name: name, Limit: 12 * time.Minute, Run: run}
	}
	return []harness.Check{
		check("source to sink at least once, offsets committed, and through a failure of the job", flinkAtLeastOnce),
		check("sink exactly once", flinkExactlyOnce),
	}
}

// flinkCopy runs java/Copy.java from topic "from" to another.
func flinkCopy(e *harness.Env, addr, to, guarantee string, fail int) error {
	libs, classes, err := harness.Classes(e, flinkLibs, source("Copy.java"))
	if err != nil {
		return err
	}
	cmd, err := e.Java(libs, "384M", []string{classes}, "Copy", addr, "from", to, "flink-"+to, guarantee, fmt.Sprint(fail))
	if err != nil {
		return err
	}
	return answerOnce(e, cmd, "flink-"+to)
}

// flinkTopics starts a broker with the source's topic filled.
func flinkTopics(e *harness.Env) (m *harness.Millrace, lines []string, err error) {
	if lines, err = textLines(e, flinkRecords, anyText); err != nil {
		return nil, nil, err
	}
	if m, err = harness.StartMillrace(e); err != nil {
		return nil, nil, err
	}
	for _, t := range []string{"from", "plain", "failed", "exact"} {
		if err = harness.CreateTopic(m.Addr, t, 2); err != nil {
			break
		}
	}
	if err == nil {
		err = send(m.Addr, "from", 2, lines)
	}
	if err != nil {
		m.Kill()
	}
	return m, lines, err
}

func flinkAtLeastOnce(e *harness.Env) error {
	m, lines, err := flinkTopics(e)
	if err != nil {
		return err
	}
	defer m.Kill()
	want := map[string]int{}
	for _, l := range lines {
		want[strings.ToUpper(l)]++
	}
	for _, job := range []struct {
		to   string
		fail int
	}{{"plain", 0}, {"failed", flinkRecords / 2}} {
		if err := flinkCopy(e, m.Addr, job.to, "AT_LEAST_ONCE", job.fail); err != nil {
			return err
		}
		got, err := valueCounts(m.Addr, job.to, 2)
		if err != nil {
			return err
		}
		surplus, err := sameCounts(want, got, job.fail > 0)
		if err != nil {
			return fmt.Errorf("topic %s: %w", job.to, err)
		}
		if job.fail > 0 {
			e.Note("job went back to its last checkpoint: nothing is missing, %d records came twice", surplus)
		}
		if err := committedToTheEnd(m.Addr, "flink-"+job.to, "from"); err != nil {
			return err
		}
	}
	return m.Stop()
}

func flinkExactlyOnce(e *harness.Env) error {
	m, _, err := flinkTopics(e)
	if err != nil {
		return err
	}
	defer m.Kill()
	err = flinkCopy(e, m.Addr, "exact", "EXACTLY_ONCE", 0)
	if err == nil {
		return errors.New("the job ran: it is time to check its results")
	}
	const text = "transactions are not built yet"
	if !strings.Contains(err.Error(), text) {
		return err
	}
	if serr := m.Stop(); serr != nil {
		return serr
	}
	return harness.NotBuilt{API: "transactions (InitProducerId with a transactional id)", Got: cause(err.Error(), text)}
}
