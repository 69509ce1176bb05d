package frameworks

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"millrace/tools/compat/harness"
)

const (
	streamsApp        = "wc" // the application's id, which is its group's
	streamsPartitions = 2
	streamsLines      = 3000 // a third before, in and after each change
)

func streamsChecks() []harness.Check {
	check := func(name string, run func(*harness.Env) error) harness.Check {
		return harness.Check{Client: "Kafka Streams 4.3.1", Name: name, Limit: 12 * time.Minute, Run: run}
	}
	return []harness.Check{
		check("word count: restart with the store restored, kill -9 of the broker, application reset", wordCount),
		check("word count, exactly_once_v2", func(e *harness.Env) error {
			return streamsRefused(e, "processing.guarantee=exactly_once_v2", "transactions (FindCoordinator and InitProducerId with a transactional id)", "transactions are not built yet")
		}),
		check("word count, group.protocol=streams", func(e *harness.Env) error {
			return streamsRefused(e, "group.protocol=streams", "the streams group protocol (StreamsGroupHeartbeat, KIP-1071)", "UnsupportedVersionException")
		}),
	}
}

func stateDir(e *harness.Env) string { return filepath.Join(e.Dir, "state") }

// startWordCount runs java/WordCount.java; it is not told to start yet.
func startWordCount(e *harness.Env, addr string, settings ...string) (*dialog, error) {
	libs, classes, err := harness.Classes(e, harness.Kafka43, source("WordCount.java"))
	if err != nil {
		return nil, err
	}
	settings = append([]string{"num.stream.threads=2", "commit.interval.ms=200", "replication.factor=1", "consumer.auto.offset.reset=earliest"}, settings...)
	cmd, err := e.Java(libs, "256M", []string{classes}, append([]string{"WordCount", addr, streamsApp, stateDir(e)}, settings...)...)
	if err != nil {
		return nil, err
	}
	return startDialog(e, cmd, "streams")
}

// counter is a word count's run: what has been sent and what must have come of it.
type counter struct {
	e   *harness.Env
	m   *harness.Millrace
	app *dialog

	want map[string]int // of all lines that were sent
}

