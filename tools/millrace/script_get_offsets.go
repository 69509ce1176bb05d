package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"millrace/tools/internal/client"
	"millrace/tools/internal/script"
)

// getOffsetsScript is kafka-get-offsets.sh.
type getOffsetsScript struct {
	connection          script.Connection
	topic, partitions   string
	topicPartitions, at string
	excludeInternal     bool
}

func newGetOffsetsScript() *cobra.Command {
	s := &getOffsetsScript{}
	cmd := &cobra.Command{
		Use:   "kafka-get-offsets.sh",
		Short: "An interactive shell for getting topic-partition offsets.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := s.run(cmd)
			var usage *script.UsageError
			if err == nil || errors.As(err, &usage) {
				return err
			}
			return fmt.Errorf("Error occurred: %w", err) //nolint:staticcheck // Kafka's words
		},
	}
	fs := cmd.Flags()
	s.connection.Register(fs)
	fs.StringVar(&s.topic, "topic", "", "the topic; a regular expression (default: all)")
	fs.StringVar(&s.partitions, "partitions", "", "partition numbers with commas (default: all)")
	fs.StringVar(&s.topicPartitions, "topic-partitions", "", "patterns with commas instead: topic, topic:1, topic:0-3 (without 3), topic:5-, topic:-3")
	fs.StringVar(&s.at, "time", "latest", "ms since 1970, or latest (-1), earliest (-2), max-timestamp (-3), earliest-local (-4), latest-tiered (-5), earliest-pending-upload (-6)")
	fs.BoolVar(&s.excludeInternal, "exclude-internal-topics", false, "leave out internal topics")
	return cmd
}

// offsetTimes are the names that --time takes.
var offsetTimes = map[string]int64{
	"latest": atLatest, "earliest": atEarliest, "max-timestamp": atMaxTimestamp,
	"earliest-local": -4, "latest-tiered": -5, "earliest-pending-upload": -6,
}

func (s *getOffsetsScript) run(cmd *cobra.Command) error {
	if err := script.Require(cmd.Flags(), "bootstrap-server"); err != nil {
		return err
	}
	if s.topicPartitions != "" && (s.topic != "" || s.partitions != "") {
		return errors.New("--topic-partitions cannot be used with --topic or --partitions")
	}
	at, ok := offsetTimes[s.at]
	if !ok {
		var err error
		if at, err = strconv.ParseInt(s.at, 10, 64); err != nil {
			return fmt.Errorf("Malformed time argument %s. Please use -1 or latest / -2 or earliest / -3 or max-timestamp / -4 or earliest-local / -5 or latest-tiered / -6 or earliest-pending-upload, or a specified long format timestamp", s.at) //nolint:staticcheck // Kafka's words
		}
	}
	wanted, err := s.filter()
	if err != nil {
		return err
	}
	return s.connection.Admin(cmd, func(ctx context.Context, cl *client.Admin) error {
		return s.print(ctx, cmd, cl, at, wanted)
	})
}

func (s *getOffsetsScript) print(ctx context.Context, cmd *cobra.Command, cl *client.Admin, at int64, wanted func(topicPartition) bool) error {
	topics, err := cl.ListTopicsWithInternal(ctx)
	if err != nil {
		return err
	}
	var list []topicPartition
	for _, t := range topics {
		for p := range t.Partitions {
			if tp := (topicPartition{t.Topic, p}); !(s.excludeInternal && t.IsInternal) && wanted(tp) {
				list = append(list, tp)
			}
		}
	}
	if len(list) == 0 {
		return errors.New("Could not match any topic-partitions with the specified filters") //nolint:staticcheck // Kafka's words
	}
	offsets, err := listOffsets(ctx, cl, list, at)
	if err != nil {
		return err
	}
	for _, tp := range list {
		if err := offsets[tp].err; err != nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "Skip getting offsets for topic-partition %s-%d due to error: %s\n", tp.Topic, tp.Partition, script.Say(err, ""))
			delete(offsets, tp)
		}
	}
	// Kafka's order is that of the names topic-partition, in which 10 comes before 2.
	keys := sortedPartitions(offsets)
	slices.SortStableFunc(keys, func(a, b topicPartition) int { return strings.Compare(a.dashed(), b.dashed()) })
	for _, tp := range keys {
		if o := offsets[tp].offset; o != -1 {
			fmt.Fprintf(cmd.OutOrStdout(), "%s:%d:%d\n", tp.Topic, tp.Partition, o)
		}
	}
	return nil
}

// dashed is how Kafka writes a partition.
func (tp topicPartition) dashed() string { return fmt.Sprintf("%s-%d", tp.Topic, tp.Partition) }

// filter reads the options that choose partitions.
func (s *getOffsetsScript) filter() (func(topicPartition) bool, error) {
	if s.topicPartitions == "" {
		return topicAndNumbers(s.topic, s.partitions)
	}
	var rules []func(topicPartition) bool
	for _, spec := range strings.Split(s.topicPartitions, ",") {
		rule, err := partitionRule(spec)
		if err != nil {
			return nil, err
		}
		rules = append(rules, rule)
	}
	return func(tp topicPartition) bool {
		return slices.ContainsFunc(rules, func(rule func(topicPartition) bool) bool { return rule(tp) })
	}, nil
}

func topicAndNumbers(topic, partitions string) (func(topicPartition) bool, error) {
	if topic == "" {
		topic = ".*"
	}
	pattern, err := topicPattern(topic)
	if err != nil {
		return nil, err
	}
	var numbers []int32
	for _, part := range strings.Split(partitions, ",") {
		if part == "" {
			continue
		}
		n, err := strconv.ParseInt(part, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("--partitions expects a comma separated list of numeric partition ids, but received: %s", partitions)
		}
		numbers = append(numbers, int32(n))
	}
	return func(tp topicPartition) bool {
		return pattern.MatchString(tp.Topic) && (numbers == nil || slices.Contains(numbers, tp.Partition))
	}, nil
}

var ruleForm = regexp.MustCompile(`^([^:,]*)(?::(?:([0-9]*)|(?:([0-9]*)-([0-9]*))))?$`)

// partitionRule reads one of --topic-partitions: a topic pattern, and a number or a
// range whose upper end does not belong to it.
func partitionRule(spec string) (func(topicPartition) bool, error) {
	m := ruleForm.FindStringSubmatch(spec)
	if m == nil {
		return nil, fmt.Errorf("Invalid rule specification: %s", spec) //nolint:staticcheck // Kafka's words
	}
	topic := m[1]
	if topic == "" {
		topic = ".*"
	}
	pattern, err := topicPattern(topic)
	if err != nil {
		return nil, err
	}
	low, high := int64(0), int64(1)<<31
	switch {
	case m[2] != "":
		low, _ = strconv.ParseInt(m[2], 10, 32)
		high = low + 1
	default:
		if m[3] != "" {
			low, _ = strconv.ParseInt(m[3], 10, 32)
		}
		if m[4] != "" {
			high, _ = strconv.ParseInt(m[4], 10, 32)
		}
	}
	return func(tp topicPartition) bool {
		return pattern.MatchString(tp.Topic) && int64(tp.Partition) >= low && int64(tp.Partition) < high
	}, nil
}
