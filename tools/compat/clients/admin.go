package clients

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"millrace/tools/compat/harness"
)

// administer: the client's calls on topics, settings, groups, offsets and records do what they say; values are compared in the program.
func administer(e *harness.Env, c client) error {
	m, err := harness.StartMillrace(e)
	if err != nil {
		return err
	}
	defer m.Kill()
	if err := harness.CreateTopic(m.Addr, "data", 1); err != nil {
		return err
	}
	if err := prepare(m.Addr); err != nil {
		return err
	}
	lines, err := c.run(e, "admin", m.Addr, args{Topic: "data", Group: "idle"})
	if err != nil {
		return err
	}
	for _, step := range c.admin {
		if !slices.ContainsFunc(lines, func(l line) bool { return l.Step == step && l.OK }) {
			return fmt.Errorf("the program told nothing of the step %q", step)
		}
	}
	e.Note("%s", strings.Join(c.admin, ", "))
	return m.Stop()
}

// prepare writes ten records to the topic and has a group without members stand at offset 4.
func prepare(addr string) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx := context.Background()
	for range 10 {
		if err := cl.ProduceSync(ctx, &kgo.Record{Topic: "data", Value: []byte("x")}).FirstErr(); err != nil {
			return err
		}
	}
	var o kadm.Offsets
	o.Add(kadm.Offset{Topic: "data", Partition: 0, At: 4, LeaderEpoch: -1})
	return kadm.NewClient(cl).CommitAllOffsets(ctx, "idle", o)
}

// transact: what a committed transaction wrote is there for who reads what is committed, what an aborted one wrote is not.
func transact(e *harness.Env, c client) error {
	m, err := harness.StartMillrace(e)
	if err != nil {
		return err
	}
	defer m.Kill()
	if err := harness.CreateTopic(m.Addr, "t", 1); err != nil {
		return err
	}
	if _, err := c.run(e, "transaction", m.Addr, args{Topic: "t"}); err != nil {
		if c.noTxn.MatchString(err.Error()) {
			return harness.NotBuilt{API: "transactions (a coordinator for a transactional id)", Got: err.Error()}
		}
		return err
	}
	got, err := readCommitted(m.Addr, "t")
	if err != nil {
		return err
	}
	if want := []string{"1", "2", "3"}; !slices.Equal(got, want) {
		return fmt.Errorf("values %q are committed, want %q", got, want)
	}
	return m.Stop()
}

// readCommitted gives the committed values of a partition: a record is written behind them, and all up to it is read.
func readCommitted(addr, topic string) ([]string, error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := cl.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte("end")}).FirstErr(); err != nil {
		return nil, err
	}
	var out []string
	for {
		fs := cl.PollFetches(ctx)
		if err := fs.Err(); err != nil {
			return nil, err
		}
		for _, r := range fs.Records() {
			if string(r.Value) == "end" {
				return out, nil
			}
			out = append(out, string(r.Value))
		}
	}
}
