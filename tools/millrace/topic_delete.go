package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"millrace/tools/internal/output"
)

// deletedTopic is an element of what 'topic delete --json' writes.
type deletedTopic struct {
	Topic   string `json:"topic"`
	Missing bool   `json:"missing,omitempty"`
	Error   string `json:"error,omitempty"`
}

func newTopicDelete() *cobra.Command {
	var a admin
	var ifExists bool
	cmd := &cobra.Command{
		Use:   "delete NAME...",
		Short: "Delete topics and all their records",
		Example: `  millrace topic delete logs
  millrace topic delete logs --if-exists      # exit status 0 either way`,
		Args: needNames,
		RunE: func(cmd *cobra.Command, names []string) error {
			return a.with(cmd, func(ctx context.Context, cl *kadm.Client) error {
				answers, err := cl.DeleteTopics(ctx, names...)
				if err != nil {
					return err
				}
				return a.deleted(cmd, answers, ifExists)
			})
		},
	}
	cmd.Flags().BoolVar(&ifExists, "if-exists", false, "a topic that does not exist is no error")
	a.register(cmd)
	return cmd
}

func (a *admin) deleted(cmd *cobra.Command, answers kadm.DeleteTopicResponses, ifExists bool) error {
	var errs []error
	list := []deletedTopic{}
	for _, answer := range answers.Sorted() {
		row := deletedTopic{Topic: answer.Topic}
		switch {
		case answer.Err == nil:
		case ifExists && errors.Is(answer.Err, kerr.UnknownTopicOrPartition):
			row.Missing = true
		default:
			err := refusal(answer.Topic, answer.Err, answer.ErrMessage)
			row.Error = err.Error()
			errs = append(errs, err)
		}
		list = append(list, row)
		if !a.asJSON && row.Error == "" {
			what := "deleted"
			if row.Missing {
				what = "did not exist"
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", what, row.Topic)
		}
	}
	if a.asJSON {
		if err := output.JSON(cmd.OutOrStdout(), list); err != nil {
			return err
		}
	}
	return errors.Join(errs...)
}
