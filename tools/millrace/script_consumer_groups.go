package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/tools/internal/client"
	"millrace/tools/internal/script"
)

// groupsScript is kafka-consumer-groups.sh.
type groupsScript struct {
	connection script.Connection

	groups, topics       []string
	allGroups, allTopics bool
	state, kind          script.Maybe
	members, offsets     bool
	verbose              bool
	timeout              script.Whole
	regex                string

	dryRun, execute, export       bool
	toOffset, shiftBy             script.Whole
	fromFile, toDatetime          string
	byDuration                    string
	toEarliest, toLatest, current bool
}

var groupActions = []string{"list", "describe", "delete", "reset-offsets", "delete-offsets", "validate-regex"}

// resetWays are the options that say where --reset-offsets goes.
var resetWays = []string{"to-offset", "shift-by", "to-datetime", "by-duration", "to-earliest", "to-latest", "to-current", "from-file"}

func newGroupsScript() *cobra.Command {
	s := &groupsScript{}
	cmd := &cobra.Command{
		Use:   "kafka-consumer-groups.sh",
		Short: "This tool helps to list all consumer groups, describe a consumer group, delete consumer group info, or reset consumer group offsets.",
		RunE:  func(cmd *cobra.Command, _ []string) error { return s.run(cmd) },
	}
	fs := cmd.Flags()
	s.connection.Register(fs)
	fs.Bool("list", false, "list groups")
	fs.Bool("describe", false, "describe groups: offsets and lag, or what --members or --state asks for")
	fs.Bool("delete", false, "delete groups")
	fs.Bool("reset-offsets", false, "move the offsets of groups without members; only a plan without --execute")
	fs.Bool("delete-offsets", false, "delete a group's offsets of topics")
	fs.StringVar(&s.regex, "validate-regex", "", "say whether this regular expression is valid (RE2)")
	fs.StringArrayVar(&s.groups, "group", nil, "the group (repeatable)")
	fs.BoolVar(&s.allGroups, "all-groups", false, "all groups")
	fs.StringArrayVar(&s.topics, "topic", nil, "the topic, or topic:0,1,2 (repeatable)")
	fs.BoolVar(&s.allTopics, "all-topics", false, "with --reset-offsets: all topics that the group has offsets of")
	fs.BoolVar(&s.members, "members", false, "with --describe: the members")
	fs.BoolVar(&s.offsets, "offsets", false, "with --describe: offsets and lag (the default)")
	s.state.Register(fs, "state", "with --describe: the state; with --list: show it, or only groups in these states (stable,empty)")
	s.kind.Register(fs, "type", "with --list: show the type, or only groups of these types (classic,consumer)")
	fs.BoolVar(&s.verbose, "verbose", false, "with --describe: more columns")
	s.timeout.Register(fs, 64, "timeout", "ms that an answer is waited for (default 30000)")
	fs.BoolVar(&s.dryRun, "dry-run", false, "only show what would be done (the default)")
	fs.BoolVar(&s.execute, "execute", false, "do it")
	fs.BoolVar(&s.export, "export", false, "print the plan as CSV")
	s.toOffset.Register(fs, 64, "to-offset", "to this offset")
	s.shiftBy.Register(fs, 64, "shift-by", "by so many offsets, forward or (negative) back")
	fs.StringVar(&s.toDatetime, "to-datetime", "", "to the first record of this time or later, YYYY-MM-DDThh:mm:ss.sss, UTC if no zone follows")
	fs.StringVar(&s.byDuration, "by-duration", "", "to the first record that is not older, PnDTnHnMnS")
	fs.BoolVar(&s.toEarliest, "to-earliest", false, "to the first record")
	fs.BoolVar(&s.toLatest, "to-latest", false, "to the end")
	fs.BoolVar(&s.current, "to-current", false, "to where the group is")
	fs.StringVar(&s.fromFile, "from-file", "", "to what this CSV file says, see --export")
	return cmd
}

