package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/tools/internal/cli"
	"millrace/tools/internal/client"
	"millrace/tools/internal/output"
)

func newGroup() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "group",
		Short: "List, describe, reset and delete consumer groups",
		Example: `  millrace group list
  millrace group describe billing
  millrace group lag billing --watch
  millrace group reset billing --topic orders --to earliest --execute`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newGroupList(), newGroupDescribe(), newGroupLag(), newGroupReset(), newGroupDelete(), newGroupDeleteOffsets())
	return cmd
}

// needGroups is a cobra.Args check: one group or more.
func needGroups(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return errors.New("name at least one group")
	}
	return nil
}

// listedGroup is an element of what 'group list --json' writes.
type listedGroup struct {
	Group       string `json:"group"`
	Type        string `json:"type"`
	State       string `json:"state"`
	Coordinator int32  `json:"coordinator"`
}

func newGroupList() *cobra.Command {
	var a admin
	var states, types []string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List consumer groups",
		Long:  "List consumer groups by name. Columns: group, state, type, coordinator.",
		Example: `  millrace group list
  millrace group list --state empty --json | jq -r '.[].group'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var ok bool
			if len(states) > 0 {
				if states, ok = choose(strings.Join(states, ","), groupStates); !ok {
					return cli.Usagef("--state must be among %s", strings.Join(groupStates, ", "))
				}
			}
			if len(types) > 0 {
				if types, ok = choose(strings.Join(types, ","), groupTypes); !ok {
					return cli.Usagef("--type must be classic or consumer")
				}
			}
			return a.ask(cmd, func(ctx context.Context, cl *client.Admin) error {
				groups, err := consumerGroups(ctx, cl, types, states)
				if err != nil {
					return err
				}
				list := []listedGroup{}
				table := output.Table{Head: []string{"group", "state", "type", "coordinator"}, Numbers: []string{"coordinator"}}
				for _, g := range groups {
					row := listedGroup{Group: g.Group, Type: strings.ToLower(capital(g.GroupType)), State: g.State, Coordinator: g.Coordinator}
					list = append(list, row)
					table.Add(row.Group, dash(row.State), row.Type, strconv.Itoa(int(row.Coordinator)))
				}
				return a.show(cmd, list, table)
			})
		},
	}
	cmd.Flags().StringSliceVar(&states, "state", nil, "only groups in these states (stable, empty …)")
	cmd.Flags().StringSliceVar(&types, "type", nil, "only groups of these types (classic, consumer)")
	a.register(cmd)
	return cmd
}

// describedGroup is an element of what 'group describe --json' writes.
type describedGroup struct {
	Group       string           `json:"group"`
	State       string           `json:"state"`
	Type        string           `json:"type"`
	Coordinator int32            `json:"coordinator"`
	Assignor    string           `json:"assignor,omitempty"`
	Epoch       *int32           `json:"epoch,omitempty"`
	Members     []memberOfGroup  `json:"members"`
	Partitions  []partitionOfLag `json:"partitions"`
	Topics      []lagOfTopic     `json:"topics"`
	Lag         int64            `json:"lag"` // of all partitions with a commit
}

type memberOfGroup struct {
	ID         string   `json:"id"`
	Instance   string   `json:"instance,omitempty"`
	Client     string   `json:"client"`
	Host       string   `json:"host"`
	Partitions []string `json:"partitions"` // topic-partition
}

type partitionOfLag struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Committed *int64 `json:"committed"` // null: no commit
	End       *int64 `json:"end"`       // null: not known
	Lag       *int64 `json:"lag"`       // null: no commit, or no end
	Beyond    bool   `json:"beyond_end,omitempty"`
	Member    string `json:"member,omitempty"`
	Client    string `json:"client,omitempty"`
	Host      string `json:"host,omitempty"`
}

type lagOfTopic struct {
	Topic      string `json:"topic"`
	Partitions int    `json:"partitions"`
	Lag        int64  `json:"lag"`
	Unread     int    `json:"without_commit,omitempty"` // partitions that no lag can be told of
}

func newGroupDescribe() *cobra.Command {
	var a admin
	var members bool
	cmd := &cobra.Command{
		Use:   "describe NAME...",
		Short: "Show offsets, lag and members of groups",
		Long: `Show every partition that a group has assigned or committed, also of groups
without members. "-" stands for no commit; a lag is never below 0.

Columns in a pipe: group, topic, partition, committed offset, end offset, lag,
member, host, client. With --members: group, member, instance, host, client,
count of partitions, partitions. --json has both, and totals by topic and group.`,
		Example: `  millrace group describe billing
  millrace group describe billing --members
  millrace group describe billing --json | jq '.[].lag'`,
		Args: needGroups,
		RunE: func(cmd *cobra.Command, names []string) error {
			return a.ask(cmd, func(ctx context.Context, cl *client.Admin) error {
				list, err := describedGroups(ctx, cl, names)
				if err != nil && len(list) == 0 {
					return err
				}
				return errors.Join(a.showGroups(cmd, list, members), err)
			})
		},
	}
	cmd.Flags().BoolVar(&members, "members", false, "show the members instead of the partitions")
	a.register(cmd)
	return cmd
}

// describedGroups gathers groups; those that do not exist are in the error.
func describedGroups(ctx context.Context, cl *client.Admin, names []string) (list []describedGroup, err error) {
	if err := client.NeedAPIs(ctx, cl, kmsg.OffsetFetch); err != nil {
		return nil, err
	}
	views, err := describeGroups(ctx, cl, names)
	if err != nil {
		return nil, err
	}
	var errs []error
	list = []describedGroup{}
	for _, name := range names {
		g := views[name]
		if g.state == "Dead" {
			errs = append(errs, cli.NotFoundf("group %q does not exist", name))
			continue
		}
		rows, err := groupRows(ctx, cl, g)
		if err != nil {
			return nil, err
		}
		list = append(list, describedOf(g, rows))
	}
	return list, errors.Join(errs...)
}

func describedOf(g groupView, rows []groupRow) describedGroup {
	d := describedGroup{
		Group: g.name, State: g.state, Type: g.kind, Coordinator: g.coordinator.NodeID, Assignor: g.assignor, Epoch: g.epoch,
		Members: []memberOfGroup{}, Partitions: []partitionOfLag{}, Topics: []lagOfTopic{},
	}
	for _, m := range g.members {
		row := memberOfGroup{ID: m.id, Instance: m.instance, Client: m.client, Host: m.host, Partitions: []string{}}
		for _, tp := range m.assigned {
			row.Partitions = append(row.Partitions, tp.dashed())
		}
		d.Members = append(d.Members, row)
	}
	slices.SortFunc(rows, func(a, b groupRow) int { return compareTopicPartition(a.topicPartition, b.topicPartition) })
	for _, r := range rows {
		row := partitionOfLag{Topic: r.Topic, Partition: r.Partition, Committed: r.committed, End: r.end, Lag: r.lag(), Beyond: r.beyondEnd()}
		if r.member != nil {
			row.Member, row.Client, row.Host = r.member.id, r.member.client, r.member.host
		}
		d.Partitions = append(d.Partitions, row)
		if n := len(d.Topics); n == 0 || d.Topics[n-1].Topic != r.Topic {
			d.Topics = append(d.Topics, lagOfTopic{Topic: r.Topic})
		}
		t := &d.Topics[len(d.Topics)-1]
		t.Partitions++
		if row.Lag == nil {
			t.Unread++
			continue
		}
		t.Lag += *row.Lag
		d.Lag += *row.Lag
	}
	return d
}

func (a *admin) showGroups(cmd *cobra.Command, list []describedGroup, members bool) error {
	if a.asJSON {
		return output.JSON(cmd.OutOrStdout(), list)
	}
	people := output.IsTerminal(cmd.OutOrStdout())
	for _, g := range list {
		for _, p := range g.Partitions {
			if p.Beyond {
				fmt.Fprintf(cmd.ErrOrStderr(), "warning: group %q committed offset %d of %s-%d, which ends at %d\n", g.Group, *p.Committed, p.Topic, p.Partition, *p.End)
			}
		}
		table := lagTable(g, people)
		if members {
			table = memberTable(g, people)
		}
		if err := table.Write(cmd.OutOrStdout()); err != nil {
			return err
		}
	}
	return nil
}

// title is the state of a group in one line, for people.
func (g describedGroup) title() string {
	return fmt.Sprintf("%s  (%s, %s, %d members, lag %d)", g.Group, strings.ToLower(g.State), g.Type, len(g.Members), g.Lag)
}

// lagTable has the group in the title for people and as a column for scripts, and ends
// with totals for people where there are several topics.
func lagTable(g describedGroup, people bool) output.Table {
	table := output.Table{
		Title:   g.title(),
		Head:    []string{"topic", "partition", "committed", "end", "lag", "member", "host", "client"},
		Numbers: []string{"partition", "committed", "end", "lag"},
	}
	for _, p := range g.Partitions {
		row := []string{p.Topic, strconv.Itoa(int(p.Partition)), optional(p.Committed), optional(p.End), optional(p.Lag), dash(p.Member), dash(p.Host), dash(p.Client)}
		if !people {
			row = append([]string{g.Group}, row...)
		}
		table.Add(row...)
	}
	if people && len(g.Partitions) > 1 {
		for _, t := range g.Topics {
			table.Add(t.Topic, "all", "", "", strconv.FormatInt(t.Lag, 10), "", "", "")
		}
	}
	return table
}

func memberTable(g describedGroup, people bool) output.Table {
	table := output.Table{
		Title:   g.title(),
		Head:    []string{"member", "instance", "host", "client", "count", "partitions"},
		Numbers: []string{"count"},
	}
	for _, m := range g.Members {
		row := []string{m.ID, dash(m.Instance), m.Host, m.Client, strconv.Itoa(len(m.Partitions)), dash(strings.Join(m.Partitions, ","))}
		if !people {
			row = append([]string{g.Group}, row...)
		}
		table.Add(row...)
	}
	return table
}
