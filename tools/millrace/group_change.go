package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/tools/internal/cli"
	"millrace/tools/internal/client"
	"millrace/tools/internal/output"
)

// plannedOffset is an element of what 'group reset --json' writes.
type plannedOffset struct {
	Group     string `json:"group"`
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Before    *int64 `json:"before"` // null: no commit
	After     int64  `json:"after"`
}

// resetOptions is the command line of 'group reset'.
type resetOptions struct {
	admin
	topics    []string
	allTopics bool
	to, file  string
	execute   bool
}

func newGroupReset() *cobra.Command {
	o := &resetOptions{}
	cmd := &cobra.Command{
		Use:   "reset NAME",
		Short: "Move a group's offsets",
		Long: `Move the committed offsets of a group that has no members. Without --execute
it only shows the plan.

--to takes: earliest, latest, current (what is committed, put into the log's
bounds), an offset, +N or -N from what is committed, @TIME (RFC 3339 or ms), or an
age such as 1h30m or P1DT2H. What lies outside the log is put to its nearest end,
with a warning.

Columns: group, topic, partition, offset before ("-" if none), offset after.`,
		Example: `  millrace group reset billing --topic orders --to earliest
  millrace group reset billing --topic orders:0,1 --to -100 --execute
  millrace group reset billing --all-topics --to @2026-01-31T12:00:00Z --execute
  millrace group reset billing --from-file plan.csv --execute   # topic,partition,offset`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error { return o.run(cmd, names[0]) },
	}
	fs := cmd.Flags()
	fs.StringArrayVarP(&o.topics, "topic", "t", nil, "this topic, or topic:0,1,2 (repeatable)")
	fs.BoolVar(&o.allTopics, "all-topics", false, "all topics that the group has offsets of")
	fs.StringVar(&o.to, "to", "", "where to, see above")
	fs.StringVar(&o.file, "from-file", "", "a CSV file of topic,partition,offset instead of --to and --topic")
	fs.BoolVar(&o.execute, "execute", false, "do it")
	o.register(cmd)
	return cmd
}

func (o *resetOptions) run(cmd *cobra.Command, group string) error {
	to, err := parseReset(o.to, time.Now())
	switch {
	case (o.to == "") == (o.file == ""):
		return cli.Usagef("give either --to or --from-file")
	case o.file == "" && err != nil:
		return err
	case o.file == "" && o.allTopics == (len(o.topics) > 0):
		return cli.Usagef("give either --topic or --all-topics")
	case o.file != "":
		groups, err := fileResets(o.file, []string{group})
		if err != nil {
			return err
		}
		to = resetTo{kind: 'f', groups: groups}
	}
	return o.ask(cmd, func(ctx context.Context, cl *client.Admin) error {
		if err := client.NeedAPIs(ctx, cl, kmsg.OffsetFetch, kmsg.OffsetCommit); err != nil {
			return err
		}
		return o.reset(ctx, cmd, cl, group, to)
	})
}

