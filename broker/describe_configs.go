package broker

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/coord"
	"millrace/wire"
)

// handleDescribeConfigs serves DescribeConfigs for topics, this broker and its
// loggers, groups, and subscriptions to clients' metrics: every key, what it is, and where that was said (F055).
func (b *Broker) handleDescribeConfigs(_ *requestContext, request kmsg.Request) kmsg.Response {
	req := request.(*kmsg.DescribeConfigsRequest)
	resp := req.ResponseKind().(*kmsg.DescribeConfigsResponse)
	for i := range req.Resources {
		asked := &req.Resources[i]
		r := kmsg.NewDescribeConfigsResponseResource()
		r.ResourceType, r.ResourceName = asked.ResourceType, asked.ResourceName
		var code int16
		var wrong string
		switch asked.ResourceType {
		case kmsg.ConfigResourceTypeTopic:
			r.Configs, code, wrong = b.describeTopic(req, asked)
		case kmsg.ConfigResourceTypeBroker:
			r.Configs, code, wrong = b.describeBroker(req, asked)
		case kmsg.ConfigResourceTypeBrokerLogger:
			r.Configs, code, wrong = b.describeLoggers(asked)
		default:
			if n := namedKindOf(asked.ResourceType); n != nil {
				r.Configs, code, wrong = b.describeNamed(n, req, asked)
			} else {
				code, wrong = wire.ErrInvalidRequest, fmt.Sprintf(noConfigs, asked.ResourceType)
			}
		}
		if r.ErrorCode = code; code != wire.ErrNone {
			r.ErrorMessage = &wrong
		}
		resp.Resources = append(resp.Resources, r)
	}
	return resp
}

// describer fills in what the request wants of each key.
type describer struct {
	keys     []string // wanted; none given means all
	synonyms bool
	docs     bool
}

func newDescriber(req *kmsg.DescribeConfigsRequest, asked *kmsg.DescribeConfigsRequestResource) describer {
	return describer{keys: asked.ConfigNames, synonyms: req.IncludeSynonyms, docs: req.IncludeDocumentation}
}

func (d *describer) wants(name string) bool {
	return len(d.keys) == 0 || slices.Contains(d.keys, name)
}

func (b *Broker) describeTopic(req *kmsg.DescribeConfigsRequest, asked *kmsg.DescribeConfigsRequestResource) (_ []kmsg.DescribeConfigsResponseResourceConfig, code int16, wrong string) {
	if wrong := coord.CheckName(asked.ResourceName); wrong != "" {
		return nil, wire.ErrInvalidTopic, wrong
	}
	topic := b.coord.Image().Topic(asked.ResourceName)
	if topic == nil {
		return nil, wire.ErrUnknownTopicOrPartition, fmt.Sprintf("topic %q does not exist", asked.ResourceName)
	}
	d := newDescriber(req, asked)
	config := b.configNow()
	out := make([]kmsg.DescribeConfigsResponseResourceConfig, 0, len(topicTable))
	for i := range topicTable {
		k := &topicTable[i]
		_, set := topic.Config[k.Name]
		if !d.wants(k.Name) || (k.Gone && !set) {
			continue
		}
		winner := k.value(config, topic.Config)
		c := d.describe(&k.ConfigKey, winner, k.synonyms(config, topic.Config))
		c.Value = &winner.Value // an empty default is a value too
		out = append(out, c)
	}
	return out, wire.ErrNone, ""
}

// describeBroker tells the broker's own keys, or, for the resource with no name,
// those that were set for all brokers while they ran.
func (b *Broker) describeBroker(req *kmsg.DescribeConfigsRequest, asked *kmsg.DescribeConfigsRequestResource) (_ []kmsg.DescribeConfigsResponseResourceConfig, code int16, wrong string) {
	d := newDescriber(req, asked)
	if asked.ResourceName == "" {
		return b.describeAllBrokers(&d), wire.ErrNone, ""
	}
	if code, wrong := b.checkOwnID(asked.ResourceName); code != wire.ErrNone {
		return nil, code, wrong
	}
	config := b.configNow()
	out := make([]kmsg.DescribeConfigsResponseResourceConfig, 0, len(configTable))
	for _, k := range ConfigKeys() {
		if !d.wants(k.Name) {
			continue
		}
		winner, synonyms := b.brokerValues(config, &k)
		out = append(out, d.describeOfBroker(&k, winner, synonyms))
	}
	for _, name := range unknownKeys(config.layers.own, config.layers.all) {
		if said := config.said(name); d.wants(name) {
			out = append(out, d.describeOfBroker(unknownKey(name), said[0], said))
		}
	}
	return out, wire.ErrNone, ""
}

