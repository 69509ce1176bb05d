package broker

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/coord"
	"millrace/wire"
)

// configEdit is a change of one resource's settings, as AlterConfigs and
// IncrementalAlterConfigs both ask for it.
type configEdit struct {
	kind    kmsg.ConfigResourceType
	name    string
	ops     []configOp
	replace bool // what is not in ops goes

	code    int16 // the answer
	message string
}

// configOp is what is to be done with one key.
type configOp struct {
	key   string
	op    kmsg.IncrementalAlterConfigOp
	value *string
}

func (e *configEdit) refuse(code int16, format string, args ...any) {
	e.code, e.message = code, fmt.Sprintf(format, args...)
}

// alterConfigs carries edits out, each for itself, and leaves the answers in
// them. What is answered without an error is durable and in force.
func (b *Broker) alterConfigs(rc *requestContext, edits []configEdit, validateOnly bool) {
	refuseTwice(edits)
	var changes []coord.ConfigChange
	var asked []*configEdit
	for i := range edits {
		e := &edits[i]
		if e.code != wire.ErrNone {
			continue
		}
		if e.checkOps(); e.code != wire.ErrNone {
			continue
		}
		if e.kind == kmsg.ConfigResourceTypeBrokerLogger {
			if b.alterLoggers(e, validateOnly); e.code == wire.ErrNone && !validateOnly {
				e.told(rc)
			}
			continue
		}
		if change, ok := b.changeOf(e); ok {
			changes, asked = append(changes, change), append(asked, e)
		}
	}
	if len(changes) == 0 {
		return
	}
	for i, r := range b.coord.AlterConfigs(rc.ctx, changes, validateOnly) {
		e := asked[i]
		if e.code, e.message = r.Code, r.Message; e.code == wire.ErrNone && !validateOnly {
			e.told(rc)
		}
	}
}

// told writes the line about a change that was made.
func (e *configEdit) told(rc *requestContext) {
	rc.log.Info("settings changed", "of", e.title(), "keys", e.keys(), "client_id", rc.header.ClientID)
}

// refuseTwice refuses resources that are in the request more than once.
func refuseTwice(edits []configEdit) {
	type resource struct {
		kind kmsg.ConfigResourceType
		name string
	}
	times := map[resource]int{}
	for i := range edits {
		times[resource{edits[i].kind, edits[i].name}]++
	}
	for i := range edits {
		if e := &edits[i]; times[resource{e.kind, e.name}] > 1 {
			e.refuse(wire.ErrInvalidRequest, "%s is in the request more than once", e.title())
		}
	}
}

func (e *configEdit) title() string {
	switch {
	case e.kind == kmsg.ConfigResourceTypeTopic:
		return fmt.Sprintf("topic %q", e.name)
	case e.kind == kmsg.ConfigResourceTypeBroker && e.name == "":
		return "all brokers"
	case e.kind == kmsg.ConfigResourceTypeBroker:
		return "broker " + e.name
	case e.kind == kmsg.ConfigResourceTypeBrokerLogger:
		return "loggers of broker " + e.name
	}
	if n := namedKindOf(e.kind); n != nil {
		return fmt.Sprintf("%s %q", n.title, e.name)
	}
	return fmt.Sprintf("resource %q of type %d", e.name, e.kind)
}

// keys names what was asked for, for the log; values may be secret.
func (e *configEdit) keys() string {
	var keys []string
	for i := range e.ops {
		keys = append(keys, e.ops[i].key)
	}
	return strings.Join(keys, ",")
}

// checkOps refuses what is malformed whatever the keys mean.
func (e *configEdit) checkOps() {
	seen := make(map[string]bool, len(e.ops))
	for i := range e.ops {
		op := &e.ops[i]
		switch {
		case seen[op.key]:
			e.refuse(wire.ErrInvalidRequest, "%s: config %s is in the request more than once", e.title(), op.key)
		case op.op < kmsg.IncrementalAlterConfigOpSet || op.op > kmsg.IncrementalAlterConfigOpSubtract:
			e.refuse(wire.ErrInvalidRequest, "%s: config %s: operation %d is none of set (0), delete (1), append (2), subtract (3)", e.title(), op.key, op.op)
		case op.value == nil && op.op != kmsg.IncrementalAlterConfigOpDelete:
			e.refuse(wire.ErrInvalidRequest, "%s: config %s is null; delete it to have its default", e.title(), op.key)
		}
		if e.code != wire.ErrNone {
			return
		}
		seen[op.key] = true
	}
}

const noConfigs = "resource type %d has no configs here; topic (2), broker (4), broker logger (8), client metrics (16) and group (32) have"

