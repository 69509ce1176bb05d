package main

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"millrace/broker"
	"millrace/coord"
	"millrace/coord/controller/znode"
	"millrace/coord/zk/proto"
	"millrace/tools/internal/script"
)

// configsTree is what kafka-configs.sh works on with --zookeeper, as Kafka 2.x does: the nodes below /config. It writes what is wanted and tells so
// in /config/changes; the brokers act on it afterwards.
type configsTree struct {
	*configsScript
	znodes
}

// kindsInTree are the entities that Kafka 2.x keeps there.
var kindsInTree = []string{"topics", "clients", "users", "brokers", "ips"}

// whileBrokersRun are the broker settings that may be changed behind the back of a running one. All others it has to check itself.
var whileBrokersRun = []string{"leader.replication.throttled.rate", "follower.replication.throttled.rate", "replica.alter.log.dirs.io.max.bytes.per.second"}

// checkZookeeper refuses what Kafka 2.x refuses together with --zookeeper.
func (s *configsScript) checkZookeeper(cmd *cobra.Command) error {
	if s.connection.Bootstrap != "" {
		return script.Usagef("Only one of --bootstrap-server or --zookeeper must be specified")
	}
	if given := script.Given(cmd.Flags(), "all", "command-config"); len(given) > 0 {
		return script.Usagef("--bootstrap-server must be specified for --%s", given[0])
	}
	return nil
}

func (e configEntity) checkInTree(alter bool) error {
	switch {
	case !slices.Contains(kindsInTree, e.kind):
		return script.Usagef("Invalid entity type %s, the entity type must be one of %s with the --zookeeper argument", e.kind, strings.Join(kindsInTree, ","))
	case alter && e.kind == "topics" && *e.name == "":
		return script.Usagef("an entity name must be specified with --alter of topics")
	}
	return nil
}

// treeEntity is the path of an entity below /config, and its name in Kafka's sentences.
type treeEntity struct{ path, text string }

// and puts two parts, a user and its client, together; user comes first.
func (e treeEntity) and(child treeEntity) treeEntity {
	return treeEntity{e.path + "/" + child.path, e.text + ", " + child.text}
}

// inTree is the entity whose node has the name.
func inTree(kind, node string) treeEntity {
	title, name := kind, node
	switch kind {
	case "topics":
		title = "topic"
	case "users", "clients":
		title = map[string]string{"users": "user-principal", "clients": "client-id"}[kind]
		if plain, err := znode.Desanitize(node); err == nil {
			name = plain
		}
	}
	if node == znode.DefaultEntity {
		return treeEntity{kind + "/" + node, "default " + title}
	}
	return treeEntity{kind + "/" + node, fmt.Sprintf("%s '%s'", title, name)}
}

// node is the name of the entity's node.
func (e configEntity) node() string {
	switch {
	case *e.name == "":
		return znode.DefaultEntity
	case e.kind == "users" || e.kind == "clients":
		return znode.Sanitize(*e.name)
	}
	return *e.name
}

func (s *configsScript) runZookeeper(cmd *cobra.Command, alter bool) error {
	var change configChange
	if alter {
		var err error
		if change, err = s.change(); err != nil {
			return err
		}
	}
	slices.SortFunc(s.entities, func(a, b configEntity) int { return strings.Compare(b.kind, a.kind) }) // users before clients
	err := withTree(cmd, s.zookeeper, func(at znodes) error {
		t := &configsTree{s, at}
		if alter {
			return t.alter(change)
		}
		return t.describe()
	})
	return explainConfigs(cmd, err)
}

// all lists the entities that are meant below a path; more follow in it.
func (t *configsTree) all(below string, more []configEntity) ([]treeEntity, error) {
	e := more[0]
	var nodes []string
	if e.name != nil {
		nodes = []string{e.node()}
	} else {
		var err error
		if nodes, err = t.children(znode.ConfigPath(below + e.kind)); err != nil {
			return nil, err
		}
	}
	var out []treeEntity
	for _, node := range nodes {
		one := inTree(e.kind, node)
		if len(more) == 1 {
			out = append(out, one)
			continue
		}
		inner, err := t.all(below+one.path+"/", more[1:])
		if err != nil {
			return nil, err
		}
		for _, child := range inner {
			out = append(out, one.and(child))
		}
	}
	return out, nil
}

func (t *configsTree) describe() error {
	list, err := t.all("", t.entities)
	if err != nil {
		return err
	}
	allUsers := len(t.entities) == 1 && t.entities[0].kind == "users" && t.entities[0].name == nil
	for _, e := range list {
		config, _, err := t.config(e)
		if err != nil {
			return err
		}
		if allUsers && len(config) == 0 { // one that is only there for its clients
			continue
		}
		var pairs []string
		for _, key := range slices.Sorted(maps.Keys(config)) {
			pairs = append(pairs, key+"="+config[key])
		}
		fmt.Fprintf(t.out, "Configs for %s are %s\n", e.text, strings.Join(pairs, ","))
	}
	return nil
}

// noNode is the version of a node that is not there.
const noNode = -1

