package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/tools/internal/cli"
	"millrace/tools/internal/client"
	"millrace/tools/internal/output"
)

// alteredTopic is an element of what 'topic alter --json' writes.
type alteredTopic struct {
	Topic      string `json:"topic"`
	Partitions int32  `json:"partitions"`
}

func newTopicAlter() *cobra.Command {
	var a admin
	var partitions int32
	cmd := &cobra.Command{
		Use:   "alter NAME... --partitions N",
		Short: "Add partitions to topics",
		Long: `Add partitions to topics. Partitions cannot be taken away.

Records with a key go to another partition than before once there are more of
them. Settings are changed by 'millrace config alter'.`,
		Example: `  millrace topic alter logs --partitions 12`,
		Args:    needNames,
		RunE: func(cmd *cobra.Command, names []string) error {
			if partitions < 1 {
				return cli.Usagef("--partitions must be given, 1 or more")
			}
			return a.ask(cmd, func(ctx context.Context, cl *client.Admin) error {
				if err := client.NeedAPIs(ctx, cl, kmsg.CreatePartitions); err != nil {
					return err
				}
				topics, err := cl.ListTopicsWithInternal(ctx, names...)
				if err != nil {
					return err
				}
				list := []alteredTopic{}
				for _, name := range names {
					if err := topics[name].Err; err != nil {
						return refusal(name, err, "")
					}
					list = append(list, alteredTopic{name, partitions})
				}
				var refused *refusedError
				if err := addPartitions(ctx, cl, topics, partitions, nil); errors.As(err, &refused) {
					return refused
				} else if err != nil {
					return err
				}
				if a.asJSON {
					return output.JSON(cmd.OutOrStdout(), list)
				}
				for _, t := range list {
					fmt.Fprintf(cmd.OutOrStdout(), "altered: %s\n", t.Topic)
				}
				return nil
			})
		},
	}
	cmd.Flags().Int32VarP(&partitions, "partitions", "p", 0, "how many partitions the topics are to have")
	a.register(cmd)
	return cmd
}
