package harness

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// CreateTopic makes a topic with the broker's defaults.
func CreateTopic(addr, topic string, partitions int32) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	_, err = kadm.NewClient(cl).CreateTopic(ctx, partitions, 1, nil, topic)
	return err
}

// ReadAll calls each for every record of a partition, in order, up to the end as it is now.
func ReadAll(addr, topic string, partition int32, each func(*kgo.Record) error, opts ...kgo.Opt) error {
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(addr), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {partition: kgo.NewOffset().AtStart()}})}, opts...)...)
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, topic)
	if err != nil {
		return err
	}
	end, ok := ends.Lookup(topic, partition)
	if !ok || end.Err != nil {
		return fmt.Errorf("end offset of %s-%s: %v", topic, strconv.Itoa(int(partition)), end.Err)
	}
	for next := int64(0); next < end.Offset; {
		fs := cl.PollFetches(ctx)
		if errs := fs.Errors(); len(errs) > 0 {
			return errs[0].Err
		}
		for _, r := range slices.Collect(fs.RecordsAll()) {
			if err := each(r); err != nil {
				return err
			}
			next = r.Offset + 1
		}
	}
	return nil
}