// changeOf turns an edit into a change, or refuses it.
func (b *Broker) changeOf(e *configEdit) (_ coord.ConfigChange, ok bool) {
	switch e.kind {
	case kmsg.ConfigResourceTypeTopic:
		if e.name == "" {
			e.refuse(wire.ErrInvalidRequest, "a topic's name is empty; defaults for all topics are broker configs, such as log.retention.ms")
			return coord.ConfigChange{}, false
		}
		if wrong := coord.CheckName(e.name); wrong != "" {
			e.refuse(wire.ErrInvalidTopic, "%s", wrong)
			return coord.ConfigChange{}, false
		}
		return coord.ConfigChange{Resource: coord.ConfigResource{Topic: e.name}, Edit: b.topicEdit(e)}, true
	case kmsg.ConfigResourceTypeBroker:
		resource, scope := coord.ConfigResource{Broker: coord.AllBrokers}, dynamicCluster
		if e.name != "" {
			if code, wrong := b.checkOwnID(e.name); code != wire.ErrNone {
				e.refuse(code, "%s", wrong)
				return coord.ConfigChange{}, false
			}
			resource, scope = coord.ConfigResource{Broker: b.node}, dynamicBroker
		}
		return coord.ConfigChange{Resource: resource, Edit: b.brokerEdit(e, scope)}, true
	}
	if n := namedKindOf(e.kind); n != nil {
		return b.namedChange(n, e)
	}
	e.refuse(wire.ErrInvalidRequest, noConfigs, e.kind)
	return coord.ConfigChange{}, false
}

type editFunc = func(before map[string]string) (after map[string]string, code int16, message string)

// topicEdit is the edit of a topic's settings. Wrong ones are INVALID_CONFIG.
func (b *Broker) topicEdit(e *configEdit) editFunc {
	return func(before map[string]string) (map[string]string, int16, string) {
		config := b.configNow()
		find := func(key string, overrides map[string]string) (t ConfigType, value string, known bool) {
			k := lookupTopicKey(key)
			if k == nil {
				return "", "", false
			}
			return k.Type, k.value(config, overrides).Value, true
		}
		after, err := e.apply(before, find)
		if err == nil {
			err = config.checkTopicConfig(after)
		}
		if err != nil {
			return nil, wire.ErrInvalidConfig, e.title() + ": " + err.Error()
		}
		return after, wire.ErrNone, ""
	}
}

// brokerEdit is the edit of a broker's, or all brokers', dynamic settings. Kafka
// answers wrong ones with INVALID_REQUEST, save lists that are none.
func (b *Broker) brokerEdit(e *configEdit, scope dynamicScope) editFunc {
	return func(before map[string]string) (map[string]string, int16, string) {
		config := b.configNow()
		find := func(key string, layer map[string]string) (t ConfigType, value string, known bool) {
			row := LookupConfigKey(key)
			if row == nil {
				return "", "", false
			}
			value, set := layer[key]
			if !set {
				value, _ = config.Get(key)
			}
			return row.Type, value, true
		}
		after, err := e.apply(before, find)
		if err != nil {
			return nil, wire.ErrInvalidConfig, e.title() + ": " + err.Error()
		}
		if err := b.checkLayer(before, after, scope); err != nil {
			return nil, wire.ErrInvalidRequest, e.title() + ": " + err.Error()
		}
		return after, wire.ErrNone, ""
	}
}

// apply is the settings after the operations. find tells a key's type and the value
// in force; append and subtract start from that, inherited or not.
func (e *configEdit) apply(before map[string]string, find func(key string, now map[string]string) (t ConfigType, value string, known bool)) (map[string]string, error) {
	after := map[string]string{}
	if !e.replace {
		maps.Copy(after, before)
	}
	for i := range e.ops {
		op := &e.ops[i]
		switch op.op {
		case kmsg.IncrementalAlterConfigOpSet:
			// Both may be the request's memory.
			after[strings.Clone(op.key)] = strings.Clone(*op.value)
		case kmsg.IncrementalAlterConfigOpDelete:
			delete(after, op.key)
		default:
			t, value, known := find(op.key, after)
			if !known {
				return nil, fmt.Errorf("unknown config name %q", op.key)
			}
			if t != TypeList {
				return nil, fmt.Errorf("cannot append to or subtract from config %s: it is of type %s, not a list", op.key, t)
			}
			after[strings.Clone(op.key)] = combine(value, *op.value, op.op)
		}
	}
	return after, nil
}

// combine adds words to a list, or takes them out. What is there already stays
// where it is.
func combine(list, words string, op kmsg.IncrementalAlterConfigOp) string {
	out := splitList(list)
	for _, w := range splitList(words) {
		switch at := slices.Index(out, w); {
		case op == kmsg.IncrementalAlterConfigOpAppend && at < 0:
			out = append(out, w)
		case op == kmsg.IncrementalAlterConfigOpSubtract && at >= 0:
			out = slices.Delete(out, at, at+1)
		}
	}
	return strings.Join(out, ",")
}
