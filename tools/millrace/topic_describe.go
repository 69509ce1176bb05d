package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/tools/internal/output"
)

// describedTopic is an element of what 'topic describe --json' writes.
type describedTopic struct {
	Topic      string               `json:"topic"`
	ID         string               `json:"id"`
	Internal   bool                 `json:"internal"`
	Partitions []describedPartition `json:"partitions"`
	Configs    []describedConfig    `json:"configs"`
}

type describedPartition struct {
	Partition int32   `json:"partition"`
	Leader    int32   `json:"leader"`
	Epoch     int32   `json:"leader_epoch"`
	Replicas  []int32 `json:"replicas"`
	ISR       []int32 `json:"isr"`
	Offline   []int32 `json:"offline,omitempty"`
	Start     *int64  `json:"start_offset"`         // null: not known
	End       *int64  `json:"end_offset"`           // null: not known
	Size      *int64  `json:"size_bytes,omitempty"` // of the leader's log; absent if the broker does not say
}

type describedConfig struct {
	Key     string  `json:"key"`
	Value   *string `json:"value"`
	Source  string  `json:"source"`
	Default bool    `json:"default"`
}

func newTopicDescribe() *cobra.Command {
	var a admin
	var configs bool
	cmd := &cobra.Command{
		Use:   "describe NAME...",
		Short: "Show partitions, offsets and settings of topics",
		Long: `Show the partitions of topics and the settings that differ from the defaults.

Columns in a pipe: topic, partition, leader, leader epoch, replicas, in-sync
replicas, start offset, end offset, size in bytes ("-" where not known).
With --configs: topic, key, value, source; all settings, defaults too.`,
		Example: `  millrace topic describe logs
  millrace topic describe logs --configs
  millrace topic describe logs | awk '{n += $8 - $7} END {print n, "records"}'`,
		Args: needNames,
		RunE: func(cmd *cobra.Command, names []string) error {
			return a.with(cmd, func(ctx context.Context, cl *kadm.Client) error {
				list, err := describe(ctx, cl, names)
				if list != nil {
					if werr := a.described(cmd.OutOrStdout(), list, configs); werr != nil {
						return werr
					}
				}
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&configs, "configs", false, "show the settings instead of the partitions")
	a.register(cmd)
	return cmd
}

// describe asks for everything about the topics. Topics that do not exist are in
// the error, the others in the list.
func describe(ctx context.Context, cl *kadm.Client, names []string) ([]describedTopic, error) {
	topics, err := cl.ListTopicsWithInternal(ctx, names...)
	if err != nil {
		return nil, err
	}
	var errs []error
	var known []string
	for _, name := range names {
		switch t := topics[name]; {
		case t.Topic == "" || errors.Is(t.Err, kerr.UnknownTopicOrPartition):
			errs = append(errs, refusal(name, kerr.UnknownTopicOrPartition, ""))
		case t.Err != nil:
			errs = append(errs, refusal(name, t.Err, ""))
		default:
			known = append(known, name)
		}
	}
	if len(known) == 0 {
		return nil, errors.Join(errs...)
	}
	starts, err := cl.ListStartOffsets(ctx, known...)
	if err != nil {
		errs = append(errs, fmt.Errorf("start offsets: %w", err))
	}
	ends, err := cl.ListEndOffsets(ctx, known...)
	if err != nil {
		errs = append(errs, fmt.Errorf("end offsets: %w", err))
	}
	configs, err := cl.DescribeTopicConfigs(ctx, known...)
	if err != nil {
		errs = append(errs, fmt.Errorf("settings: %w", err))
	}
	sizes, _ := cl.DescribeAllLogDirs(ctx, nil) // sizes are an extra; not every broker tells them

	var list []describedTopic
	for _, name := range known {
		t := topics[name]
		row := describedTopic{Topic: name, ID: idText(t.ID), Internal: t.IsInternal, Configs: []describedConfig{}}
		for _, p := range t.Partitions.Sorted() {
			row.Partitions = append(row.Partitions, describedPartition{
				Partition: p.Partition, Leader: p.Leader, Epoch: p.LeaderEpoch,
				Replicas: p.Replicas, ISR: p.ISR, Offline: p.OfflineReplicas,
				Start: offsetOf(starts, name, p.Partition), End: offsetOf(ends, name, p.Partition),
				Size: sizeOf(sizes, p.Leader, name, p.Partition),
			})
		}
		if c, err := configs.On(name, nil); err == nil {
			row.Configs = describeConfigs(c.Configs)
		}
		list = append(list, row)
	}
	return list, errors.Join(errs...)
}

func offsetOf(offsets kadm.ListedOffsets, topic string, partition int32) *int64 {
	if o, ok := offsets.Lookup(topic, partition); ok && o.Err == nil {
		return &o.Offset
	}
	return nil
}

func sizeOf(sizes kadm.DescribedAllLogDirs, leader int32, topic string, partition int32) *int64 {
	if p, ok := sizes[leader].LookupPartition(topic, partition); ok {
		return &p.Size
	}
	return nil
}

func describeConfigs(configs []kadm.Config) []describedConfig {
	out := make([]describedConfig, 0, len(configs))
	for _, c := range configs {
		out = append(out, describedConfig{
			Key: c.Key, Value: c.Value,
			Source:  strings.ToLower(c.Source.String()),
			Default: c.Source != kmsg.ConfigSourceDynamicTopicConfig,
		})
	}
	slices.SortFunc(out, func(a, b describedConfig) int { return strings.Compare(a.Key, b.Key) })
	return out
}

func (a *admin) described(w io.Writer, list []describedTopic, configs bool) error {
	if a.asJSON {
		return output.JSON(w, list)
	}
	people := output.IsTerminal(w)
	for _, t := range list {
		if !configs {
			table := partitionTable(t, people)
			if err := table.Write(w); err != nil {
				return err
			}
		}
		if configs || people {
			table := configTable(t, configs)
			if len(table.Rows) == 0 {
				continue
			}
			if err := table.Write(w); err != nil {
				return err
			}
		}
	}
	return nil
}

// partitionTable has the topic as a title for people and as a column for scripts.
func partitionTable(t describedTopic, people bool) output.Table {
	table := output.Table{
		Title:   fmt.Sprintf("%s  (id %s)", t.Topic, t.ID),
		Head:    []string{"partition", "leader", "epoch", "replicas", "isr", "start", "end", "size"},
		Numbers: []string{"partition", "leader", "epoch", "start", "end", "size"},
	}
	for _, p := range t.Partitions {
		row := []string{
			strconv.Itoa(int(p.Partition)), strconv.Itoa(int(p.Leader)), strconv.Itoa(int(p.Epoch)),
			joined(p.Replicas), joined(p.ISR), optional(p.Start), optional(p.End), optional(p.Size),
		}
		if !people {
			row = append([]string{t.Topic}, row...)
		} else if p.Size != nil {
			row[len(row)-1] = humanize.IBytes(uint64(*p.Size))
		}
		table.Add(row...)
	}
	return table
}

// configTable shows all settings, or those that were set for the topic.
func configTable(t describedTopic, all bool) output.Table {
	table := output.Table{Head: []string{"topic", "setting", "value", "source"}}
	for _, c := range t.Configs {
		if !all && c.Default {
			continue
		}
		value := "-"
		if c.Value != nil {
			value = *c.Value
		}
		table.Add(t.Topic, c.Key, value, c.Source)
	}
	return table
}

func joined(ids []int32) string {
	var b strings.Builder
	for i, id := range ids {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(int(id)))
	}
	return b.String()
}

func optional(n *int64) string {
	if n == nil {
		return "-"
	}
	return strconv.FormatInt(*n, 10)
}