func (s *groupsScript) run(cmd *cobra.Command) error {
	action, err := s.check(cmd)
	if err != nil {
		return err
	}
	out, errs := cmd.OutOrStdout(), cmd.ErrOrStderr()
	if action == "validate-regex" {
		return validateRegex(out, s.regex)
	}
	err = s.connection.Admin(cmd, func(ctx context.Context, cl *client.Admin) error {
		if s.timeout.Given {
			limited, cancel := context.WithTimeout(ctx, time.Duration(s.timeout.Value)*time.Millisecond)
			defer cancel()
			ctx = limited
		}
		switch action {
		case "list":
			return s.list(ctx, cl, out)
		case "describe":
			return s.describe(ctx, cl, out, errs)
		case "delete":
			return s.delete(ctx, cl, out)
		case "delete-offsets":
			return s.deleteOffsets(ctx, cl, out)
		}
		return s.reset(ctx, cl, out, errs)
	})
	var usage *script.UsageError
	if err == nil || errors.As(err, &usage) {
		return err
	}
	// Kafka's script says so on standard output, and ends with exit status 0.
	groupError(out, "Executing consumer group command failed due to "+s.because(err))
	return nil
}

// because is the reason as a sentence; a missing API is named.
func (s *groupsScript) because(err error) string {
	var refused *refusedError
	if errors.As(err, &refused) {
		return refused.say
	}
	return script.Say(err, "")
}

func groupError(out io.Writer, say string) { fmt.Fprintf(out, "\nError: %s\n", say) }

func validateRegex(out io.Writer, regex string) error {
	var bad *syntax.Error
	_, err := regexp.Compile(regex)
	switch {
	case errors.As(err, &bad):
		fmt.Fprintf(out, "The regular expression `%s` is invalid: %s.\n", regex, bad.Code)
	default:
		fmt.Fprintf(out, "The regular expression `%s` is valid.\n", regex)
	}
	return nil
}

// check refuses what Kafka's script refuses before it connects.
func (s *groupsScript) check(cmd *cobra.Command) (action string, err error) {
	fs := cmd.Flags()
	if !fs.Changed("validate-regex") {
		if err := script.Require(fs, "bootstrap-server"); err != nil {
			return "", err
		}
	}
	if err := s.checkScope(fs.Changed); err != nil {
		return "", err
	}
	actions := script.Given(fs, groupActions...)
	if len(actions) != 1 {
		return "", script.Usagef("Command must include exactly one action: --list, --describe, --delete, --reset-offsets, --delete-offsets, --validate-regex")
	}
	action = actions[0]
	for _, o := range []struct {
		option  string
		actions []string
	}{
		{"members", []string{"describe"}}, {"offsets", []string{"describe"}}, {"verbose", []string{"describe"}},
		{"state", []string{"describe", "list"}}, {"type", []string{"list"}},
	} {
		if fs.Changed(o.option) && !slices.Contains(o.actions, action) {
			return "", script.Usagef("Option(s) [%s] are unavailable given other options on the command line", o.option)
		}
	}
	if action == "reset-offsets" {
		if !s.dryRun && !s.execute {
			fmt.Fprintln(cmd.ErrOrStderr(), "WARN: No action will be performed as the --execute option is missing. In version 5.0, this command will require either --dry-run or --execute to be specified. You should add the --dry-run option explicitly if you are scripting this command and want to keep the current default behavior without prompting.")
		}
	}
	return action, nil
}