// config reads an entity's settings, none if it has no node, and the version of the node.
func (t *configsTree) config(e treeEntity) (map[string]string, int32, error) {
	nodes, err := t.read([]string{znode.ConfigPath(e.path)})
	if err != nil {
		return nil, 0, err
	}
	config := map[string]string{}
	if nodes[0].Err != proto.OK {
		return config, noNode, nil
	}
	if len(nodes[0].Data) > 0 { // else it was made for what is below
		there, err := znode.DecodeConfig(nodes[0].Data)
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w", znode.ConfigPath(e.path), err)
		}
		maps.Copy(config, there)
	}
	return config, nodes[0].Stat.Version, nil
}

// mostAttempts is how often settings are read anew that somebody else has just changed.
const mostAttempts = 10

func (t *configsTree) alter(change configChange) error {
	list, err := t.all("", t.entities)
	if err != nil {
		return err
	}
	e := list[0] // all of them have a name
	if err := t.may(change); err != nil {
		return err
	}
	for range mostAttempts {
		config, version, err := t.config(e)
		if err != nil {
			return err
		}
		var missing []string
		for _, name := range change.remove {
			if _, ok := config[name]; !ok {
				missing = append(missing, name)
			}
			delete(config, name)
		}
		if len(missing) > 0 {
			return &plainError{"Invalid config(s): " + strings.Join(missing, ",")}
		}
		maps.Copy(config, change.set)
		err = t.write(e, config, version)
		if errors.Is(err, proto.ErrBadVersion) || errors.Is(err, proto.ErrNodeExists) || errors.Is(err, proto.ErrNoNode) {
			continue
		}
		if err == nil {
			fmt.Fprintf(t.out, "Completed updating config for entity: %s.\n", e.text)
		}
		return err
	}
	return fmt.Errorf("the settings of %s are being changed by somebody else; nothing was done", e.text)
}

// may refuses settings that the entity cannot have, and those of brokers that have to check them themselves.
func (t *configsTree) may(change configChange) error {
	first := t.entities[0]
	switch first.kind {
	case "topics":
		names, err := t.children(znode.Topics)
		if err == nil && !slices.Contains(names, *first.name) {
			err = fmt.Errorf("Topic '%s' does not exist.", *first.name) //nolint:staticcheck // Kafka's words
		}
		if err != nil {
			return err
		}
		return broker.CheckTopicConfig(change.set)
	case "brokers":
		if err := t.mayBroker(*first.name, change); err != nil {
			return err
		}
		return broker.CheckBrokerConfig(change.set, *first.name == "")
	}
	var entity coord.QuotaEntity
	for _, e := range t.entities {
		part := coord.QuotaPart{Given: true, Name: *e.name}
		switch e.kind {
		case "ips":
			if _, err := netip.ParseAddr(part.Name); err != nil && part.Name != "" {
				return fmt.Errorf("%q is no IP address", part.Name)
			}
			entity.IP = part
		case "users":
			entity.User = part
		case "clients":
			entity.Client = part
		}
	}
	for _, key := range slices.Sorted(maps.Keys(change.set)) {
		value, err := strconv.ParseFloat(change.set[key], 64)
		if err != nil {
			value, err = 1, fmt.Errorf("invalid value %q for quota %s: it must be a number", change.set[key], key)
		}
		if unknown := broker.CheckQuota(entity, key, value); unknown != nil {
			err = unknown
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *configsTree) mayBroker(name string, change configChange) error {
	var delicate []string
	for key := range change.set {
		if !slices.Contains(whileBrokersRun, key) {
			delicate = append(delicate, key)
		}
	}
	if len(delicate) == 0 {
		return nil
	}
	slices.Sort(delicate)
	running, err := t.brokers()
	if err != nil {
		return err
	}
	for _, b := range running {
		if name == "" || name == strconv.Itoa(int(b.ID)) {
			return &plainError{fmt.Sprintf("--bootstrap-server option must be specified to update broker configs %s: broker %d is running and has to check them", strings.Join(delicate, ", "), b.ID)}
		}
	}
	return nil
}

// write puts settings in force if nobody has changed them since they were read, and tells of it.
func (t *configsTree) write(e treeEntity, config map[string]string, version int32) error {
	node := proto.Request{Op: proto.OpSetData, Path: znode.ConfigPath(e.path), Data: znode.EncodeConfig(config), Version: version}
	if version == noNode {
		node.Op, node.ACL = proto.OpCreate, proto.OpenACL
		parents := strings.Split(node.Path, "/") // "", "config", ...
		for i := 2; i < len(parents); i++ {
			_, err := t.c.Do(proto.Request{Op: proto.OpCreate, Path: strings.Join(parents[:i], "/"), ACL: proto.OpenACL})
			if err != nil && !errors.Is(err, proto.ErrNodeExists) {
				return err
			}
		}
	}
	news := proto.Request{Op: proto.OpCreate, Path: znode.ChangePrefix(znode.ChangesPath(e.path)), Data: znode.EncodeChange(e.path), ACL: proto.OpenACL, Mode: proto.PersistentSequential}
	return t.both(node, news)
}
