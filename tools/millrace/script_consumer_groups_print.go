package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/tools/internal/client"
	"millrace/tools/internal/script"
)

func (s *groupsScript) describe(ctx context.Context, cl *client.Admin, out, errs io.Writer) error {
	names, err := s.scope(ctx, cl)
	if err != nil {
		return err
	}
	views, err := describeGroups(ctx, cl, names)
	if err != nil {
		return err
	}
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	for _, name := range names {
		// Kafka's own client fails for a group that does not exist, and its script
		// says so and does nothing.
		if views[name].state == "Dead" {
			return &refusedError{javaError(kerr.GroupIDNotFound, fmt.Sprintf("Group %s not found.", name)), kerr.GroupIDNotFound}
		}
	}
	for _, name := range names {
		g := views[name]
		switch {
		case s.members:
			s.printMembers(out, errs, g)
		case s.state.Given:
			s.printState(out, errs, g)
		default:
			rows, err := groupRows(ctx, cl, g)
			if err != nil {
				return err
			}
			s.printOffsets(out, errs, g, rows)
		}
	}
	return nil
}

// tellState says what stands in the way of a full table, and whether there is one.
func tellState(out, errs io.Writer, g groupView, rows int) bool {
	switch g.state {
	case "Empty":
		fmt.Fprintf(errs, "\nConsumer group '%s' has no active members.\n", g.name)
	case "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling":
		fmt.Fprintf(errs, "\nWarning: Consumer group '%s' is rebalancing.\n", g.name)
	case "Stable":
	default:
		groupError(out, fmt.Sprintf("Executing consumer group command failed due to Expected a valid consumer group state, but found '%s'.", g.state))
		return false
	}
	return rows > 0
}

func number32(n *int32) string {
	if n == nil {
		return "-"
	}
	return strconv.Itoa(int(*n))
}