func (s *groupsScript) checkScope(given func(string) bool) error {
	scoped := len(s.groups) > 0 || s.allGroups
	switch {
	case given("describe") && !scoped:
		return script.Usagef("Option [describe] takes one of these options: [all-groups], [group]")
	case given("describe") && countTrue(s.members, s.offsets, s.state.Given) > 1:
		return script.Usagef("Option [describe] takes at most one of these options: [members], [offsets], [state]")
	case given("describe") && s.state.Value != "":
		return script.Usagef("Option [describe] does not take a value for [state]")
	case given("delete") && !scoped:
		return script.Usagef("Option [delete] takes one of these options: [all-groups], [group]")
	case given("delete") && len(s.topics) > 0:
		return script.Usagef("The consumer does not support topic-specific offset deletion from a consumer group.")
	case given("delete-offsets") && (len(s.groups) == 0 || len(s.topics) == 0):
		return script.Usagef("Option [delete-offsets] takes the following options: [group], [topic]")
	case len(s.groups) > 0 && s.allGroups:
		return script.Usagef("Option \"[group]\" can't be used with option \"[all-groups]\"")
	}
	if !given("reset-offsets") {
		return nil
	}
	var ways []string
	for _, way := range resetWays {
		if given(way) {
			ways = append(ways, way)
		}
	}
	switch {
	case s.dryRun && s.execute:
		return script.Usagef("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
	case !scoped:
		return script.Usagef("Option [reset-offsets] takes one of these options: [all-groups], [group]")
	case len(ways) > 1:
		return script.Usagef("Option \"[%s]\" can't be used with option \"[%s]\"", ways[0], ways[1])
	}
	return nil
}

func countTrue(list ...bool) (n int) {
	for _, b := range list {
		if b {
			n++
		}
	}
	return n
}

// scope names the groups that the command is about.
func (s *groupsScript) scope(ctx context.Context, cl *client.Admin) ([]string, error) {
	if !s.allGroups {
		return s.groups, nil
	}
	listed, err := consumerGroups(ctx, cl, nil, nil)
	var names []string
	for _, g := range listed {
		names = append(names, g.Group)
	}
	return names, err
}

// Kafka's names of states and types, as they may be given and as they are shown.
var (
	groupStates = []string{"PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty", "Assigning", "Reconciling"}
	groupTypes  = []string{"Consumer", "Classic"}
)

// choose reads a list of names from the command line, in any case, blanks between.
func choose(list string, names []string) (out []string, ok bool) {
	for _, item := range strings.Split(list, ",") {
		i := slices.IndexFunc(names, func(name string) bool {
			return strings.EqualFold(strings.ReplaceAll(strings.TrimSpace(item), "_", ""), name)
		})
		if i < 0 {
			return nil, false
		}
		out = append(out, names[i])
	}
	return out, true
}

func (s *groupsScript) list(ctx context.Context, cl *client.Admin, out io.Writer) error {
	var states, types []string
	ok := true
	if s.state.Value != "" {
		if states, ok = choose(s.state.Value, groupStates); !ok {
			return script.Usagef("Invalid state list '%s'. Valid states are: %s", s.state.Value, strings.Join(groupStates, ", "))
		}
	}
	if s.kind.Value != "" {
		if types, ok = choose(s.kind.Value, groupTypes); !ok {
			return script.Usagef("Invalid types list '%s'. Valid types are: %s", s.kind.Value, strings.Join(groupTypes, ", "))
		}
	}
	groups, err := consumerGroups(ctx, cl, types, states)
	if err != nil {
		return err
	}
	if !s.state.Given && !s.kind.Given {
		for _, g := range groups {
			fmt.Fprintln(out, g.Group)
		}
		return nil
	}
	width := 15
	for _, g := range groups {
		width = max(width, len(g.Group))
	}
	line := func(group, kind, state string) {
		fmt.Fprintf(out, "%-*s", width+10, group)
		if s.kind.Given {
			fmt.Fprintf(out, " %-20s", kind)
		}
		if s.state.Given {
			fmt.Fprintf(out, " %-20s", state)
		}
		fmt.Fprintln(out)
	}
	line("GROUP", "TYPE", "STATE")
	for _, g := range groups {
		line(g.Group, capital(g.GroupType), g.State)
	}
	return nil
}

// capital is how Kafka shows a type; brokers before 3.7 tell none.
func capital(kind string) string {
	if kind == "" {
		return "Unknown"
	}
	return strings.ToUpper(kind[:1]) + kind[1:]
}

func (s *groupsScript) delete(ctx context.Context, cl *client.Admin, out io.Writer) error {
	names, err := s.scope(ctx, cl)
	if err != nil {
		return err
	}
	if err := client.NeedAPIs(ctx, cl, kmsg.DeleteGroups); err != nil {
		return err
	}
	answers, err := cl.DeleteGroups(ctx, names...)
	if err != nil {
		return err
	}
	var done, failed []string
	for _, a := range answers.Sorted() {
		if a.Err != nil {
			failed = append(failed, fmt.Sprintf("* Group '%s' could not be deleted due to: %s", a.Group, javaError(a.Err, a.ErrMessage)))
		} else {
			done = append(done, "'"+a.Group+"'")
		}
	}
	if len(failed) == 0 {
		fmt.Fprintf(out, "Deletion of requested consumer groups (%s) was successful.\n", strings.Join(done, ", "))
		return nil
	}
	groupError(out, "Deletion of some consumer groups failed:")
	fmt.Fprintln(out, strings.Join(failed, "\n"))
	if len(done) > 0 {
		fmt.Fprintf(out, "\nThese consumer groups were deleted successfully: %s\n", strings.Join(done, ", "))
	}
	return nil
}

// reset plans, and with --execute does, what --reset-offsets asks for.
func (s *groupsScript) reset(ctx context.Context, cl *client.Admin, out, errs io.Writer) error {
	names, err := s.scope(ctx, cl)
	if err != nil {
		return err
	}
	to, err := s.way(time.Now())
	if err != nil {
		return err
	}
	views, err := describeGroups(ctx, cl, names)
	if err != nil {
		return err
	}
	plans := map[string]map[topicPartition]int64{}
	for _, name := range names {
		if state := views[name].state; state != "Empty" && state != "Dead" {
			groupError(out, fmt.Sprintf("Assignments can only be reset if the group '%s' is inactive, but the current state is %s.", name, state))
			plans[name] = nil
			continue
		}
		if plans[name], err = s.resetOne(ctx, cl, name, to, out, errs); err != nil {
			return err
		}
	}
	if s.export {
		return s.printCSV(out, names, plans)
	}
	printPlans(out, names, plans)
	return nil
}

func (s *groupsScript) resetOne(ctx context.Context, cl *client.Admin, group string, to resetTo, out, errs io.Writer) (map[topicPartition]int64, error) {
	var where []topicPartition
	var err error
	switch {
	case s.allTopics:
		commits, err := committedOffsets(ctx, cl, group)
		if err != nil {
			return nil, err
		}
		where = sortedPartitions(commits)
	case len(s.topics) > 0:
		if where, err = scopePartitions(ctx, cl, s.topics); err != nil {
			return nil, err
		}
	case to.kind != 'f':
		return nil, script.Usagef("One of the reset scopes should be defined: --all-topics, --topic.")
	}
	warn := errs
	if to.kind == 't' {
		warn = out // where Kafka's script has this one warning
	}
	plan, err := to.plan(ctx, cl, group, where, warn)
	if err != nil || !s.execute {
		return plan, err
	}
	return plan, commitOffsets(ctx, cl, group, plan)
}

// way reads the one option that says where to go.
func (s *groupsScript) way(now time.Time) (resetTo, error) {
	switch {
	case s.toOffset.Given:
		return resetTo{kind: 'o', n: s.toOffset.Value}, nil
	case s.toEarliest:
		return resetTo{kind: 'e'}, nil
	case s.toLatest:
		return resetTo{kind: 'l'}, nil
	case s.shiftBy.Given:
		return resetTo{kind: 's', n: s.shiftBy.Value}, nil
	case s.toDatetime != "":
		at, err := parseDateTime(s.toDatetime)
		return resetTo{kind: 't', n: at.UnixMilli()}, err
	case s.byDuration != "":
		d, err := parseISODuration(s.byDuration)
		return resetTo{kind: 't', n: now.Add(-d).UnixMilli()}, err
	case s.fromFile != "":
		groups, err := fileResets(s.fromFile, s.groups)
		if errors.Is(err, os.ErrNotExist) {
			err = errors.New("java.io.IOException: Unable to read file " + s.fromFile)
		}
		return resetTo{kind: 'f', groups: groups}, err
	case s.current:
		return resetTo{kind: 'c'}, nil
	}
	return resetTo{}, script.Usagef("Option '[reset-offsets]' requires one of the following scenarios: %s", script.Bracketed(resetWays...))
}

func printPlans(out io.Writer, names []string, plans map[string]map[topicPartition]int64) {
	groupWidth, topicWidth := 15, 15
	for name, plan := range plans {
		groupWidth = max(groupWidth, len(name))
		for tp := range plan {
			topicWidth = max(topicWidth, len(tp.Topic))
		}
	}
	line := func(cells ...string) {
		fmt.Fprintf(out, "\n%-*s %-*s %-10s %s", groupWidth, cells[0], topicWidth, cells[1], cells[2], cells[3])
	}
	if len(names) > 0 {
		line("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET")
	}
	for _, name := range names {
		for _, tp := range sortedPartitions(plans[name]) {
			line(name, tp.Topic, strconv.Itoa(int(tp.Partition)), strconv.FormatInt(plans[name][tp], 10))
		}
	}
	fmt.Fprintln(out)
}

func (s *groupsScript) printCSV(out io.Writer, names []string, plans map[string]map[topicPartition]int64) error {
	for _, name := range names {
		for _, tp := range sortedPartitions(plans[name]) {
			if len(s.groups) != 1 {
				fmt.Fprintf(out, "%s,", csvField(name))
			}
			fmt.Fprintf(out, "%s,%d,%d\n", csvField(tp.Topic), tp.Partition, plans[name][tp])
		}
	}
	_, err := fmt.Fprintln(out)
	return err
}

// csvField quotes what Kafka's writer quotes.
func csvField(text string) string {
	if strings.ContainsAny(text, ",\"\n\r ") {
		return `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
	}
	return text
}
