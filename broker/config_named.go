package broker

import (
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/coord"
	"millrace/wire"
)

// namedKind is a kind of resource that need not be there to have settings: a
// group, and a subscription to clients' metrics.
type namedKind struct {
	kind     kmsg.ConfigResourceType
	title    string
	table    []topicKey
	resource func(name string) coord.ConfigResource
	of       func(*coord.Image) coord.NamedConfigs
	check    func(c *Config, overrides map[string]string) (code int16, err error)
}

var namedKinds = []namedKind{
	{
		kind: kmsg.ConfigResourceTypeGroupConfig, title: "group", table: groupTable,
		resource: func(name string) coord.ConfigResource { return coord.ConfigResource{Group: name} },
		of:       (*coord.Image).GroupConfigs,
		check:    (*Config).checkGroupConfig,
	},
	{
		kind: kmsg.ConfigResourceTypeClientMetrics, title: "client metrics subscription", table: clientMetricsTable,
		resource: func(name string) coord.ConfigResource { return coord.ConfigResource{ClientMetrics: name} },
		of:       (*coord.Image).ClientMetrics,
		check:    (*Config).checkClientMetrics,
	},
}

// namedKindOf finds the row of a type; nil for other types.
func namedKindOf(t kmsg.ConfigResourceType) *namedKind {
	for i := range namedKinds {
		if namedKinds[i].kind == t {
			return &namedKinds[i]
		}
	}
	return nil
}

// rowOf finds a row of a table; nil if there is none.
func rowOf(table []topicKey, name string) *topicKey {
	for i := range table {
		if table[i].Name == name {
			return &table[i]
		}
	}
	return nil
}

// checkNamed checks names and values of overrides one by one. unknown is the code
// that Kafka has for an unknown name of this kind.
func checkNamed(table []topicKey, overrides map[string]string, unknown int16) (code int16, err error) {
	for _, name := range slices.Sorted(maps.Keys(overrides)) {
		k := rowOf(table, name)
		if k == nil {
			return unknown, fmt.Errorf("unknown config name %q", name)
		}
		if err := k.set(new(Config), overrides[name]); err != nil {
			return wire.ErrInvalidConfig, fmt.Errorf("invalid value %q for config %s: %w", overrides[name], name, err)
		}
	}
	return wire.ErrNone, nil
}

// describeNamed tells all keys of one such resource, whether it has settings or not.
func (b *Broker) describeNamed(n *namedKind, req *kmsg.DescribeConfigsRequest, asked *kmsg.DescribeConfigsRequestResource) (_ []kmsg.DescribeConfigsResponseResourceConfig, code int16, wrong string) {
	if asked.ResourceName == "" {
		return nil, wire.ErrInvalidRequest, "the name of a " + n.title + " must not be empty"
	}
	d := newDescriber(req, asked)
	config, overrides := b.configNow(), n.of(b.coord.Image())[asked.ResourceName]
	out := make([]kmsg.DescribeConfigsResponseResourceConfig, 0, len(n.table))
	for i := range n.table {
		k := &n.table[i]
		if !d.wants(k.Name) {
			continue
		}
		winner := k.value(config, overrides)
		c := d.describe(&k.ConfigKey, winner, k.synonyms(config, overrides))
		c.Value = &winner.Value // an empty default is a value too
		out = append(out, c)
	}
	return out, wire.ErrNone, ""
}

// namedChange turns an edit into a change, or refuses it.
func (b *Broker) namedChange(n *namedKind, e *configEdit) (_ coord.ConfigChange, ok bool) {
	if e.name == "" {
		e.refuse(wire.ErrInvalidRequest, "the name of a %s must not be empty; there are no defaults for all", n.title)
		return coord.ConfigChange{}, false
	}
	edit := func(before map[string]string) (map[string]string, int16, string) {
		config := b.configNow()
		find := func(key string, overrides map[string]string) (t ConfigType, value string, known bool) {
			k := rowOf(n.table, key)
			if k == nil {
				return "", "", false
			}
			return k.Type, k.value(config, overrides).Value, true
		}
		after, err := e.apply(before, find)
		code := wire.ErrInvalidConfig
		if err == nil {
			code, err = n.check(config, after)
		}
		if err != nil {
			return nil, code, e.title() + ": " + err.Error()
		}
		return after, wire.ErrNone, ""
	}
	return coord.ConfigChange{Resource: n.resource(e.name), Edit: edit}, true
}