func (b *Broker) describeAllBrokers(d *describer) []kmsg.DescribeConfigsResponseResourceConfig {
	out := []kmsg.DescribeConfigsResponseResourceConfig{}
	all := b.configNow().layers.all
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !d.wants(name) {
			continue
		}
		k := LookupConfigKey(name)
		if k == nil {
			k = unknownKey(name)
		}
		v := configValue{name, all[name], sourceCluster}
		out = append(out, d.describeOfBroker(k, v, []configValue{v}))
	}
	return out
}

// checkOwnID refuses the name of a broker that is not this one: only a broker
// itself knows its settings.
func (b *Broker) checkOwnID(name string) (code int16, wrong string) {
	id, err := strconv.ParseInt(name, 10, 32)
	switch {
	case err != nil:
		return wire.ErrInvalidRequest, fmt.Sprintf("the name of a broker must be its id, a whole number, or empty for all brokers; it is %q", name)
	case int32(id) != b.node:
		return wire.ErrInvalidRequest, fmt.Sprintf("this is broker %d, and only it can tell and change its own configs; asked for broker %q", b.node, name)
	}
	return wire.ErrNone, ""
}

// unknownKeys are keys of these layers that no row is for, sorted.
func unknownKeys(layers ...map[string]string) (out []string) {
	for _, layer := range layers {
		for name := range layer {
			if LookupConfigKey(name) == nil && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	slices.Sort(out)
	return out
}

// unknownKey stands for a key that was set and that we do not know. It may be a
// secret, so its value is not told.
func unknownKey(name string) *ConfigKey {
	return &ConfigKey{Name: name, Type: typeUnknown, Text: "not known here", Unsupported: true}
}

// typeUnknown is the type of a key without a row; it is number 0 on the wire.
const typeUnknown ConfigType = "unknown"

// brokerValues finds a broker key's value, and where it is said, the winner first:
// under this key, or one that names the same setting and is weaker.
func (b *Broker) brokerValues(config *Config, k *ConfigKey) (winner configValue, synonyms []configValue) {
	said := config.said(chainOf(k.Name)...)
	if k.Name == "node.id" || k.Name == "broker.id" { // what -1 turned out to be
		own := configValue{k.Name, strconv.Itoa(int(b.node)), sourceStatic}
		return own, append([]configValue{own}, slices.DeleteFunc(said, func(v configValue) bool { return v.Source != sourceDefault })...)
	}
	at := slices.IndexFunc(said, func(v configValue) bool { return v.Name == k.Name })
	if at < 0 {
		return configValue{k.Name, k.Default, sourceDefault}, nil
	}
	return said[at], said[at:]
}

func (d *describer) describeOfBroker(k *ConfigKey, winner configValue, synonyms []configValue) kmsg.DescribeConfigsResponseResourceConfig {
	c := d.describe(k, winner, synonyms)
	c.ReadOnly = scopeOf(k.Name) == dynamicNever
	return c
}

// describe tells one key, given its value and where that is said.
func (d *describer) describe(k *ConfigKey, winner configValue, synonyms []configValue) kmsg.DescribeConfigsResponseResourceConfig {
	secret := k.Type == TypePassword || k.Type == typeUnknown
	c := kmsg.NewDescribeConfigsResponseResourceConfig()
	c.Name = k.Name
	c.Source = kmsg.ConfigSource(winner.Source)
	c.IsDefault = winner.Source == sourceDefault // v0's way to say it
	c.IsSensitive = secret
	c.ConfigType = configTypes[k.Type]
	if !secret && (winner.Value != "" || winner.Source != sourceDefault) {
		c.Value = &winner.Value
	}
	if d.synonyms {
		for i := range synonyms {
			s := kmsg.NewDescribeConfigsResponseResourceConfigConfigSynonym()
			s.Name, s.Source = synonyms[i].Name, kmsg.ConfigSource(synonyms[i].Source)
			if !secret {
				s.Value = &synonyms[i].Value
			}
			c.ConfigSynonyms = append(c.ConfigSynonyms, s)
		}
	}
	if d.docs {
		doc := documentation(k)
		c.Documentation = &doc
	}
	return c
}

// documentation is the text a person sees: what it is for, what it may hold.
func documentation(k *ConfigKey) string {
	doc := k.Text
	if k.Unsupported {
		doc = "Accepted, without effect: " + doc
	}
	if k.Range != "" {
		doc += ". Allowed: " + k.Range
	}
	if k.Unit != "" {
		doc += " (" + k.Unit + ")"
	}
	return doc + "."
}

// configTypes are the numbers of the types on the wire (v3+).
var configTypes = map[ConfigType]kmsg.ConfigType{
	TypeBool:     kmsg.ConfigTypeBoolean,
	TypeString:   kmsg.ConfigTypeString,
	TypeInt:      kmsg.ConfigTypeInt,
	TypeShort:    kmsg.ConfigTypeShort,
	TypeLong:     kmsg.ConfigTypeLong,
	TypeDouble:   kmsg.ConfigTypeDouble,
	TypeList:     kmsg.ConfigTypeList,
	TypePassword: kmsg.ConfigTypePassword,
}
