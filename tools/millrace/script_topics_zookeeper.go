package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/broker"
	"millrace/coord"
	"millrace/coord/controller/znode"
	"millrace/coord/zk/proto"
	"millrace/tools/internal/script"
	"millrace/wire"
)

// topicsTree is what kafka-topics.sh works on with --zookeeper, as Kafka 2.x does: the nodes below /brokers/topics. It writes what is wanted, and
// the controller, whoever that is, acts on it afterwards.
type topicsTree struct {
	*topicsScript
	znodes
}

// notInTree are the options for which coordination does not know enough.
var notInTree = []string{"under-min-isr-partitions", "at-min-isr-partitions", "topic-id", "partition-size-limit-per-response", "command-config"}

// checkZookeeper refuses what Kafka 2.x refuses together with --zookeeper.
func (s *topicsScript) checkZookeeper(cmd *cobra.Command, action string) error {
	fs := cmd.Flags()
	if s.connection.Bootstrap != "" {
		return script.Usagef("Only one of --bootstrap-server or --zookeeper must be specified")
	}
	if given := script.Given(fs, notInTree...); len(given) > 0 {
		return script.Usagef("Option \"[%s]\" can't be used with option \"[zookeeper]\"", given[0])
	}
	if action == "create" && s.assignment == "" {
		return script.Require(fs, "partitions", "replication-factor")
	}
	return nil
}

func (s *topicsScript) runZookeeper(cmd *cobra.Command, action string) error {
	err := withTree(cmd, s.zookeeper, func(at znodes) error {
		t := &topicsTree{s, at}
		switch action {
		case "create":
			return t.create()
		case "list":
			return t.list()
		case "alter":
			return t.alter()
		case "describe":
			return t.describe()
		}
		return t.delete()
	})
	return topicCommandError(cmd.OutOrStdout(), err)
}

// matching lists the topics that --topic and --exclude-internal leave.
func (t *topicsTree) matching(mustExist bool) ([]string, error) {
	names, err := t.children(znode.Topics)
	if err != nil {
		return nil, err
	}
	pattern, err := topicPattern(t.topic)
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return t.excludeInternal && coord.InternalName(name) || t.topic != "" && !pattern.MatchString(name)
	})
	if mustExist && t.topic != "" && len(names) == 0 && !t.ifExists {
		return nil, fmt.Errorf("Topic '%s' does not exist as expected", t.topic) //nolint:staticcheck // Kafka's words
	}
	return names, nil
}

// marked are the topics whose deletion was asked for.
func (t *topicsTree) marked() (map[string]bool, error) {
	names, err := t.children(znode.DeleteTopics)
	out := map[string]bool{}
	for _, name := range names {
		out[name] = true
	}
	return out, err
}

func (t *topicsTree) list() error {
	names, err := t.matching(false)
	if err != nil {
		return err
	}
	marked, err := t.marked()
	for _, name := range names {
		if marked[name] {
			name += " - marked for deletion"
		}
		fmt.Fprintln(t.out, name)
	}
	return err
}

// treeTopic is a topic's node.
type treeTopic struct {
	znode.Topic
	name    string
	version int32 // of the node
}

// topics reads the nodes of topics. One that has gone meanwhile is left out.
func (t *topicsTree) topics(names []string) ([]treeTopic, error) {
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = znode.TopicPath(name)
	}
	nodes, err := t.read(paths)
	if err != nil {
		return nil, err
	}
	var out []treeTopic
	for i, n := range nodes {
		if n.Err != proto.OK {
			continue
		}
		node, err := znode.DecodeTopic(n.Data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", paths[i], err)
		}
		out = append(out, treeTopic{node, names[i], n.Stat.Version})
	}
	return out, nil
}

