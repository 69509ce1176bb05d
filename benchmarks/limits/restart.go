package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"millrace/benchmarks/load"
	"millrace/benchmarks/process"
)

const restartPartitions = 1000

// measureRestarts prints start-up time (process start to ready line), idle memory, and the time to come back with 1,000
// partitions after a clean stop and after kill -9.
func measureRestarts(o options) error {
	dir, err := filepath.Abs(o.dir)
	if err != nil {
		return err
	}
	fmt.Println(process.Machine(dir))
	fmt.Println("| what | round | ready after ms | resident MB |\n|---|---|---|---|")
	for round := range o.rounds {
		d := filepath.Join(dir, strconv.Itoa(round))
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
		if err := restartRound(o, round, d); err != nil {
			return err
		}
		os.RemoveAll(d)
	}
	return nil
}

func restartRound(o options, round int, dir string) error {
	step := func(what string, then func(*server) error, how syscall.Signal) error {
		at := time.Now()
		s, err := startMillrace(dir, o.millrace, synced)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		took := time.Since(at)
		time.Sleep(300 * time.Millisecond)
		fmt.Printf("| %s | %d | %.0f | %.1f |\n", what, round, float64(took.Microseconds())/1000, float64(process.RSS(s.pid))/1e6)
		if then != nil {
			if err := then(s); err != nil {
				s.stop()
				return err
			}
		}
		if how == syscall.SIGKILL {
			s.proc.Kill()
			return nil
		}
		at = time.Now()
		s.stop()
		fmt.Printf("| clean stop (%s) | %d | %.0f | |\n", strings.ToLower(what), round, float64(time.Since(at).Microseconds())/1000)
		return nil
	}
	r := load.Row{Records: 1, Size: 1000, Partitions: 100, Acks: 1}
	fill := func(s *server) error {
		for i := range restartPartitions / r.Partitions {
			topic := fmt.Sprintf("restart-%d", i)
			if err := s.createTopic(topic, r.Partitions); err != nil {
				return err
			}
			if err := load.Fill(s.addr, r, load.ProduceFrame(r, topic), 50); err != nil {
				return err
			}
		}
		return nil
	}
	if err := step("empty directory", fill, syscall.SIGTERM); err != nil {
		return err
	}
	if err := step("1,000 partitions, after a clean stop", fill, syscall.SIGKILL); err != nil {
		return err
	}
	return step("1,000 partitions, after kill -9", nil, syscall.SIGTERM)
}
