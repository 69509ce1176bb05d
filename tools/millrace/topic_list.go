package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"

	"millrace/tools/internal/output"
)

// listedTopic is an element of what 'topic list --json' writes.
type listedTopic struct {
	Topic       string `json:"topic"`
	ID          string `json:"id"`
	Partitions  int    `json:"partitions"`
	Replication int    `json:"replication_factor"`
	Internal    bool   `json:"internal"`
}

func newTopicList() *cobra.Command {
	var a admin
	var internal bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List topics",
		Long:  "List topics by name. Columns: topic, partitions, replication factor.",
		Example: `  millrace topic list
  millrace topic list | cut -f1                    # names only
  millrace topic list --json | jq '.[].topic'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd, func(ctx context.Context, cl *kadm.Client) error {
				topics, err := cl.ListTopicsWithInternal(ctx)
				if err != nil {
					return err
				}
				if !internal {
					topics.FilterInternal()
				}
				return a.listed(cmd, topics)
			})
		},
	}
	cmd.Flags().BoolVar(&internal, "internal", false, "list internal topics, too")
	a.register(cmd)
	return cmd
}

func (a *admin) listed(cmd *cobra.Command, topics kadm.TopicDetails) error {
	list := []listedTopic{}
	table := output.Table{
		Head:    []string{"topic", "partitions", "replication"},
		Numbers: []string{"partitions", "replication"},
	}
	for _, t := range topics.Sorted() {
		row := listedTopic{Topic: t.Topic, ID: idText(t.ID), Partitions: len(t.Partitions), Replication: t.Partitions.NumReplicas(), Internal: t.IsInternal}
		list = append(list, row)
		table.Add(row.Topic, strconv.Itoa(row.Partitions), strconv.Itoa(row.Replication))
	}
	if a.asJSON {
		return output.JSON(cmd.OutOrStdout(), list)
	}
	return table.Write(cmd.OutOrStdout())
}
