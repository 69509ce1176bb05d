package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/tools/internal/client"
	"millrace/tools/internal/script"
)

// topicsScript is kafka-topics.sh.
type topicsScript struct {
	connection script.Connection
	zookeeper  string // in place of a broker

	topic, topicID, assignment  string
	partitions, replication     script.Whole
	perResponse                 script.Whole
	configs                     []string
	deleteConfig                []string
	ifExists, ifNotExists       bool
	excludeInternal             bool
	underReplicated, underISR   bool
	atISR, unavailable, altered bool
}

var topicActions = []string{"create", "list", "alter", "describe", "delete"}

func newTopicsScript() *cobra.Command {
	s := &topicsScript{}
	cmd := &cobra.Command{
		Use:   "kafka-topics.sh",
		Short: "This tool helps to create, delete, describe, or change a topic.",
		RunE:  func(cmd *cobra.Command, _ []string) error { return s.run(cmd) },
	}
	fs := cmd.Flags()
	s.connection.Register(fs)
	fs.StringVar(&s.zookeeper, "zookeeper", "", zookeeperUsage)
	for _, action := range []struct{ name, usage string }{
		{"create", "create a new topic"}, {"list", "list all available topics"}, {"alter", "add partitions to topics"},
		{"describe", "list details of topics"}, {"delete", "delete topics"},
	} {
		fs.Bool(action.name, false, action.usage)
	}
	fs.StringVar(&s.topic, "topic", "", "the topic; a regular expression, except with --create")
	fs.StringVar(&s.topicID, "topic-id", "", "with --describe: the id of the topic")
	s.partitions.Register(fs, 32, "partitions", "how many partitions the topic is to have (default: the broker's)")
	s.replication.Register(fs, 32, "replication-factor", "how many copies (default: the broker's)")
	fs.StringVar(&s.assignment, "replica-assignment", "", "which brokers hold which partition, 1:2,2:1 for two partitions on brokers 1 and 2")
	fs.StringArrayVar(&s.configs, "config", nil, "with --create: a setting, name=value (repeatable)")
	fs.StringArrayVar(&s.deleteConfig, "delete-config", nil, "no longer supported by Kafka; use kafka-configs.sh")
	fs.BoolVar(&s.ifExists, "if-exists", false, "a topic that does not exist is no error")
	fs.BoolVar(&s.ifNotExists, "if-not-exists", false, "with --create: a topic that exists is no error")
	fs.BoolVar(&s.excludeInternal, "exclude-internal", false, "leave out internal topics")
	fs.BoolVar(&s.underReplicated, "under-replicated-partitions", false, "show only partitions with copies that lag")
	fs.BoolVar(&s.unavailable, "unavailable-partitions", false, "show only partitions without a leader")
	fs.BoolVar(&s.underISR, "under-min-isr-partitions", false, "show only partitions with fewer copies in sync than configured")
	fs.BoolVar(&s.atISR, "at-min-isr-partitions", false, "show only partitions with just as many copies in sync as configured")
	fs.BoolVar(&s.altered, "topics-with-overrides", false, "show only topics with settings of their own")
	s.perResponse.Register(fs, 32, "partition-size-limit-per-response", "most partitions in one answer of the broker")
	return cmd
}

// only lists, for each option, the actions that it goes with.
var topicOptionActions = []struct {
	option  string
	actions []string
}{
	{"config", []string{"create", "alter"}},
	{"partitions", []string{"create", "alter"}},
	{"replication-factor", []string{"create"}},
	{"replica-assignment", []string{"create", "alter"}},
	{"if-not-exists", []string{"create"}},
	{"if-exists", []string{"alter", "delete", "describe"}},
	{"exclude-internal", []string{"list", "describe"}},
	{"under-replicated-partitions", []string{"describe"}},
	{"under-min-isr-partitions", []string{"describe"}},
	{"at-min-isr-partitions", []string{"describe"}},
	{"unavailable-partitions", []string{"describe"}},
	{"topics-with-overrides", []string{"describe"}},
	{"topic-id", []string{"describe"}},
}