func wordCount(e *harness.Env) error {
	lines, err := textLines(e, streamsLines, anyText)
	if err != nil {
		return err
	}
	m, err := harness.StartMillrace(e)
	if err != nil {
		return err
	}
	defer func() { m.Kill() }()
	m.KeepAddress()
	for _, t := range []string{"lines", "counts"} {
		if err := harness.CreateTopic(m.Addr, t, streamsPartitions); err != nil {
			return err
		}
	}
	c := &counter{e: e, m: m, want: map[string]int{}}
	if c.app, err = startWordCount(e, m.Addr); err != nil {
		return err
	}
	third := len(lines) / 3
	for _, s := range []struct {
		name string
		run  func() error
	}{
		{"first run", func() error { return c.firstRun(lines[:third]) }},
		{"restart without local state", func() error { return c.restart(lines[third : 2*third]) }},
		{"kill -9 of the broker", func() error { return c.killBroker(lines[2*third:]) }},
		{"application reset", c.reset},
	} {
		if err := s.run(); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	if err := c.app.end(); err != nil {
		return err
	}
	return m.Stop()
}

func (c *counter) expect(lines []string) {
	for _, l := range lines {
		for w := range strings.SplitSeq(l, " ") {
			c.want[w]++
		}
	}
}

func (c *counter) firstRun(lines []string) error {
	if _, err := c.app.ask("start"); err != nil {
		return err
	}
	c.expect(lines)
	if err := send(c.m.Addr, "lines", streamsPartitions, lines); err != nil {
		return err
	}
	return c.awaitCounts(false)
}

// restart closes the application, takes its local state away and starts it again: the store can only come from the changelog.
func (c *counter) restart(lines []string) error {
	if _, err := c.app.ask("leave"); err != nil {
		return err
	}
	if err := os.RemoveAll(stateDir(c.e)); err != nil {
		return err
	}
	restored, err := c.app.ask("start")
	if err != nil {
		return err
	}
	if n, err := strconv.Atoi(restored); err != nil || n < len(c.want) {
		return fmt.Errorf("%s records were restored of at least %d", restored, len(c.want))
	}
	c.e.Note("store restored from its changelog: %s records for %d words", restored, len(c.want))
	if err := c.awaitStore(false); err != nil {
		return fmt.Errorf("before new lines: %w", err)
	}
	c.expect(lines)
	if err := send(c.m.Addr, "lines", streamsPartitions, lines); err != nil {
		return err
	}
	return c.awaitCounts(false)
}

// killBroker ends the broker again and again while the application is at work on what was just sent. At least once: no count may
// be too low, and the store holds what the topic says.
func (c *counter) killBroker(lines []string) error {
	c.expect(lines)
	for chunk := range slices.Chunk(lines, len(lines)/4) {
		if err := send(c.m.Addr, "lines", streamsPartitions, chunk); err != nil {
			return err
		}
		time.Sleep(rand.N(300 * time.Millisecond)) // anywhere between the first of these lines and the last
		c.m.Kill()
		if err := c.m.Start(); err != nil {
			return err
		}
	}
	return c.awaitCounts(true)
}

// reset runs Kafka's tool on the closed application: internal topics go, the input is read from its start, and with the old
// local state removed the counts come out as computed, exactly.
func (c *counter) reset() error {
	if _, err := c.app.ask("close"); err != nil {
		return err
	}
	// Streams closes without leaving its group; --force has the tool remove the members.
	tool, err := c.e.KafkaTool(harness.Kafka43, "streams-application-reset", "--bootstrap-server", c.m.Addr, "--application-id", streamsApp, "--input-topics", "lines", "--force")
	if err != nil {
		return err
	}
	if out, err := harness.Output(tool, "", step); err != nil {
		return fmt.Errorf("%w: %s", err, harness.LastLine([]byte(out)))
	}
	if err := c.isReset(); err != nil {
		return err
	}
	if err := os.RemoveAll(stateDir(c.e)); err != nil {
		return err
	}
	if _, err := c.app.ask("start"); err != nil {
		return err
	}
	if err := c.awaitStore(false); err != nil {
		return err
	}
	_, err = c.app.ask("close")
	return err
}

// isReset says what the tool has left undone.
func (c *counter) isReset() error {
	return withClient(c.m.Addr, func(ctx context.Context, _ *kgo.Client, adm *kadm.Client) error {
		topics, err := adm.ListTopics(ctx)
		if err != nil {
			return err
		}
		if names := topics.Names(); !slices.Equal(names, []string{"counts", "lines"}) {
			return fmt.Errorf("after the reset there are the topics %v, want only counts and lines", names)
		}
		offsets, err := adm.FetchOffsets(ctx, streamsApp)
		if err != nil {
			return err
		}
		for p := range int32(streamsPartitions) {
			if o, ok := offsets.Lookup("lines", p); !ok || o.At != 0 {
				return fmt.Errorf("after the reset the group is at offset %d of lines-%d (committed: %v), want 0", o.At, p, ok)
			}
		}
		return nil
	})
}

// awaitCounts waits until the table's topic and then the store hold what was computed.
func (c *counter) awaitCounts(atLeast bool) error {
	surplus := 0
	err := harness.Within(step, func() error {
		got, err := c.table()
		if err != nil {
			return err
		}
		surplus, err = sameCounts(c.want, got, atLeast)
		return err
	})
	if err != nil {
		return fmt.Errorf("topic counts: %w", err)
	}
	if atLeast {
		c.e.Note("after 4 times kill -9 of the broker no word is missing, %d were counted again", surplus)
	}
	return c.awaitStore(atLeast)
}

// table reads the table's topic: the last count of each word.
func (c *counter) table() (map[string]int, error) {
	got := map[string]int{}
	for p := range int32(streamsPartitions) {
		err := harness.ReadAll(c.m.Addr, "counts", p, func(r *kgo.Record) error {
			if len(r.Value) != 8 {
				return fmt.Errorf("the count of %q has %d bytes", r.Key, len(r.Value))
			}
			n := 0
			for _, b := range r.Value {
				n = n<<8 | int(b)
			}
			got[string(r.Key)] = n
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return got, nil
}

// awaitStore waits until the application's own store holds what was computed; with atLeast, what the topic holds.
func (c *counter) awaitStore(atLeast bool) error {
	err := harness.Within(step, func() error {
		answer, err := c.app.ask("store")
		if err != nil {
			return err
		}
		got := map[string]int{}
		for kv := range strings.SplitSeq(strings.TrimSuffix(answer, ";"), ";") {
			i := strings.LastIndex(kv, "=")
			if i < 0 {
				continue
			}
			word, err := base64.StdEncoding.DecodeString(kv[:i])
			if err != nil {
				return err
			}
			if got[string(word)], err = strconv.Atoi(kv[i+1:]); err != nil {
				return err
			}
		}
		want := c.want
		if atLeast {
			if want, err = c.table(); err != nil {
				return err
			}
		}
		if !maps.Equal(want, got) {
			_, err = sameCounts(want, got, false)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("state store: %w", err)
	}
	return nil
}

// streamsRefused starts the word count with a setting that needs what is not built, and demands an error that says so.
func streamsRefused(e *harness.Env, setting, api, text string) error {
	m, err := harness.StartMillrace(e)
	if err != nil {
		return err
	}
	defer m.Kill()
	for _, t := range []string{"lines", "counts"} {
		if err := harness.CreateTopic(m.Addr, t, streamsPartitions); err != nil {
			return err
		}
	}
	app, err := startWordCount(e, m.Addr, setting)
	if err != nil {
		return err
	}
	_, err = app.ask("start")
	if err == nil {
		return fmt.Errorf("the application runs with %s: it is time to check its results", setting)
	}
	if !strings.Contains(err.Error(), text) {
		return err
	}
	if err := m.Stop(); err != nil {
		return err
	}
	return harness.NotBuilt{API: api, Got: cause(err.Error(), text)}
}

// cause is the exception of a program's "error outer <- inner <- ..." that has the text.
func cause(answer, text string) string {
	if _, chain, ok := strings.Cut(answer, "error "); ok {
		answer = chain
	}
	for part := range strings.SplitSeq(answer, " <- ") {
		if strings.Contains(part, text) {
			return strings.TrimSpace(part)
		}
	}
	return answer
}
