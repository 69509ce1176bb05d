package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/tools/internal/cli"
	"millrace/tools/internal/client"
	"millrace/tools/internal/output"
)

// movedPartition is an element of what 'logdirs move --json' writes.
type movedPartition struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Broker    int32  `json:"broker"`
	Dir       string `json:"dir"`
	Error     string `json:"error,omitempty"`
}

func newLogDirsMove() *cobra.Command {
	var a admin
	var partitions []int32
	broker := int32(-1)
	cmd := &cobra.Command{
		Use:   "move TOPIC DIR",
		Short: "Move partitions to another data directory of their broker",
		Long: `Move partitions of a topic to another data directory of the broker that they are on,
while they serve. The command returns once the moves have begun;
'millrace logdirs --partitions' shows the copies and how many offsets they are behind.
Moving a partition to where it is ends a move that is under way.`,
		Example: `  millrace logdirs move logs /disk2/millrace
  millrace logdirs move logs /disk2/millrace -p 0,3 --broker 1`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return cli.Usagef("name a topic and a directory")
			}
			if !filepath.IsAbs(args[1]) {
				return cli.Usagef("the directory must be an absolute path as in the broker's log.dirs, not %q", args[1])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.ask(cmd, func(ctx context.Context, cl *client.Admin) error {
				list, err := movePartitions(ctx, cl, broker, args[0], partitions, args[1])
				return errors.Join(a.showMoved(cmd, list), err)
			})
		},
	}
	cmd.Flags().Int32SliceVarP(&partitions, "partition", "p", nil, "only these partitions (default: all that the broker has)")
	cmd.Flags().Int32Var(&broker, "broker", -1, "the broker whose directory it is; not needed where there is only one")
	a.register(cmd)
	return cmd
}

// movePartitions asks a broker for the moves and returns what it answered, by partition;
// the error joins the refusals.
func movePartitions(ctx context.Context, cl *client.Admin, broker int32, topic string, partitions []int32, dir string) ([]movedPartition, error) {
	if err := client.NeedAPIs(ctx, cl, kmsg.AlterReplicaLogDirs); err != nil {
		return nil, err
	}
	meta, err := cl.Metadata(ctx, topic)
	if err != nil {
		return nil, err
	}
	ids := meta.Brokers.NodeIDs()
	switch {
	case broker >= 0 && !slices.Contains(ids, broker):
		return nil, fmt.Errorf("there is no broker %d; the cluster has %v", broker, ids)
	case broker < 0 && len(ids) != 1:
		return nil, fmt.Errorf("the cluster has the brokers %v: name one with --broker", ids)
	case broker < 0:
		broker = ids[0]
	}
	if len(partitions) == 0 {
		detail := meta.Topics[topic]
		if detail.Err != nil {
			return nil, refusal(topic, detail.Err, "")
		}
		for _, p := range detail.Partitions.Sorted() {
			if slices.Contains(p.Replicas, broker) {
				partitions = append(partitions, p.Partition)
			}
		}
	}
	var req kadm.AlterReplicaLogDirsReq
	set := kadm.TopicsSet{}
	set.Add(topic, partitions...)
	req.Add(dir, set)
	answers, err := cl.AlterBrokerReplicaLogDirs(ctx, broker, req)
	if err != nil {
		return nil, err
	}
	list := []movedPartition{}
	var errs []error
	for _, x := range answers.Sorted() {
		row := movedPartition{Topic: x.Topic, Partition: x.Partition, Broker: broker, Dir: dir}
		if x.Err != nil {
			err := fmt.Errorf("%s is not moved: %s: %w", topicPartition{x.Topic, x.Partition}.dashed(), whyNotMoved(x.Err, dir), x.Err)
			row.Error = err.Error()
			errs = append(errs, err)
		}
		list = append(list, row)
	}
	return list, errors.Join(errs...)
}

// whyNotMoved puts into words what the protocol has only a code for.
func whyNotMoved(err error, dir string) string {
	switch {
	case errors.Is(err, kerr.LogDirNotFound):
		return dir + " is not one of the broker's log.dirs"
	case errors.Is(err, kerr.ReplicaNotAvailable), errors.Is(err, kerr.UnknownTopicOrPartition):
		return "the broker does not have this partition; it remembers the directory for when it makes it"
	}
	return "the broker refuses"
}

func (a *admin) showMoved(cmd *cobra.Command, list []movedPartition) error {
	if a.asJSON {
		return output.JSON(cmd.OutOrStdout(), list)
	}
	for _, row := range list {
		if row.Error == "" {
			fmt.Fprintf(cmd.OutOrStdout(), "moving: %s to %s\n", topicPartition{row.Topic, row.Partition}.dashed(), row.Dir)
		}
	}
	return nil
}
