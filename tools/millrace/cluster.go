package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/tools/internal/client"
	"millrace/tools/internal/output"
)

// clusterView is what 'cluster describe --json' writes.
type clusterView struct {
	ID         string       `json:"id"`
	Controller int32        `json:"controller"`
	Brokers    []brokerView `json:"brokers"`
}

type brokerView struct {
	ID         int32  `json:"id"`
	Address    string `json:"address"`
	Rack       string `json:"rack,omitempty"`
	Controller bool   `json:"controller"`
	Version    string `json:"version_guess"` // from what it speaks
}

func newCluster() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Show the brokers of a cluster and what they speak",
		Example: `  millrace cluster describe
  millrace cluster apis --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newClusterDescribe(), newClusterAPIs())
	return cmd
}

func newClusterDescribe() *cobra.Command {
	var a admin
	cmd := &cobra.Command{
		Use:   "describe",
		Short: "Show the cluster's id and its brokers",
		Long: `Show the cluster's id and its brokers.

Columns in a pipe: broker, address, rack ("-" if none), whether it is the
controller, the Kafka version whose requests it speaks.`,
		Example: `  millrace cluster describe
  millrace cluster describe --json | jq -r .id`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.ask(cmd, func(ctx context.Context, cl *client.Admin) error {
				m, err := cl.BrokerMetadata(ctx)
				if err != nil {
					return err
				}
				versions, err := cl.ApiVersions(ctx)
				if err != nil {
					return err
				}
				view := clusterView{ID: m.Cluster, Controller: m.Controller, Brokers: []brokerView{}}
				table := output.Table{Title: "cluster " + m.Cluster, Head: []string{"broker", "address", "rack", "controller", "speaks like"}, Numbers: []string{"broker"}}
				for _, b := range m.Brokers {
					row := brokerView{ID: b.NodeID, Address: fmt.Sprintf("%s:%d", b.Host, b.Port), Rack: text(b.Rack), Controller: b.NodeID == m.Controller}
					if v, ok := versions[b.NodeID]; ok && v.Err == nil {
						row.Version = v.VersionGuess()
					}
					view.Brokers = append(view.Brokers, row)
					table.Add(strconv.Itoa(int(row.ID)), row.Address, dash(row.Rack), strconv.FormatBool(row.Controller), row.Version)
				}
				return a.show(cmd, view, table)
			})
		},
	}
	a.register(cmd)
	return cmd
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// brokerAPI is an element of what 'cluster apis --json' writes.
type brokerAPI struct {
	Broker int32  `json:"broker"`
	Key    int16  `json:"key"`
	Name   string `json:"name"`
	Min    int16  `json:"min"`
	Max    int16  `json:"max"`
}

func newClusterAPIs() *cobra.Command {
	var a admin
	cmd := &cobra.Command{
		Use:     "apis",
		Short:   "Show the requests and versions that brokers speak",
		Long:    "Show the requests and versions that brokers speak.\n\nColumns: broker, key, name, lowest and highest version.",
		Example: "  millrace cluster apis | awk '$3 == \"Fetch\"'",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.ask(cmd, func(ctx context.Context, cl *client.Admin) error {
				versions, err := cl.ApiVersions(ctx)
				if err != nil {
					return err
				}
				list := []brokerAPI{}
				table := output.Table{Head: []string{"broker", "key", "name", "min", "max"}, Numbers: []string{"broker", "key", "min", "max"}}
				for _, v := range versions.Sorted() {
					if v.Err != nil {
						return fmt.Errorf("broker %d: %w", v.NodeID, v.Err)
					}
					v.EachKeySorted(func(key, lowest, highest int16) {
						name, ok := clientAPIName(key)
						if !ok {
							name = kmsg.NameForKey(key)
						}
						list = append(list, brokerAPI{v.NodeID, key, name, lowest, highest})
						table.Add(strconv.Itoa(int(v.NodeID)), strconv.Itoa(int(key)), name, strconv.Itoa(int(lowest)), strconv.Itoa(int(highest)))
					})
				}
				return a.show(cmd, list, table)
			})
		},
	}
	a.register(cmd)
	return cmd
}

// logDirView is an element of what 'logdirs --json' writes.
type logDirView struct {
	Broker     int32              `json:"broker"`
	Dir        string             `json:"dir"`
	Error      string             `json:"error,omitempty"`
	Size       int64              `json:"size_bytes"`
	Total      *int64             `json:"volume_bytes"` // null: the broker does not tell
	Usable     *int64             `json:"usable_bytes"`
	Partitions []logDirViewMember `json:"partitions"`
}

type logDirViewMember struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Size      int64  `json:"size_bytes"`
	Lag       int64  `json:"offset_lag"`
	Future    bool   `json:"future,omitempty"`
}

func newLogDirs() *cobra.Command {
	var a admin
	var topics []string
	var partitions bool
	cmd := &cobra.Command{
		Use:   "logdirs",
		Short: "Show what the data directories of brokers hold",
		Long: `Show the data directories of brokers.

