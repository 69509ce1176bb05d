package main

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"millrace/benchmarks/load"
	"millrace/benchmarks/peers/report"
)

// measureCodecs sends compressed batches: what a broker does with them beyond storing is its own affair.
func measureCodecs(e *env) error {
	e.sec.Method = "Prepared batches of 100 × 100 B of words, compressed once by the client's codec, 4 connections × 5 in flight; MB/s are compressed bytes. Both brokers keep the codec and check every record, so both must decompress."
	servers := e.up(e.millraceSynced(), e.millracePageCache(), e.kafka())
	defer e.down(servers...)
	e.warmServers(servers)
	for _, c := range []struct {
		name  string
		codec kgo.CompressionCodec
	}{{"none", kgo.NoCompression()}, {"gzip", kgo.GzipCompression()}, {"snappy", kgo.SnappyCompression()}, {"lz4", kgo.Lz4Compression()}, {"zstd", kgo.ZstdCompression()}} {
		r := load.Row{Records: 100, Size: 100, Partitions: 1, Connections: 4, InFlight: 5, Acks: 1}
		topic := "codec-" + c.name
		batch, err := load.CompressedBatch(r.Records, r.Size, c.codec)
		if err != nil {
			return err
		}
		frames := [][]byte{load.ProduceFrameOf(r, topic, batch)}
		for _, s := range servers {
			if s.err != nil {
				continue
			}
			err := e.topic(s, topic, 1)
			if err == nil {
				err = e.leads(s, topic, 1)
			}
			if err == nil {
				err = e.warm(s, r, frames)
			}
			if err != nil {
				e.note("%s, %s: %v", c.name, s.label, err)
			}
		}
		e.alternate(fmt.Sprintf("100 × 100 B, %s", c.name), servers, func(s *server) (report.Values, error) {
			res, err := e.run(s, r, frames)
			return values(r, res), err
		})
		e.dropTopics(servers)
	}
	return nil
}
