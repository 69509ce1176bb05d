package broker

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"millrace/coord"
	"millrace/engine"
	"millrace/engine/batch"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// servedDir names the directory that the process of this test serves until it is killed.
const servedDir = "MILLRACE_TEST_SERVE"

// Claim: whenever a broker is killed while topics are made, grown, configured and deleted, the next start has what was answered, whole, and the folders
// are those of its topics: none is missing, none is orphaned. (Each step of coordination by itself is coord/controller's TestEveryStepMayFail.)
// Method: a process that is killed at random moments of a life that makes such changes without end; then a start over what it left.
func TestKilledInTheMiddleOfChanges(t *testing.T) {
	if dir := os.Getenv(servedDir); dir != "" {
		b := startBrokerIn(t, dir)
		fmt.Printf("address %s\n", b.Addr(""))
		_ = b.Wait() // until the kill
		return
	}
	rounds := 12
	if testing.Short() {
		rounds = 3
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	next := 0
	for range rounds {
		done, doubtful := changeUntilKilled(t, dir, &next, time.Duration(random.IntN(150))*time.Millisecond)
		b := startBrokerIn(t, dir)
		img := b.coord.Image()
		want := map[string]bool{}
		for _, name := range img.Names() {
			for i := range img.Topic(name).Partitions {
				want[fmt.Sprintf("%s-%d", name, i)] = true
				if b.store.Log(name, int32(i)) == nil {
					t.Errorf("partition %d of %s has no log", i, name)
				}
			}
		}
		for name, state := range done {
			got := "gone"
			if topic := img.Topic(name); topic != nil {
				got = fmt.Sprintf("%d %s", len(topic.Partitions), topic.Config["retention.ms"])
			}
			if got != state && doubtful != name {
				t.Errorf("%s is %q, answered was %q", name, got, state)
			}
		}
		b.eventually("what was deleted has gone", func() bool {
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if e.IsDir() && e.Name() != coordinationFolder && !want[e.Name()] && !strings.HasSuffix(e.Name(), "-delete") {
					return false
				}
			}
			return true
		})
		if b.log.count("belongs to no topic") != 0 {
			t.Error("a log was orphaned")
		}
		b.halt()
		if t.Failed() {
			return
		}
	}
	if t.Logf("%d topics", next); next <= rounds {
		t.Error("no process came to do anything")
	}
}

// changeUntilKilled serves dir in another process and changes topics until it is killed. done is what was answered, by topic; doubtful the topic of the
// change that was not.
func changeUntilKilled(t *testing.T, dir string, next *int, after time.Duration) (done map[string]string, doubtful string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledInTheMiddleOfChanges$")
	cmd.Env = append(os.Environ(), servedDir+"="+dir)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	address := ""
	for lines := bufio.NewScanner(out); address == "" && lines.Scan(); {
		address = strings.TrimPrefix(lines.Text(), "address ")
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.RequestRetries(0), kgo.RetryTimeout(time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := admin.BrokerMetadata(ctx); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill(); cancel() })
	defer timer.Stop()
	done = map[string]string{}
	for ctx.Err() == nil {
		name := fmt.Sprintf("t%d", *next)
		*next++
		for _, step := range []struct {
			do    func() error
			state string
		}{
			{func() error { _, err := admin.CreateTopic(ctx, 2, 1, nil, name); return err }, "2 "},
			{func() error {
				r, err := admin.CreatePartitions(ctx, 3, name)
				if err == nil {
					err = r.Error()
				}
				return err
			}, "5 "},
			{func() error {
				value := "1000000"
				r, err := admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: &value}}, name)
				if err == nil {
					err = r[0].Err
				}
				return err
			}, "5 1000000"},
			{func() error {
				if *next%2 == 0 {
					return nil
				}
				r, err := admin.DeleteTopics(ctx, name)
				if err == nil {
					err = r.Error()
				}
				return err
			}, map[bool]string{true: "5 1000000", false: "gone"}[*next%2 == 0]},
		} {
			if err := step.do(); err != nil {
				_ = cmd.Wait()
				return done, name
			}
			done[name] = step.state
		}
	}
	_ = cmd.Wait()
	return done, ""
}

// Claim: logs that a growth made before it was written that they are there are taken away by the next start, if nothing was ever in them; one with records,
// and one of another topic of that name, is left and told of.
func TestLogsOfAGrowthThatWasCutOff(t *testing.T) {
	dir := t.TempDir()
	b := startBrokerIn(t, dir)
	topic := b.coord.CreateTopics(t.Context(), []coord.NewTopic{{Name: "t", Partitions: 2, Factor: 1}}, false)[0].Topic
	grown := *topic
	for range 3 {
		grown.Partitions = append(grown.Partitions, topic.Partitions[0])
	}
	if err := b.makeNewLogs(&grown); err != nil {
		t.Fatal(err)
	}
	a := &engine.Append{Batch: values(batch.None, "a"), LogAppendTime: -1}
	info, err := batch.Check(a.Batch, &batch.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	a.Info = info
	if err := b.store.Log("t", 4).Append(a, engine.NoEpoch); err != nil {
		t.Fatal(err)
	}
	b.halt()
	b = startBrokerIn(t, dir)
	for i, want := range []bool{true, true, false, false, true} {
		if got := b.store.Log("t", int32(i)) != nil; got != want {
			t.Errorf("partition %d has a log: %v", i, got)
		}
	}
	if n := b.log.count("belongs to no topic"); n != 1 {
		t.Errorf("%d logs of no topic", n)
	}
}
