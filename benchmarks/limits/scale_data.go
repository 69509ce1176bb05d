package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"millrace/benchmarks/load"
)

// dataTopics is over how many topics of one partition the data lie, as in the anchor that a restart is held against.
const dataTopics = 16

// anchorGB is how much that anchor had.
const anchorGB = 13

// fillRow fills: 900 KiB a request.
var fillRow = load.Row{Records: 900, Size: 1024, Partitions: 1, Connections: 1, InFlight: 1, Acks: 1}

// speedOverData measures the same loads against two brokers, one with little data and one with much, and starts the latter again.
func speedOverData(o options, dir string, rep *scaleReport) error {
	rep.say("\n| start over data | after | s |\n|---|---|---|")
	brokers := map[string]*server{}
	defer func() {
		for _, s := range brokers {
			s.proc.Stop(120 * time.Second)
		}
	}()
	var over []string
	for i, gb := range o.data {
		name := strconv.Itoa(gb) + " GB"
		over = append(over, name)
		d := filepath.Join(dir, strconv.Itoa(i))
		s, err := startMillrace(mkdir(d), o.millrace, synced, o.override...)
		if err != nil {
			return err
		}
		brokers[name] = s
		steps := []int{gb}
		if gb > anchorGB {
			steps = []int{anchorGB, gb}
		}
		have := 0
		for _, upTo := range steps {
			if err := fillData(s, have, upTo); err != nil {
				return err
			}
			have = upTo
			if i == 0 {
				continue
			}
			for _, how := range []string{"kill -9", "clean stop"} {
				if how == "kill -9" {
					s.proc.Kill()
				} else if err := s.proc.Stop(120 * time.Second); err != nil {
					return err
				}
				begun := time.Now()
				if s, err = startMillrace(d, o.millrace, synced, o.override...); err != nil {
					return err
				}
				brokers[name] = s
				r := scaleLoads[0].Row
				if err := load.Fill(s.addr, r, load.ProduceFrame(r, "data-0"), 1); err != nil {
					return err
				}
				row := startRow{upTo, how, time.Since(begun).Seconds()}
				rep.Start = append(rep.Start, row)
				rep.say("| %d GB in %d topics | %s, to the first acknowledged record | %.2f |", upTo, dataTopics, how, row.Seconds)
			}
		}
	}
	rep.say("")
	for _, l := range scaleLoads {
		b := load.Batch(l.Records, l.Size)
		var frames [][]byte
		for i := range dataTopics {
			frames = append(frames, load.ProduceFrameTo(l.Row, "data-"+strconv.Itoa(i), 0, b))
		}
		err := rep.speed(o, dir, speedRow{Mode: "produce", Load: l.name, Over: over}, l.Row, func(name string) (string, int, [][]byte) {
			return brokers[name].addr, brokers[name].pid, frames
		})
		if err != nil {
			return err
		}
	}
	// The newest 64 MiB before the loads of one topic, which is hot in both; where they are differs.
	r := load.Row{Records: 16, Size: 1024, Partitions: 1, Connections: 4, InFlight: 1, Fetch: 1 << 20, Spread: true}
	hot := map[string][][]byte{}
	for name, s := range brokers {
		f, err := hotFrames(s, r)
		if err != nil {
			return err
		}
		hot[name] = f
	}
	return rep.speed(o, dir, speedRow{Mode: "fetch", Load: "1 MiB, 4 × 1, hot", Over: over}, r, func(name string) (string, int, [][]byte) {
		return brokers[name].addr, brokers[name].pid, hot[name]
	})
}

// hotFrames fills a topic of its own with what a fetch load reads.
func hotFrames(s *server, r load.Row) ([][]byte, error) {
	if err := load.CreateTopic(context.Background(), s.addr, "hot", 1, nil); err != nil {
		return nil, err
	}
	return load.PrepareFetch(s.addr, r, "hot")
}

// fillData brings the data from have to upTo GB.
func fillData(s *server, have, upTo int) error {
	b := load.Batch(fillRow.Records, fillRow.Size)
	n := (upTo - have) * 1e9 / dataTopics / len(b)
	for i := range dataTopics {
		topic := "data-" + strconv.Itoa(i)
		if err := load.CreateTopic(context.Background(), s.addr, topic, 1, map[string]string{"retention.ms": "-1"}); err != nil {
			return err
		}
		if err := load.Fill(s.addr, fillRow, load.ProduceFrameOf(fillRow, topic, b), n); err != nil {
			return fmt.Errorf("filling %s: %w", topic, err)
		}
	}
	return nil
}