func (o *resetOptions) reset(ctx context.Context, cmd *cobra.Command, cl *client.Admin, group string, to resetTo) error {
	views, err := describeGroups(ctx, cl, []string{group})
	if err != nil {
		return err
	}
	if state := views[group].state; state != "Empty" && state != "Dead" {
		return fmt.Errorf("group %q has members (%s); offsets can only be moved while it has none (NON_EMPTY_GROUP)", group, state)
	}
	commits, err := committedOffsets(ctx, cl, group)
	if err != nil {
		return err
	}
	where := sortedPartitions(commits)
	if len(o.topics) > 0 {
		if where, err = scopePartitions(ctx, cl, o.topics); err != nil {
			return err
		}
	}
	plan, err := to.plan(ctx, cl, group, where, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	list := []plannedOffset{}
	table := output.Table{Title: "plan, not done without --execute", Head: []string{"group", "topic", "partition", "before", "after"}, Numbers: []string{"partition", "before", "after"}}
	if o.execute {
		table.Title = "done"
	}
	for _, tp := range sortedPartitions(plan) {
		row := plannedOffset{Group: group, Topic: tp.Topic, Partition: tp.Partition, After: plan[tp]}
		if c, ok := commits[tp]; ok {
			row.Before = &c.At
		}
		list = append(list, row)
		table.Add(group, tp.Topic, strconv.Itoa(int(tp.Partition)), optional(row.Before), strconv.FormatInt(row.After, 10))
	}
	if o.execute {
		if err := commitOffsets(ctx, cl, group, plan); err != nil {
			return err
		}
	}
	return o.show(cmd, list, table)
}

// parseReset reads --to. now is what ages are counted from.
func parseReset(text string, now time.Time) (resetTo, error) {
	switch {
	case text == "":
		return resetTo{}, nil
	case text == "earliest" || text == "beginning":
		return resetTo{kind: 'e'}, nil
	case text == "latest" || text == "end":
		return resetTo{kind: 'l'}, nil
	case text == "current":
		return resetTo{kind: 'c'}, nil
	case text[0] == '@':
		at, err := parsePlace(text)
		return resetTo{kind: 't', n: at}, err
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		if text[0] == '+' || text[0] == '-' {
			return resetTo{kind: 's', n: n}, nil
		}
		return resetTo{kind: 'o', n: n}, nil
	}
	age, err := time.ParseDuration(text)
	if err != nil {
		age, err = parseISODuration(text)
	}
	if err != nil || age < 0 {
		return resetTo{}, cli.Usagef("--to %q is none of earliest, latest, current, an offset, +N, -N, @TIME, an age", text)
	}
	return resetTo{kind: 't', n: now.Add(-age).UnixMilli()}, nil
}

// changedGroup is an element of what 'group delete --json' writes.
type changedGroup struct {
	Group   string `json:"group"`
	Missing bool   `json:"missing,omitempty"`
	Error   string `json:"error,omitempty"`
}

func newGroupDelete() *cobra.Command {
	var a admin
	var ifExists bool
	cmd := &cobra.Command{
		Use:   "delete NAME...",
		Short: "Delete groups without members, and their offsets",
		Example: `  millrace group delete billing
  millrace group delete billing --if-exists      # exit status 0 either way`,
		Args: needGroups,
		RunE: func(cmd *cobra.Command, names []string) error {
			return a.ask(cmd, func(ctx context.Context, cl *client.Admin) error {
				if err := client.NeedAPIs(ctx, cl, kmsg.DeleteGroups); err != nil {
					return err
				}
				answers, err := cl.DeleteGroups(ctx, names...)
				if err != nil {
					return err
				}
				list, failed := []changedGroup{}, []error{}
				table := output.Table{Head: []string{"group", "result"}}
				for _, answer := range answers.Sorted() {
					row, result := changedGroup{Group: answer.Group}, "deleted"
					switch {
					case answer.Err == nil:
					case ifExists && errors.Is(answer.Err, kerr.GroupIDNotFound):
						row.Missing, result = true, "did not exist"
					default:
						err := groupRefusal(answer.Group, answer.Err)
						row.Error, result = err.Error(), "failed"
						failed = append(failed, err)
					}
					list = append(list, row)
					table.Add(row.Group, result)
				}
				return errors.Join(append([]error{a.show(cmd, list, table)}, failed...)...)
			})
		},
	}
	cmd.Flags().BoolVar(&ifExists, "if-exists", false, "a group that does not exist is no error")
	a.register(cmd)
	return cmd
}

// groupRefusal is a broker's no to one group.
func groupRefusal(group string, err error) error {
	switch {
	case errors.Is(err, kerr.GroupIDNotFound):
		return cli.NotFoundf("group %q does not exist", group)
	case errors.Is(err, kerr.NonEmptyGroup):
		return fmt.Errorf("group %q has members (NON_EMPTY_GROUP)", group)
	}
	return fmt.Errorf("group %q: %w", group, err)
}

// deletedGroupOffset is an element of what 'group delete-offsets --json' writes.
type deletedGroupOffset struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Error     string `json:"error,omitempty"`
}

func newGroupDeleteOffsets() *cobra.Command {
	var a admin
	var topics []string
	cmd := &cobra.Command{
		Use:     "delete-offsets NAME --topic TOPIC",
		Short:   "Delete a group's offsets of topics",
		Long:    "Delete a group's committed offsets of topics that it does not read at present.\n\nColumns: topic, partition, result.",
		Example: `  millrace group delete-offsets billing --topic old-orders`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			if len(topics) == 0 {
				return cli.Usagef("name at least one --topic")
			}
			return a.ask(cmd, func(ctx context.Context, cl *client.Admin) error {
				if err := client.NeedAPIs(ctx, cl, kmsg.OffsetDelete); err != nil {
					return err
				}
				deleted, err := deleteGroupOffsets(ctx, cl, names[0], topics)
				if err != nil {
					return groupRefusal(names[0], err)
				}
				list, failed := []deletedGroupOffset{}, []error{}
				table := output.Table{Head: []string{"topic", "partition", "result"}, Numbers: []string{"partition"}}
				for _, d := range deleted {
					row, result := deletedGroupOffset{Topic: d.Topic, Partition: d.Partition}, "deleted"
					if d.err != nil {
						row.Error, result = d.err.Error(), "failed"
						failed = append(failed, refusal(strings.TrimSuffix(d.dashed(), "--1"), d.err, ""))
					}
					list = append(list, row)
					table.Add(d.Topic, strconv.Itoa(int(d.Partition)), result)
				}
				return errors.Join(append([]error{a.show(cmd, list, table)}, failed...)...)
			})
		},
	}
	cmd.Flags().StringArrayVarP(&topics, "topic", "t", nil, "this topic, or topic:0,1,2 (repeatable)")
	a.register(cmd)
	return cmd
}