// check refuses what Kafka's script refuses before it connects.
func (s *topicsScript) check(cmd *cobra.Command) (action string, err error) {
	fs := cmd.Flags()
	actions := script.Given(fs, topicActions...)
	if len(actions) != 1 {
		return "", script.Usagef("Command must include exactly one action: --list, --describe, --create, --alter or --delete")
	}
	action = actions[0]
	if s.zookeeper != "" {
		if err := s.checkZookeeper(cmd, action); err != nil {
			return "", err
		}
	} else if s.connection.Bootstrap == "" {
		return "", script.Usagef("--bootstrap-server must be specified")
	}
	if action == "describe" && s.excludeInternal && s.topicID != "" {
		return "", script.Usagef("Only one of --exclude-internal and --topic-id may be used")
	}
	if (action == "create" || action == "delete") && s.topic == "" || action == "alter" && s.topic == "" {
		return "", script.Usagef("Missing required argument \"[topic]\"")
	}
	if action == "alter" {
		if fs.Changed("config") || fs.Changed("delete-config") {
			return "", script.Usagef("Option combination \"[[bootstrap-server], [%s]]\" can't be used with option \"[alter]\" (To alter topic configurations, the kafka-configs tool can be used.)", script.Given(fs, "config", "delete-config")[0])
		}
		if err := script.Require(fs, "partitions"); err != nil {
			return "", err
		}
	}
	if len(s.deleteConfig) > 0 {
		return "", script.Usagef("Option \"[delete-config]\" can't be used: use kafka-configs.sh --delete-config")
	}
	if action == "create" {
		if err := script.Exclude(fs, "replica-assignment", "partitions", "replication-factor"); err != nil {
			return "", err
		}
	}
	for _, o := range topicOptionActions {
		if fs.Changed(o.option) && !slices.Contains(o.actions, action) {
			return "", script.Usagef("Option \"[%s]\" can't be used with option \"[%s]\"", o.option, action)
		}
	}
	return action, script.Exclude(fs, "topics-with-overrides", "under-replicated-partitions", "under-min-isr-partitions", "at-min-isr-partitions", "unavailable-partitions")
}

func (s *topicsScript) run(cmd *cobra.Command) error {
	action, err := s.check(cmd)
	if err != nil {
		return err
	}
	if s.zookeeper != "" {
		return s.runZookeeper(cmd, action)
	}
	out := cmd.OutOrStdout()
	err = s.connection.Admin(cmd, func(ctx context.Context, cl *client.Admin) error {
		switch action {
		case "create":
			return s.create(ctx, cl, out)
		case "list":
			return s.list(ctx, cl, out)
		case "alter":
			return s.alter(ctx, cl)
		case "describe":
			return s.describe(ctx, cl, out)
		}
		return s.delete(ctx, cl)
	})
	return topicCommandError(out, err)
}

// topicCommandError writes what goes wrong on standard output, as Kafka's script does,
// once the command line is accepted.
func topicCommandError(out io.Writer, err error) error {
	var usage *script.UsageError
	if err == nil || errors.As(err, &usage) {
		return err
	}
	fmt.Fprintf(out, "Error while executing topic command : %v\n", err)
	return &script.Failed{Status: 1}
}

// refusedError is a broker's no, in the words that Kafka's tools print.
type refusedError struct {
	say string
	err error
}

func (e *refusedError) Error() string { return e.say }
func (e *refusedError) Unwrap() error { return e.err }

func refusedBy(err error, message string) error {
	return &refusedError{script.Say(err, message), err}
}