// planner knows all topics and the brokers that are alive.
func (t *topicsTree) planner(more ...coord.NewTopic) (*coord.Planner, error) {
	names, err := t.children(znode.Topics)
	if err != nil {
		return nil, err
	}
	nodes, err := t.topics(names)
	if err != nil {
		return nil, err
	}
	brokers, err := t.brokers()
	if err != nil {
		return nil, err
	}
	var known []coord.Topic
	for _, n := range nodes {
		topic := coord.Topic{Name: n.name, ID: n.ID, Internal: coord.InternalName(n.name)}
		for p := range int32(len(n.Partitions)) {
			topic.Partitions = append(topic.Partitions, coord.Partition{Replicas: n.Partitions[p]})
		}
		known = append(known, topic)
	}
	return coord.NewPlanner(coord.NewImage("", -1, brokers, known), more), nil
}

// create writes the settings and the assignment of a topic, both or none.
func (t *topicsTree) create() error {
	warnOfCollisions(t.out, t.topic)
	wanted := coord.NewTopic{Name: t.topic, Partitions: int32(t.partitions.Value), Factor: int16(min(t.replication.Value, 1<<15-1))}
	var err error
	if wanted.Assignment, err = parseAssignment(t.assignment); err != nil {
		return err
	}
	if wanted.Config, err = t.settings(); err != nil {
		return err
	}
	if err := broker.CheckTopicConfig(wanted.Config); err != nil {
		return err
	}
	planner, err := t.planner(wanted)
	if err != nil {
		return err
	}
	exists := fmt.Errorf("Topic '%s' already exists.", t.topic) //nolint:staticcheck // Kafka's words
	plan := planner.Plan(wanted)
	switch {
	case plan.Code == wire.ErrTopicAlreadyExists && t.ifNotExists:
		return nil
	case plan.Code == wire.ErrTopicAlreadyExists:
		return exists
	case plan.Code != 0:
		return errors.New(plan.Message)
	}
	node := znode.Topic{Partitions: map[int32][]int32{}}
	if node.ID, err = coord.NewID(rand.Reader); err != nil {
		return err
	}
	for i, p := range plan.Topic.Partitions {
		node.Partitions[int32(i)] = p.Replicas
	}
	settings := proto.Request{Op: proto.OpCreate, Path: znode.ConfigPath(znode.EntityTopics + "/" + t.topic), Data: znode.EncodeConfig(wanted.Config), ACL: proto.OpenACL}
	topic := proto.Request{Op: proto.OpCreate, Path: znode.TopicPath(t.topic), Data: node.Encode(), ACL: proto.OpenACL}
	left, err := t.read([]string{settings.Path})
	if err != nil {
		return err
	}
	if left[0].Err == proto.OK { // somebody was cut off between the two
		settings.Op, settings.Version = proto.OpSetData, -1
	}
	switch err := t.both(settings, topic); {
	case errors.Is(err, proto.ErrNodeExists) && !t.ifNotExists:
		return exists
	case err != nil && !errors.Is(err, proto.ErrNodeExists):
		return err
	}
	fmt.Fprintf(t.out, "Created topic %s.\n", t.topic)
	return nil
}

// settings are those of --config.
func (t *topicsTree) settings() (map[string]string, error) {
	out := map[string]string{}
	for _, pair := range t.configs {
		name, value, err := splitSetting(pair)
		if err != nil {
			return nil, err
		}
		out[name] = value
	}
	return out, nil
}

