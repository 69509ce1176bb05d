package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"millrace/tools/internal/cli"
	"millrace/tools/internal/client"
	"millrace/tools/internal/output"
)

func newTopic() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "topic",
		Short: "Create, list, describe, change and delete topics",
		Example: `  millrace topic create logs --partitions 3 --config retention.ms=3600000
  millrace topic list
  millrace topic describe logs
  millrace topic delete logs`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newTopicCreate(), newTopicList(), newTopicDescribe(), newTopicAlter(), newTopicOffsets(), newTopicTrim(), newTopicDelete())
	return cmd
}

// requestTimeout bounds one command that asks and answers.
const requestTimeout = 30 * time.Second

// admin is the part that all topic commands share.
type admin struct {
	connection client.Flags
	asJSON     bool
}

func (a *admin) register(cmd *cobra.Command) {
	cmd.Flags().SortFlags = false
	a.connection.Register(cmd.Flags(), "", "")
	cmd.Flags().BoolVar(&a.asJSON, "json", false, "print JSON")
}

// with runs f with a connected client, within requestTimeout.
func (a *admin) with(cmd *cobra.Command, f func(ctx context.Context, cl *kadm.Client) error) error {
	s, err := a.connection.Settings(client.ForBoth, nil, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), requestTimeout)
	defer cancel()
	cl, err := s.Connect(ctx, s.Common())
	if err != nil {
		return err
	}
	defer cl.Close()
	return f(ctx, kadm.NewClient(cl))
}

// ask is with for acts that need more than kadm has.
func (a *admin) ask(cmd *cobra.Command, f func(ctx context.Context, cl *client.Admin) error) error {
	s, err := a.connection.Settings(client.ForBoth, nil, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), requestTimeout)
	defer cancel()
	cl, err := s.Connect(ctx, s.Common())
	if err != nil {
		return err
	}
	defer cl.Close()
	return f(ctx, client.NewAdmin(cl))
}

// show writes rows as a table, or what stands for them as JSON.
func (a *admin) show(cmd *cobra.Command, asJSON any, table output.Table) error {
	if a.asJSON {
		return output.JSON(cmd.OutOrStdout(), asJSON)
	}
	return table.Write(cmd.OutOrStdout())
}

// needNames is a cobra.Args check: one topic or more.
func needNames(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return errors.New("name at least one topic")
	}
	return nil
}

// oneTopic is the topic of produce and consume: an argument, or --topic as in
// Kafka's own commands.
func oneTopic(flag string, args []string) (string, error) {
	names := args
	if flag != "" {
		names = append([]string{flag}, args...)
	}
	if len(names) != 1 {
		return "", cli.Usagef("name one topic, as an argument or with --topic")
	}
	return names[0], nil
}

// refusal is a broker's no to one topic: its own words if it said any, and the
// code by its name.
func refusal(topic string, err error, message string) error {
	var code *kerr.Error
	switch {
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return cli.NotFoundf("topic %q does not exist", topic)
	case errors.Is(err, kerr.TopicAlreadyExists):
		return cli.NotFoundf("topic %q exists already", topic)
	case message != "" && errors.As(err, &code):
		return fmt.Errorf("topic %q: %s (%s)", topic, strings.TrimSuffix(message, "."), code.Message)
	}
	return fmt.Errorf("topic %q: %w", topic, err)
}

// idText writes a topic id as Kafka does: base64 for addresses, without padding.
func idText(id kadm.TopicID) string { return base64.RawURLEncoding.EncodeToString(id[:]) }

// parseConfigs reads key=value pairs; "key=" gives an empty value.
func parseConfigs(pairs []string) (map[string]*string, error) {
	out := map[string]*string{}
	for _, pair := range pairs {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return nil, cli.Usagef("--config %q is not of the form key=value", pair)
		}
		out[key] = &value
	}
	return out, nil
}