// topicPattern makes Kafka's --topic pattern: commas separate alternatives, quotes and
// blanks do not count, and the whole name must match.
func topicPattern(raw string) (*regexp.Regexp, error) {
	alternatives := strings.Trim(strings.NewReplacer(",", "|", " ", "").Replace(strings.TrimSpace(raw)), `"'`)
	pattern, err := regexp.Compile("^(?:" + alternatives + ")$")
	if err != nil {
		return nil, fmt.Errorf("%s is an invalid regex.", raw) //nolint:staticcheck // Kafka's words
	}
	return pattern, nil
}

// matching lists the topics that --topic and --exclude-internal leave. It is no error
// if there is none, unless the topic had to exist.
func (s *topicsScript) matching(ctx context.Context, cl *client.Admin, mustExist bool) (kadm.TopicDetails, error) {
	topics, err := cl.ListTopicsWithInternal(ctx)
	if err != nil {
		return nil, err
	}
	pattern, err := topicPattern(s.topic)
	if err != nil {
		return nil, err
	}
	for name, t := range topics {
		if s.excludeInternal && t.IsInternal || s.topic != "" && !pattern.MatchString(name) {
			delete(topics, name)
		}
	}
	if mustExist && s.topic != "" && len(topics) == 0 && !s.ifExists {
		return nil, fmt.Errorf("Topic '%s' does not exist as expected", s.topic) //nolint:staticcheck // Kafka's words
	}
	return topics, nil
}

func (s *topicsScript) list(ctx context.Context, cl *client.Admin, out io.Writer) error {
	topics, err := s.matching(ctx, cl, false)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, strings.Join(topics.Names(), "\n"))
	return err
}

func (s *topicsScript) create(ctx context.Context, cl *client.Admin, out io.Writer) error {
	warnOfCollisions(out, s.topic)
	req := kmsg.NewCreateTopicsRequestTopic()
	req.Topic = s.topic
	switch {
	case s.replication.Given && (s.replication.Value < 1 || s.replication.Value > 32767):
		return errors.New("The replication factor must be between 1 and 32767 inclusive") //nolint:staticcheck // Kafka's words
	case s.partitions.Given && s.partitions.Value < 1:
		return errors.New("The partitions must be greater than 0") //nolint:staticcheck // Kafka's words
	}
	req.NumPartitions, req.ReplicationFactor = -1, -1
	if s.partitions.Given {
		req.NumPartitions = int32(s.partitions.Value)
	}
	if s.replication.Given {
		req.ReplicationFactor = int16(s.replication.Value)
	}
	placed, err := parseAssignment(s.assignment)
	if err != nil {
		return err
	}
	for p, replicas := range placed {
		a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
		a.Partition, a.Replicas = int32(p), replicas
		req.ReplicaAssignment = append(req.ReplicaAssignment, a)
	}
	for _, pair := range s.configs {
		name, value, err := splitSetting(pair)
		if err != nil {
			return err
		}
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = name, kmsg.StringPtr(value)
		req.Configs = append(req.Configs, c)
	}
	err = createTopic(ctx, cl, req)
	switch {
	case s.ifNotExists && errors.Is(err, kerr.TopicAlreadyExists):
		return nil
	case err != nil:
		return err
	}
	fmt.Fprintf(out, "Created topic %s.\n", s.topic)
	return awaitTopic(ctx, cl.Client, s.topic)
}

// splitSetting reads name=value of --config.
func splitSetting(pair string) (name, value string, err error) {
	name, value, ok := strings.Cut(pair, "=")
	if !ok || strings.TrimSpace(value) == "" {
		return "", "", errors.New(`requirement failed: Invalid topic config: all configs to be added must be in the format "key=val".`)
	}
	return strings.TrimSpace(name), strings.TrimSpace(value), nil
}

// warnOfCollisions says that names which differ in '.' and '_' only collide.
func warnOfCollisions(out io.Writer, topic string) {
	if strings.ContainsAny(topic, "._") {
		fmt.Fprintln(out, "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could collide. To avoid issues it is best to use either, but not both.")
	}
}