Columns: broker, directory, partitions, bytes of their logs, usable bytes of the
volume ("-" where not known). With --partitions: broker, directory, topic,
partition, bytes, how many offsets it is behind, and whether it is a copy on its
way to this directory.`,
		Example: `  millrace logdirs
  millrace logdirs --partitions | sort -t "$(printf '\t')" -k5 -n | tail`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.ask(cmd, func(ctx context.Context, cl *client.Admin) error {
				list, err := logDirViews(ctx, cl, topics)
				if err != nil {
					return err
				}
				return a.show(cmd, list, logDirTable(list, partitions, output.IsTerminal(cmd.OutOrStdout())))
			})
		},
	}
	cmd.Flags().StringSliceVarP(&topics, "topic", "t", nil, "only these topics")
	cmd.Flags().BoolVar(&partitions, "partitions", false, "a line for each partition")
	a.register(cmd)
	cmd.AddCommand(newLogDirsMove())
	return cmd
}

func logDirViews(ctx context.Context, cl *client.Admin, topics []string) ([]logDirView, error) {
	if err := client.NeedAPIs(ctx, cl, kmsg.DescribeLogDirs); err != nil {
		return nil, err
	}
	all, err := cl.DescribeAllLogDirs(ctx, nil)
	if err != nil {
		return nil, err
	}
	list := []logDirView{}
	for _, dirs := range all {
		for _, d := range dirs {
			v := logDirView{Broker: d.Broker, Dir: d.Dir, Partitions: []logDirViewMember{}}
			if d.Err != nil {
				v.Error = d.Err.Error()
			}
			if d.TotalBytes >= 0 {
				v.Total, v.Usable = &d.TotalBytes, &d.UsableBytes
			}
			for _, p := range d.Topics.Sorted() {
				if len(topics) == 0 || slices.Contains(topics, p.Topic) {
					v.Size += p.Size
					v.Partitions = append(v.Partitions, logDirViewMember{p.Topic, p.Partition, p.Size, p.OffsetLag, p.IsFuture})
				}
			}
			list = append(list, v)
		}
	}
	slices.SortFunc(list, func(a, b logDirView) int {
		if a.Broker != b.Broker {
			return int(a.Broker) - int(b.Broker)
		}
		return strings.Compare(a.Dir, b.Dir)
	})
	return list, nil
}

func logDirTable(list []logDirView, partitions, people bool) output.Table {
	size := func(n int64) string {
		if people {
			return humanize.IBytes(uint64(max(n, 0)))
		}
		return strconv.FormatInt(n, 10)
	}
	if partitions {
		table := output.Table{Head: []string{"broker", "dir", "topic", "partition", "size", "behind", "copy"}, Numbers: []string{"broker", "partition", "size", "behind"}}
		for _, d := range list {
			for _, p := range d.Partitions {
				table.Add(strconv.Itoa(int(d.Broker)), d.Dir, p.Topic, strconv.Itoa(int(p.Partition)), size(p.Size), strconv.FormatInt(p.Lag, 10), map[bool]string{true: "yes", false: "no"}[p.Future])
			}
		}
		return table
	}
	table := output.Table{Head: []string{"broker", "dir", "partitions", "size", "usable"}, Numbers: []string{"broker", "partitions", "size", "usable"}}
	for _, d := range list {
		usable := "-"
		if d.Usable != nil {
			usable = size(*d.Usable)
		}
		table.Add(strconv.Itoa(int(d.Broker)), d.Dir, strconv.Itoa(len(d.Partitions)), size(d.Size), usable)
	}
	return table
}
