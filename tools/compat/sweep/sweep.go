// Package sweep sends every version of every API that Millrace advertises, built field by field, to Millrace and to Apache
// Kafka in the same state, decodes both answers strictly and compares them. What differs on purpose is in the table of
// intended.go, with its reason; an entry of that table that no longer occurs fails the check, and so does an advertised API
// that no story of this package asks.
//
// A story is a list of requests in order. It is told once per version: story "topics" in round 3 sends each of its requests in
// version 3, or the nearest that the broker serves. Where Kafka does not serve the version (4.x dropped the oldest), it gets
// the nearest one it does serve, and only the codes are compared. Names carry the round, so that rounds do not meet.
package sweep

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"time"

	"millrace/tools/compat/harness"
	"millrace/wire"
)

const client = "Apache Kafka 4.3.1 (the broker, side by side)"

// Checks are all of the package's.
func Checks() []harness.Check {
	return []harness.Check{
		{Client: client, Name: "every version of every API: strict decoding, and the same answers", Limit: 5 * time.Minute, Run: run},
		{Client: client, Name: "20,000 random requests: no malformed answer, no hang, no silent close", Limit: 3 * time.Minute, Run: runRandom},
	}
}

// node is both brokers' id, so that leaders and replicas compare as they are.
const node = 1

func run(e *harness.Env) error {
	shared := []string{"offsets.topic.num.partitions=1", "group.initial.rebalance.delay.ms=0", "group.consumer.heartbeat.interval.ms=5000", "log.retention.ms=-1", "group.consumer.assignment.interval.ms=0"}
	var ours *harness.Millrace
	var kafka *harness.Kafka
	var ourErr, kafkaErr error
	var starting sync.WaitGroup
	starting.Go(func() { ours, ourErr = harness.StartMillrace(e, append(shared, fmt.Sprint("broker.id=", node))...) })
	starting.Go(func() { kafka, kafkaErr = harness.StartKafka(e, shared...) })
	starting.Wait()
	if ourErr != nil {
		return ourErr
	}
	if kafkaErr != nil {
		return kafkaErr
	}
	return Compare(e, ours.Addr, kafka.Addr)
}

// Compare tells all stories to both brokers and judges what came back.
func Compare(e *harness.Env, ourAddr, kafkaAddr string) error {
	slowSteps, err := os.Create(filepath.Join(e.Dir, "slow.txt"))
	if err != nil {
		return err
	}
	defer slowSteps.Close()
	sides := []*side{newSide("Millrace", ourAddr, slowSteps), newSide("Kafka", kafkaAddr, slowSteps)}
	stories := allStories()
	var told [2][]outcome
	var failed [2]error
	var telling sync.WaitGroup
	ourRanges, err := ranges(ourAddr)
	if err != nil {
		return err
	}
	kafkaRanges, err := ranges(kafkaAddr)
	if err != nil {
		return err
	}
	kafkaRanges[wire.KeyProduce] = span{max(kafkaRanges[wire.KeyProduce].min, 3), kafkaRanges[wire.KeyProduce].max} // 4.x advertises 0 for old librdkafka's sake and refuses below 3
	for i, s := range sides {
		telling.Go(func() { told[i], failed[i] = s.tell(stories, ourRanges, []map[int16]span{ourRanges, kafkaRanges}[i]) })
	}
	telling.Wait()
	for i := range sides {
		if failed[i] != nil {
			return fmt.Errorf("%s: %w", sides[i].name, failed[i])
		}
	}
	j := newJudge()
	j.coverage(ourRanges, kafkaRanges, told[0])
	for i := range told[0] {
		j.pair(told[0][i], told[1][i], [2]*side{sides[0], sides[1]})
	}
	if err := j.strays(ourAddr, kafkaAddr); err != nil {
		return err
	}
	j.stale()
	if err := os.WriteFile(filepath.Join(e.Dir, "differences.txt"), []byte(strings.Join(j.found, "\n")+"\n"), 0o644); err != nil {
		return err
	}
	e.Note("%d answers of %d APIs in %d versions compared, %d of them in codes alone, %d only decoded; %d differences are intended, by %d rules", len(told[0]), len(j.apis), len(j.versions), j.codesOnly, j.alone, j.intended, len(intended))
	if len(j.found) > 0 {
		sort.Strings(j.found)
		return fmt.Errorf("%d differences; the first: %s", len(j.found), j.found[0])
	}
	return nil
}
