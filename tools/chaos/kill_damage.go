package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"millrace/engine/batch"
)

// damageIsNamed is what the server logs of damage in a closed segment (engine/scrub.go).
const damageIsNamed = "a closed segment is damaged"

// checkScrub changes a byte of a closed segment while the server is stopped, and sees to it that the next start serves and its scrub names
// the file. Nobody writes any more, and everything was checked. Where no segment is closed there is nothing to do.
func (k *kills) checkScrub() {
	if said := k.server.said.String(); strings.Contains(said, damageIsNamed) {
		failf("the scrub gives a false alarm")
	}
	k.server.end(syscall.SIGTERM) // after a kill a start reads what is above the recovery point, and would find it first
	name, p := k.closedSegment()
	if name == "" {
		k.server.start()
		return
	}
	at, err := flipByte(k.rng, name)
	if err != nil {
		failf("change %s: %v", name, err)
	}
	k.server.override("millrace.scrub.bytes.per.second=1000000000")
	k.server.start()
	cl := k.client()
	defer cl.Close()
	if err := cl.ProduceSync(k.ctx, &kgo.Record{Topic: logTopic, Partition: p, Value: []byte("behind the damage")}).FirstErr(); err != nil {
		failf("produce to a partition with damage in a closed segment: %v", err)
	}
	named := func() bool {
		for line := range strings.Lines(k.server.said.String()) {
			if strings.Contains(line, damageIsNamed) && strings.Contains(line, name) && strings.Contains(line, fmt.Sprintf("position=%d ", at)) {
				return true
			}
		}
		return false
	}
	for ends := time.Now().Add(time.Minute); !named(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(ends) {
			failf("the scrub has not named the damage in %s, in the batch at %d", name, at)
		}
	}
	k.counts.Damages++
}

// closedSegment is one of the log topic that no deletion was asked for, and its partition; "" if there is none.
func (k *kills) closedSegment() (name string, partition int32) {
	for _, p := range k.rng.Perm(logPartitions) {
		for _, d := range k.dirs {
			list, _ := filepath.Glob(filepath.Join(d, fmt.Sprintf("%s-%d", logTopic, p), "*.log")) // ascending; the pattern is right
			if len(list) < 2 {
				continue
			}
			var end int64 // where the last begins
			if _, err := fmt.Sscanf(filepath.Base(list[len(list)-1]), "%d.log", &end); err == nil && end > k.log[p].asked {
				return list[len(list)-2], int32(p)
			}
		}
	}
	return "", 0
}

// flipByte changes one byte of a batch in the segment that a checksum covers, and returns where the batch begins.
func flipByte(r *rand.Rand, name string) (at int64, err error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	var starts []int
	for pos := 0; pos < len(data); {
		n, err := batch.Split(data[pos:])
		if err != nil {
			return 0, fmt.Errorf("position %d: %w", pos, err)
		}
		starts = append(starts, pos)
		pos += n
	}
	if len(starts) == 0 {
		return 0, fmt.Errorf("%d bytes hold no batch", len(data))
	}
	begin := one(r, starts...)
	n, err := batch.Split(data[begin:])
	if err != nil {
		return 0, err
	}
	const covered = 17 // the checksum, and behind it what it covers
	i := begin + covered + r.IntN(n-covered)
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	_, err = f.WriteAt([]byte{data[i] ^ 0x10}, int64(i))
	return int64(begin), err
}
