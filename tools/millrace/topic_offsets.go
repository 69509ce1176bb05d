package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/tools/internal/cli"
	"millrace/tools/internal/client"
	"millrace/tools/internal/output"
)

// partitionOffset is an element of what 'topic offsets --json' and 'topic trim --json'
// write; the offset is null where there is none.
type partitionOffset struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    *int64 `json:"offset"`
	Error     string `json:"error,omitempty"`
}

func newTopicOffsets() *cobra.Command {
	var a admin
	var at string
	cmd := &cobra.Command{
		Use:   "offsets NAME...",
		Short: "Show the offset at a place or a time",
		Long: `Show an offset of each partition: its end, its start, that of the newest
timestamp, or of the first record of a time or later ("-" where there is none).

Columns: topic, partition, offset.`,
		Example: `  millrace topic offsets logs                          # the ends
  millrace topic offsets logs --at earliest
  millrace topic offsets logs --at @2026-01-31T12:00:00Z`,
		Args: needNames,
		RunE: func(cmd *cobra.Command, names []string) error {
			when, err := parsePlace(at)
			if err != nil {
				return err
			}
			return a.ask(cmd, func(ctx context.Context, cl *client.Admin) error {
				where, err := allPartitions(ctx, cl, names)
				if err != nil {
					return err
				}
				offsets, err := listOffsets(ctx, cl, where, when)
				if err != nil {
					return err
				}
				return a.showOffsets(cmd, where, func(tp topicPartition) (int64, error) { return offsets[tp].offset, offsets[tp].err })
			})
		},
	}
	cmd.Flags().StringVar(&at, "at", "latest", "latest, earliest, max-timestamp, or @TIME (RFC 3339 or ms)")
	a.register(cmd)
	return cmd
}

func newTopicTrim() *cobra.Command {
	var a admin
	var before int64
	var partitions []int32
	var all bool
	cmd := &cobra.Command{
		Use:   "trim NAME --before OFFSET",
		Short: "Delete the records before an offset",
		Long: `Delete the records of a topic before an offset, or all of them with --all.
The topic and its later offsets stay.

Columns: topic, partition, the new start offset.`,
		Example: `  millrace topic trim logs --before 1000 -p 0
  millrace topic trim logs --all`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			if all == cmd.Flags().Changed("before") || before < 0 {
				return cli.Usagef("give either --before, 0 or more, or --all")
			}
			if all {
				before = -1
			}
			return a.ask(cmd, func(ctx context.Context, cl *client.Admin) error {
				if err := client.NeedAPIs(ctx, cl, kmsg.DeleteRecords); err != nil {
					return err
				}
				where, err := somePartitions(ctx, cl, names[0], partitions)
				if err != nil {
					return err
				}
				want := map[topicPartition]int64{}
				for _, tp := range where {
					want[tp] = before
				}
				answers, err := deleteRecords(ctx, cl, want)
				if err != nil {
					return err
				}
				return a.showOffsets(cmd, where, func(tp topicPartition) (int64, error) { return answers[tp].LowWatermark, answers[tp].Err })
			})
		},
	}
	cmd.Flags().Int64Var(&before, "before", 0, "the first offset that stays")
	cmd.Flags().BoolVar(&all, "all", false, "delete all records that are there")
	cmd.Flags().Int32SliceVarP(&partitions, "partition", "p", nil, "only these partitions (default: all)")
	a.register(cmd)
	return cmd
}

func (a *admin) showOffsets(cmd *cobra.Command, where []topicPartition, of func(topicPartition) (int64, error)) error {
	list := []partitionOffset{}
	table := output.Table{Head: []string{"topic", "partition", "offset"}, Numbers: []string{"partition", "offset"}}
	var failed []error
	for _, tp := range where {
		row := partitionOffset{Topic: tp.Topic, Partition: tp.Partition}
		offset, err := of(tp)
		switch {
		case err != nil:
			row.Error = err.Error()
			failed = append(failed, refusal(tp.dashed(), err, ""))
		case offset >= 0:
			row.Offset = &offset
		}
		list = append(list, row)
		table.Add(tp.Topic, strconv.Itoa(int(tp.Partition)), optional(row.Offset))
	}
	return errors.Join(append([]error{a.show(cmd, list, table)}, failed...)...)
}

// parsePlace reads the name of a place in a log, or @TIME.
func parsePlace(text string) (int64, error) {
	if n, ok := offsetTimes[text]; ok {
		return n, nil
	}
	if len(text) > 1 && text[0] == '@' {
		if ms, err := strconv.ParseInt(text[1:], 10, 64); err == nil && ms >= 0 {
			return ms, nil
		}
		if t, err := time.Parse(time.RFC3339, text[1:]); err == nil {
			return t.UnixMilli(), nil
		}
	}
	return 0, cli.Usagef("%q is none of latest, earliest, max-timestamp, @TIME", text)
}

// allPartitions are the partitions of topics that have to exist.
func allPartitions(ctx context.Context, cl *client.Admin, names []string) (list []topicPartition, err error) {
	for _, name := range names {
		some, err := somePartitions(ctx, cl, name, nil)
		if err != nil {
			return nil, err
		}
		list = append(list, some...)
	}
	return list, nil
}

// somePartitions are these partitions of a topic, which have to exist, or all.
func somePartitions(ctx context.Context, cl *client.Admin, name string, numbers []int32) (list []topicPartition, err error) {
	t, err := client.RequireTopic(ctx, cl.Raw, name)
	if err != nil {
		return nil, err
	}
	if len(numbers) == 0 {
		numbers = t.Partitions
	}
	for _, n := range numbers {
		if err := t.RequirePartition(n); err != nil {
			return nil, err
		}
		list = append(list, topicPartition{name, n})
	}
	return list, nil
}
