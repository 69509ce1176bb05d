package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"millrace/tools/internal/cli"
	"millrace/tools/internal/output"
)

// createdTopic is an element of what 'topic create --json' writes.
type createdTopic struct {
	Topic      string `json:"topic"`
	ID         string `json:"id,omitempty"`
	Partitions int32  `json:"partitions,omitempty"`
	Existed    bool   `json:"existed,omitempty"`
	Error      string `json:"error,omitempty"`
}

func newTopicCreate() *cobra.Command {
	var a admin
	var partitions int32
	var replication int16
	var configs []string
	var ifNotExists bool
	cmd := &cobra.Command{
		Use:   "create NAME...",
		Short: "Create topics",
		Long: `Create topics, and wait until they can be used.

Without --partitions and --replication-factor the broker's defaults count
(num.partitions, default.replication.factor).`,
		Example: `  millrace topic create logs
  millrace topic create orders --partitions 12 --config cleanup.policy=compact
  millrace topic create logs --if-not-exists       # exit status 0 either way`,
		Args: needNames,
		RunE: func(cmd *cobra.Command, names []string) error {
			values, err := parseConfigs(configs)
			if err != nil {
				return err
			}
			flags := cmd.Flags()
			if flags.Changed("partitions") && partitions < 1 || flags.Changed("replication-factor") && replication < 1 {
				return cli.Usagef("--partitions and --replication-factor must be 1 or more")
			}
			return a.with(cmd, func(ctx context.Context, cl *kadm.Client) error {
				answers, err := cl.CreateTopics(ctx, partitions, replication, values, names...)
				if err != nil {
					return err
				}
				return a.created(ctx, cmd, cl, answers, ifNotExists)
			})
		},
	}
	cmd.Flags().Int32VarP(&partitions, "partitions", "p", -1, "how many partitions (default: the broker's)")
	cmd.Flags().Int16VarP(&replication, "replication-factor", "r", -1, "how many copies (default: the broker's)")
	cmd.Flags().StringArrayVarP(&configs, "config", "c", nil, "a topic setting, key=value (repeatable)")
	cmd.Flags().BoolVar(&ifNotExists, "if-not-exists", false, "a topic that exists already is no error")
	a.register(cmd)
	return cmd
}

func (a *admin) created(ctx context.Context, cmd *cobra.Command, cl *kadm.Client, answers kadm.CreateTopicResponses, ifNotExists bool) error {
	var errs []error
	list := []createdTopic{}
	for _, answer := range answers.Sorted() {
		row := createdTopic{Topic: answer.Topic, Partitions: max(answer.NumPartitions, 0)}
		switch {
		case answer.Err == nil:
			row.ID = idText(answer.ID)
			if err := awaitTopic(ctx, cl, answer.Topic); err != nil {
				errs = append(errs, err)
			}
		case ifNotExists && errors.Is(answer.Err, kerr.TopicAlreadyExists):
			row.Existed = true
		default:
			err := refusal(answer.Topic, answer.Err, answer.ErrMessage)
			row.Error = err.Error()
			errs = append(errs, err)
		}
		list = append(list, row)
		if !a.asJSON && row.Error == "" {
			fmt.Fprintln(cmd.OutOrStdout(), createdLine(row))
		}
	}
	if a.asJSON {
		if err := output.JSON(cmd.OutOrStdout(), list); err != nil {
			return err
		}
	}
	return errors.Join(errs...)
}

func createdLine(t createdTopic) string {
	if t.Existed {
		return fmt.Sprintf("exists already: %s", t.Topic)
	}
	return fmt.Sprintf("created: %s", t.Topic)
}

// awaitPoll is how often a new topic is looked for.
const awaitPoll = 50 * time.Millisecond

// awaitTopic waits until every partition has a leader: in a cluster the answer to
// a creation comes before all brokers know of it.
func awaitTopic(ctx context.Context, cl *kadm.Client, name string) error {
	for {
		if topics, err := cl.ListTopicsWithInternal(ctx, name); err == nil {
			if topic := topics[name]; topic.Err == nil && len(topic.Partitions) > 0 && allLed(topic.Partitions) {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return cli.Unreachablef("topic %q was created but has no leader yet", name)
		case <-time.After(awaitPoll):
		}
	}
}

func allLed(partitions kadm.PartitionDetails) bool {
	for _, p := range partitions {
		if p.Err != nil || p.Leader < 0 {
			return false
		}
	}
	return true
}