func (s *groupsScript) printOffsets(out, errs io.Writer, g groupView, rows []groupRow) {
	if !tellState(out, errs, g, len(rows)) {
		return
	}
	table := [][]string{{"GROUP", "TOPIC", "PARTITION", "LEADER-EPOCH", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID"}}
	for _, r := range rows {
		if r.beyondEnd() {
			fmt.Fprintf(errs, "Warning: Consumer group '%s' committed offset %d of %s, which ends at %d.\n", g.name, *r.committed, r.dashed(), *r.end)
		}
		m := groupMember{id: "-", host: "-", client: "-"}
		if r.member != nil {
			m = *r.member
		}
		table = append(table, []string{
			g.name, r.Topic, strconv.Itoa(int(r.Partition)), number32(r.epoch),
			optional(r.committed), optional(r.end), optional(r.lag()), m.id, m.host, m.client,
		})
	}
	widths := []int{15, 15, 10, 15, 15, 15, 15, 15, 15}
	for _, row := range table[1:] {
		for _, i := range []int{0, 1, 7, 8} {
			widths[i] = max(widths[i], len(row[i]))
		}
	}
	for _, row := range table {
		if !s.verbose {
			row = slices.Delete(slices.Clone(row), 3, 4)
		}
		fmt.Fprint(out, "\n")
		for i, cell := range row[:len(row)-1] {
			at := i
			if !s.verbose && i >= 3 {
				at++
			}
			fmt.Fprintf(out, "%-*s ", widths[at], cell)
		}
		fmt.Fprint(out, row[len(row)-1])
	}
	fmt.Fprintln(out)
}

func (s *groupsScript) printMembers(out, errs io.Writer, g groupView) {
	shown := tellState(out, errs, g, len(g.members))
	widths := []int{15, 15, 17, 15, 15}
	current, target := 20, 20
	instances, classic, upgraded := false, false, false
	if shown {
		for _, m := range g.members {
			for i, cell := range []string{g.name, m.id, m.instance, m.host, m.client} {
				widths[i] = max(widths[i], len(cell))
			}
			current, target = max(current, len(assignmentText(m.assigned))), max(target, len(assignmentText(m.target)))
			instances = instances || m.instance != ""
			classic = classic || m.upgraded != nil && !*m.upgraded
			upgraded = upgraded || m.upgraded != nil && *m.upgraded
		}
	}
	line := func(group, id, instance, host, client, count string, more ...string) {
		fmt.Fprintf(out, "%-*s %-*s ", widths[0], group, widths[1], id)
		if instances {
			fmt.Fprintf(out, "%-*s ", widths[2], instance)
		}
		fmt.Fprintf(out, "%-*s %-*s %-15s ", widths[3], host, widths[4], client, count)
		if s.verbose {
			fmt.Fprintf(out, "%-15s %-*s %-15s %-*s", more[0], current, more[1], more[2], target, more[3])
			if classic && upgraded {
				fmt.Fprintf(out, " %s", more[4])
			}
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintln(out)
	line("GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID", "#PARTITIONS", "CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT", "UPGRADED")
	for _, m := range g.members {
		up := "-"
		if m.upgraded != nil {
			up = strconv.FormatBool(*m.upgraded)
		}
		line(g.name, m.id, m.instance, m.host, m.client, strconv.Itoa(len(m.assigned)),
			number32(m.epoch), assignmentText(m.assigned), number32(g.targetEpoch), assignmentText(m.target), up)
	}
}

func (s *groupsScript) printState(out, errs io.Writer, g groupView) {
	if !tellState(out, errs, g, 1) {
		return
	}
	coordinator := fmt.Sprintf("%s:%d  (%d)", g.coordinator.Host, g.coordinator.Port, g.coordinator.NodeID)
	width, strategy := max(25, len(coordinator)), g.assignor
	if strategy == "" {
		strategy = "-"
	}
	line := func(group, coordinator, strategy, state, epoch, target, members string) {
		fmt.Fprintf(out, "\n%-*s %-*s %-20s %-20s ", max(15, len(g.name)), group, width, coordinator, strategy, state)
		if s.verbose {
			fmt.Fprintf(out, "%-15s %-25s ", epoch, target)
		}
		fmt.Fprint(out, members)
	}
	line("GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH", "#MEMBERS")
	line(g.name, coordinator, strategy, g.state, number32(g.epoch), number32(g.targetEpoch), strconv.Itoa(len(g.members)))
	fmt.Fprintln(out)
}

// deletedOffset is what became of one partition of --delete-offsets; partition -1 is a
// topic that does not exist.
type deletedOffset struct {
	topicPartition
	err error
}

func (s *groupsScript) deleteOffsets(ctx context.Context, cl *client.Admin, out io.Writer) error {
	if err := client.NeedAPIs(ctx, cl, kmsg.OffsetDelete); err != nil {
		return err
	}
	group := s.groups[0]
	list, err := deleteGroupOffsets(ctx, cl, group, s.topics)
	var usage *script.UsageError
	if errors.As(err, &usage) || script.Unreachable(err) {
		return err
	}
	partial := slices.ContainsFunc(list, func(d deletedOffset) bool { return d.err != nil && d.Partition >= 0 })
	switch {
	case err != nil:
		groupError(out, script.Say(err, ""))
		for i := range list {
			list[i].err = err
		}
	case partial:
		groupError(out, "Encountered some partition-level error, see the follow-up details.")
	default:
		fmt.Fprintf(out, "Request succeeded for deleting offsets from group %s.\n", group)
	}
	width := 15
	for _, d := range list {
		width = max(width, len(d.Topic))
	}
	fmt.Fprintf(out, "\n%-*s %-10s %-15s", width, "TOPIC", "PARTITION", "STATUS")
	for _, d := range list {
		status, number := "Successful", strconv.Itoa(int(d.Partition))
		if d.err != nil {
			status = "Error: " + javaError(d.err, "")
		}
		if d.Partition < 0 {
			number = "-"
		}
		fmt.Fprintf(out, "\n%-*s %-10s %-15s", width, d.Topic, number, status)
	}
	fmt.Fprintln(out)
	return nil
}

// deleteGroupOffsets deletes what a group has committed for topic or topic:0,1 each.
func deleteGroupOffsets(ctx context.Context, cl *client.Admin, group string, topics []string) (list []deletedOffset, err error) {
	set := kadm.TopicsSet{}
	for _, arg := range topics {
		topic, numbers, err := parseTopicScope(arg)
		if err != nil {
			return nil, err
		}
		if numbers == nil {
			details, err := cl.ListTopicsWithInternal(ctx, topic)
			if err != nil {
				return nil, err
			}
			if details[topic].Err != nil || len(details[topic].Partitions) == 0 {
				list = append(list, deletedOffset{topicPartition{topic, -1}, kerr.UnknownTopicOrPartition})
				continue
			}
			numbers = details[topic].Partitions.Numbers()
		}
		set.Add(topic, numbers...)
	}
	for _, tp := range setList(set) {
		list = append(list, deletedOffset{tp, nil})
	}
	slices.SortStableFunc(list, func(a, b deletedOffset) int { return compareTopicPartition(a.topicPartition, b.topicPartition) })
	if len(set) == 0 {
		return list, nil
	}
	answers, err := cl.DeleteOffsets(ctx, group, set)
	if err != nil {
		return list, err
	}
	for i := range list {
		if failed, ok := answers.Lookup(list[i].Topic, list[i].Partition); ok {
			list[i].err = failed
		}
	}
	return list, nil
}

// javaError is an error as Java prints it, class and message, for the places where
// Kafka's script does, and where scripts look for the class.
func javaError(err error, message string) string {
	var code *kerr.Error
	if !errors.As(err, &code) {
		return err.Error()
	}
	var class strings.Builder
	for _, word := range strings.Split(code.Message, "_") {
		switch word {
		case "ID":
			class.WriteString("Id")
		default:
			class.WriteString(word[:1] + strings.ToLower(word[1:]))
		}
	}
	name := class.String()
	if known, ok := map[string]string{"NonEmptyGroup": "GroupNotEmpty"}[name]; ok {
		name = known
	}
	return "org.apache.kafka.common.errors." + name + "Exception: " + script.Say(err, message)
}
