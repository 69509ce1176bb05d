package broker

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"millrace/engine/batch"
	"millrace/wire"
)

// Claim: a byte that goes bad on the disk is found by the scrub, told in /metrics and /readyz, and stops nothing: a fetch of the damaged batch is answered (its consumer
// sees the checksum), all other batches are served, appends go on; a damaged length is answered by a storage error, never by silence. The rate is a setting
// that changes while the broker runs.
func TestScrubTellsOfDamage(t *testing.T) {
	b := startBroker(t, append([]string{"millrace.scrub.bytes.per.second=0", "admin.listener=127.0.0.1:0"}, quick...)...)
	b.topic("t", 1, "segment.bytes=1048576", "millrace.durability=page-cache")
	const n = 60
	for i := range n {
		b.mustProduce("t", 0, keyedRecord(t, fmt.Sprint("key-", i), fmt.Sprint(i, strings.Repeat("x", 50_000))))
	}
	dir := b.replicas.Topic("t").Partition(0).Log().Dir()
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil || len(logs) < 3 {
		t.Fatal(logs, err)
	}
	slices.Sort(logs)
	spoil := func(file string, at int64) {
		t.Helper()
		f, err := os.OpenFile(file, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteAt([]byte{0xff}, at); err != nil {
			t.Fatal(err)
		}
	}
	spoil(logs[0], 1000)
	rate := "1073741824"
	if got, err := b.admin().AlterBrokerConfigs(context.Background(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "millrace.scrub.bytes.per.second", Value: &rate}}); err != nil || got[0].Err != nil {
		t.Fatal(err, got)
	}
	b.eventually("the scrub finds it", func() bool { return len(b.store.ScrubFindings()) == 1 })
	get := func(path string) string {
		t.Helper()
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		r, err := client.Get("http://" + b.Ready().Admin + path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		body, err := io.ReadAll(r.Body)
		if err != nil || r.StatusCode != http.StatusOK {
			t.Fatal(r.Status, err)
		}
		return string(body)
	}
	if body := get("/readyz"); body != fmt.Sprintf("ok\ndamaged: %s at 0, offsets 0 to 0\n", logs[0]) {
		t.Errorf("%q", body)
	}
	if body := get("/metrics"); !strings.Contains(body, `millrace_scrub_damaged_segments{logdirectory="`+filepath.Dir(dir)+`"} 1`) {
		t.Error("the metric does not tell")
	}
	spoil(logs[1], 8) // the length of the second segment's first batch
	c := b.dial()
	second := int64(0)
	if _, err := fmt.Sscanf(filepath.Base(logs[1]), "%020d.log", &second); err != nil {
		t.Fatal(err)
	}
	for at := range int64(n) {
		begun := time.Now()
		p := c.fetch(b.fetchOf(12, want{topic: "t", partition: 0, offset: at}), 12).Topics[0].Partitions[0]
		if took := time.Since(begun); took > 10*time.Second {
			t.Fatalf("a fetch at %d took %v", at, took)
		}
		if at >= second && at < second+20 {
			continue // any answer will do
		}
		if p.ErrorCode != 0 || len(p.RecordBatches) < batch.HeaderSize {
			t.Fatalf("fetch at %d: %s, %d bytes", at, wire.ErrorName(p.ErrorCode), len(p.RecordBatches))
		}
	}
	b.mustProduce("t", 0, keyedRecord(t, "more", "x"))
}

// Claim: compression.type set on a running topic reaches its old records with the next pass of compaction.
func TestCompactionFollowsCompressionType(t *testing.T) {
	b := startBroker(t, append([]string{"log.cleaner.backoff.ms=100"}, quick...)...)
	b.topic("t", 1, "segment.bytes=1048576", "cleanup.policy=compact", "min.cleanable.dirty.ratio=0.01")
	log := b.replicas.Topic("t").Partition(0).Log()
	fill := func() {
		noise := make([]byte, 50_000) // what no codec shrinks: segments must fill
		for i := range 60 {
			rand.NewChaCha8([32]byte{byte(i)}).Read(noise)
			b.mustProduce("t", 0, keyedRecord(t, fmt.Sprint("key-", i%30), string(noise)))
		}
	}
	fill()
	b.eventually("a pass", func() bool { return log.FirstDirty() > 0 })
	for name, value := range map[string]string{"compression.zstd.level": "7", "compression.type": "zstd"} {
		got, err := b.admin().AlterTopicConfigs(context.Background(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: name, Value: &value}}, "t")
		if err != nil || got[0].Err != nil {
			t.Fatal(err, got)
		}
	}
	if c := log.Config(); !c.Recompress || c.Codec != batch.Zstd || c.CodecLevel != 7 || c.MaxBatch == 0 {
		t.Fatalf("%+v", c)
	}
	first := log.FirstDirty()
	b.mustProduce("t", 0, keyedRecord(t, "last", "x"))
	fill()
	b.eventually("the next pass", func() bool { return log.FirstDirty() > first })
	end := int64(log.FirstDirty())
	b.eventually("all that is cleaned is zstd", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addr("PLAINTEXT")), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"t": {0: kgo.NewOffset().AtStart()}}))
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		for {
			fs := cl.PollFetches(ctx)
			if err := fs.Err(); err != nil {
				t.Fatal(err)
			}
			for _, r := range fs.Records() {
				if r.Offset < end && r.Attrs.CompressionType() != uint8(batch.Zstd) {
					return false
				}
				if r.Offset >= end-1 {
					return true
				}
			}
		}
	})
}
