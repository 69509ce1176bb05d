package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The topics of the part kill. Each partition of the first two has one writer.
const (
	logTopic, logPartitions     = "log", 3
	keyedTopic, keyedPartitions = "keyed", 2
	killGroup                   = "g"
)

// kills is a server that is killed again and again under clients that live on: idempotent producers, a reader, commits of a group, an
// administrator. What was acknowledged is checked at the end, and commits and topics after every start.
type kills struct {
	rng    *rand.Rand
	seed   uint64
	counts *counts
	server *server
	dirs   []string
	ctx    context.Context
	found  atomic.Pointer[error]
	stop   atomic.Bool // the clients end

	writing atomic.Int32 // writers that have been acknowledged once
	work    sync.WaitGroup

	mu    sync.Mutex // guards the offsets of log, which are shared
	log   [logPartitions]logWriter
	keyed [keyedPartitions]keyedWriter
	group committed
	churn churned
}

// killEpisode kills a server some times and checks.
func killEpisode(seed uint64, rounds int, c *counts, stop func() bool) (err error) {
	base, err := os.MkdirTemp("", "chaos-kill-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(base)
	k := &kills{rng: rand.New(rand.NewPCG(seed, 3)), seed: seed, counts: c}
	for _, d := range []string{"a", "b"}[:1+k.rng.IntN(2)] {
		k.dirs = append(k.dirs, filepath.Join(base, d))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	k.ctx = ctx
	k.server, err = newServer([]string{
		"log.dirs=" + strings.Join(k.dirs, ","), "node.id=1", "group.initial.rebalance.delay.ms=0", "auto.create.topics.enable=false",
		"millrace.durability=" + one(k.rng, "sync", "page-cache"), "millrace.commit.journal=" + one(k.rng, "auto", "auto", "off"),
		"log.cleaner.backoff.ms=100", "log.retention.check.interval.ms=200", "log.segment.delete.delay.ms=1", "log.cleaner.dedupe.buffer.size=4194304",
		"offsets.topic.num.partitions=3", "millrace.io=" + string(drawIO(k.rng)), "millrace.scrub.bytes.per.second=" + one(k.rng, "0", "1000000000"),
	})
	if err != nil {
		return err
	}
	k.server.openFiles = one(k.rng, 0, 0, 128, 256)
	defer func() {
		k.server.close()
		k.stop.Store(true)
		cancel()
		k.clientsEnd(10 * time.Second)
		if found := k.found.Load(); err == nil && found != nil {
			err = *found
		}
		if err != nil {
			err = fmt.Errorf("%w\n%v", err, k.server)
		}
	}()
	defer caught(&err)
	k.server.start()
	k.begin()
	// A client that cannot get a producer id gives up; one that has it tries for ever. So nobody is killed before all have theirs.
	for k.writing.Load() < logPartitions+keyedPartitions && k.found.Load() == nil && ctx.Err() == nil {
		time.Sleep(5 * time.Millisecond)
	}
	for range rounds {
		if stop() || k.found.Load() != nil {
			break
		}
		time.Sleep(time.Duration(100+k.rng.IntN(1500)) * time.Millisecond) // where the kill falls; nothing depends on it
		if oneIn(k.rng, 6) {
			k.server.end(syscall.SIGTERM)
		} else {
			k.server.end(syscall.SIGKILL)
			c.Kills++
		}
		k.server.start()
	}
	time.Sleep(200 * time.Millisecond)
	k.stop.Store(true)
	if !k.clientsEnd(time.Minute) {
		k.server.end(syscall.SIGQUIT) // it tells what each goroutine does
		failf("a client has waited for its answer for a minute")
	}
	if k.found.Load() == nil {
		k.check()
		k.checkScrub()
	}
	return nil
}

// clientsEnd waits until the clients have ended, which have been told to, but not for ever. kgo can leave a ProduceSync waiting whose record came
// just before its context ended, and what the episode has found has to be said all the same.
func (k *kills) clientsEnd(most time.Duration) bool {
	ended := make(chan struct{})
	go func() { // ends with the clients, or this process
		k.work.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return true
	case <-time.After(most):
		return false
	}
}

// client is one that outlives the server: it tries until it is answered, or the episode is over.
func (k *kills) client(opts ...kgo.Opt) *kgo.Client {
	cl, err := kgo.NewClient(append([]kgo.Opt{
		kgo.WithContext(k.ctx), kgo.SeedBrokers(k.server.address), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0),
		kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }), kgo.RequestRetries(1 << 20),
		kgo.MetadataMinAge(20 * time.Millisecond), kgo.RetryTimeout(time.Minute), kgo.UnknownTopicRetries(-1),
	}, opts...)...)
	if err != nil {
		failf("client: %v", err)
	}
	return cl
}

// begin makes the topics and starts the clients.
func (k *kills) begin() {
	cl := k.client()
	admin := kadm.NewClient(cl)
	k.make(admin, logTopic, logPartitions, map[string]string{"segment.bytes": "20000", "millrace.durability": one(k.rng, "sync", "page-cache")})
	k.make(admin, keyedTopic, keyedPartitions, map[string]string{
		"cleanup.policy": one(k.rng, "compact", "compact,delete"), "segment.bytes": "8000", "min.cleanable.dirty.ratio": "0.01",
		"delete.retention.ms": one(k.rng, "0", "86400000"), "millrace.durability": one(k.rng, "sync", "page-cache"),
	})
	for p := range k.log {
		k.run(uint64(p), func(r *rand.Rand, cl *kgo.Client) { k.writeLog(r, cl, int32(p)) })
	}
	for p := range k.keyed {
		k.run(uint64(10+p), func(r *rand.Rand, cl *kgo.Client) { k.writeKeyed(r, cl, int32(p)) })
	}
	k.run(20, k.administer)
	k.run(21, k.commit)
	k.run(22, k.makeAndDelete)
	k.run(23, k.follow)
	cl.Close()
}

func (k *kills) make(admin *kadm.Client, topic string, partitions int32, configs map[string]string) {
	c := map[string]*string{}
	for key, v := range configs {
		c[key] = &v
	}
	if _, err := admin.CreateTopic(k.ctx, partitions, 1, c, topic); err != nil {
		failf("create %s: %v", topic, err)
	}
}

// run starts one user with a client of its own. It ends with stop; its finding ends the others.
func (k *kills) run(n uint64, do func(*rand.Rand, *kgo.Client)) {
	k.work.Go(func() {
		r := rand.New(rand.NewPCG(k.seed, 100+n))
		cl := k.client()
		defer cl.Close()
		for !k.stop.Load() && k.found.Load() == nil {
			err := func() (err error) {
				defer caught(&err)
				do(r, cl)
				return nil
			}()
			if err != nil {
				k.found.CompareAndSwap(nil, &err)
			}
		}
	})
}