// alter adds partitions to the assignment.
func (t *topicsTree) alter() error {
	names, err := t.matching(true)
	if err != nil || len(names) == 0 {
		return err
	}
	placed, err := parseAssignment(t.assignment)
	if err != nil {
		return err
	}
	planner, err := t.planner()
	if err != nil {
		return err
	}
	topics, err := t.topics(names)
	if err != nil {
		return err
	}
	for _, topic := range topics {
		fmt.Fprintln(t.out, "WARNING: If partitions are increased for a topic that has a key, the partition logic or ordering of the messages will be affected")
		more := coord.MorePartitions{Name: topic.name, Count: int32(t.partitions.Value)}
		if len(placed) > len(topic.Partitions) {
			more.Assignment = placed[len(topic.Partitions):]
		}
		plan := planner.PlanMore(more)
		if plan.Code != 0 {
			return errors.New(plan.Message)
		}
		for i, p := range plan.Topic.Partitions {
			topic.Partitions[int32(i)] = p.Replicas
		}
		_, err := t.c.Do(proto.Request{Op: proto.OpSetData, Path: znode.TopicPath(topic.name), Data: topic.Encode(), Version: topic.version})
		if errors.Is(err, proto.ErrBadVersion) {
			return fmt.Errorf("topic %s was changed by somebody else meanwhile; nothing was done to it", topic.name)
		}
		if err != nil {
			return err
		}
		fmt.Fprintln(t.out, "Adding partitions succeeded!")
	}
	return nil
}

// delete asks the controller to delete.
func (t *topicsTree) delete() error {
	names, err := t.matching(true)
	if err != nil {
		return err
	}
	for _, name := range names {
		if coord.InternalName(name) {
			return fmt.Errorf("Topic %s is a kafka internal topic and is not allowed to be marked as deleted.", name) //nolint:staticcheck // Kafka's words
		}
		_, err := t.c.Do(proto.Request{Op: proto.OpCreate, Path: znode.DeletePath(name), ACL: proto.OpenACL})
		switch {
		case errors.Is(err, proto.ErrNodeExists):
			fmt.Fprintf(t.out, "Topic %s is already marked for deletion.\n", name)
		case err != nil:
			return err
		default:
			fmt.Fprintf(t.out, "Topic %s is marked for deletion.\nNote: This will have no impact if delete.topic.enable is not set to true.\n", name)
		}
	}
	return nil
}

func (t *topicsTree) describe() error {
	names, err := t.matching(true)
	if err != nil {
		return err
	}
	topics, err := t.topics(names)
	if err != nil {
		return err
	}
	marked, err := t.marked()
	if err != nil {
		return err
	}
	brokers, err := t.brokers()
	if err != nil {
		return err
	}
	var live []int32
	for _, b := range brokers {
		live = append(live, b.ID)
	}
	for _, topic := range topics {
		row, err := t.row(topic)
		if err != nil {
			return err
		}
		row.marked = marked[topic.name]
		t.print(t.out, row, live)
	}
	return nil
}

// row reads what else is known of a topic: its settings, and who leads its partitions.
func (t *topicsTree) row(topic treeTopic) (scriptTopic, error) {
	row := scriptTopic{name: topic.name, id: kadm.TopicID(topic.ID), tree: true}
	paths := []string{znode.ConfigPath(znode.EntityTopics + "/" + topic.name)}
	for p := range int32(len(topic.Partitions)) {
		paths = append(paths, znode.StatePath(topic.name, p))
	}
	nodes, err := t.read(paths)
	if err != nil {
		return row, err
	}
	config, err := znode.DecodeConfig(nodes[0].Data)
	if err != nil {
		return row, fmt.Errorf("%s: %w", paths[0], err)
	}
	for _, key := range slices.Sorted(maps.Keys(config)) {
		value := config[key]
		row.configs = append(row.configs, kadm.Config{Key: key, Value: &value, Source: kmsg.ConfigSourceDynamicTopicConfig})
	}
	for p, n := range nodes[1:] {
		state := znode.State{Leader: -1} // the controller has not come to it yet
		if n.Err == proto.OK {
			if state, err = znode.DecodeState(n.Data); err != nil {
				return row, fmt.Errorf("%s: %w", paths[1+p], err)
			}
		}
		row.partitions = append(row.partitions, scriptPartition{number: int32(p), leader: state.Leader, replicas: topic.Partitions[int32(p)], isr: state.ISR})
	}
	return row, nil
}