// text is what a broker may or may not have said.
func text(message *string) string {
	if message == nil {
		return ""
	}
	return *message
}

// parseAssignment reads 1:2,2:1; an empty text gives none.
func parseAssignment(list string) (placed [][]int32, err error) {
	if list == "" {
		return nil, nil
	}
	for p, part := range strings.Split(list, ",") {
		var replicas []int32
		var twice []string
		for _, id := range strings.Split(part, ":") {
			n, err := strconv.ParseInt(strings.TrimSpace(id), 10, 32)
			if err != nil {
				return nil, fmt.Errorf("For input string: %q", id) //nolint:staticcheck // Kafka's words
			}
			if slices.Contains(replicas, int32(n)) {
				twice = append(twice, id)
			}
			replicas = append(replicas, int32(n))
		}
		if len(twice) > 0 {
			return nil, &refusedError{say: "Partition replica lists may not contain duplicate entries: " + strings.Join(twice, ",")}
		}
		placed = append(placed, replicas)
		if len(replicas) != len(placed[0]) {
			return nil, &refusedError{say: fmt.Sprintf("Partition %d has different replication factor: %v", p, replicas)}
		}
	}
	return placed, nil
}

func createTopic(ctx context.Context, cl *client.Admin, topic kmsg.CreateTopicsRequestTopic) error {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Topics = append(req.Topics, topic)
	resp, err := req.RequestWith(ctx, cl.Raw)
	if err != nil {
		return err
	}
	for _, t := range resp.Topics {
		err := kerr.ErrorForCode(t.ErrorCode)
		if errors.Is(err, kerr.TopicAlreadyExists) { // what scripts look for, whatever the broker says
			return &refusedError{fmt.Sprintf("Topic '%s' already exists.", topic.Topic), err}
		}
		if err != nil {
			return refusedBy(err, text(t.ErrorMessage))
		}
	}
	return nil
}

func (s *topicsScript) alter(ctx context.Context, cl *client.Admin) error {
	topics, err := s.matching(ctx, cl, true)
	if err != nil {
		return err
	}
	if len(topics) == 0 {
		return nil
	}
	if err := client.NeedAPIs(ctx, cl, kmsg.CreatePartitions); err != nil {
		return err
	}
	placed, err := parseAssignment(s.assignment)
	if err != nil {
		return err
	}
	return addPartitions(ctx, cl, topics, int32(s.partitions.Value), placed)
}

// addPartitions raises each topic to count partitions; placed says where the new ones
// go, counted from partition 0, and may be empty.
func addPartitions(ctx context.Context, cl *client.Admin, topics kadm.TopicDetails, count int32, placed [][]int32) error {
	req := kmsg.NewPtrCreatePartitionsRequest()
	for _, t := range topics.Sorted() {
		rt := kmsg.NewCreatePartitionsRequestTopic()
		rt.Topic, rt.Count = t.Topic, count
		for p := len(t.Partitions); p < len(placed); p++ {
			a := kmsg.NewCreatePartitionsRequestTopicAssignment()
			a.Replicas = placed[p]
			rt.Assignment = append(rt.Assignment, a)
		}
		req.Topics = append(req.Topics, rt)
	}
	resp, err := req.RequestWith(ctx, cl.Raw)
	if err != nil {
		return err
	}
	for _, t := range resp.Topics {
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
			return refusedBy(err, text(t.ErrorMessage))
		}
	}
	return nil
}

func (s *topicsScript) delete(ctx context.Context, cl *client.Admin) error {
	topics, err := s.matching(ctx, cl, true)
	if err != nil || len(topics) == 0 {
		return err
	}
	answers, err := cl.DeleteTopics(ctx, topics.Names()...)
	if err != nil {
		return err
	}
	for _, a := range answers.Sorted() {
		if a.Err != nil {
			return refusedBy(a.Err, a.ErrMessage)
		}
	}
	return nil
}
