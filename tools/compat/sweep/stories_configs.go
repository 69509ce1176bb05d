package sweep

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/wire"
)

// Kinds of config resources.
const (
	ofTopic   = kmsg.ConfigResourceTypeTopic
	ofBroker  = kmsg.ConfigResourceTypeBroker
	ofLoggers = kmsg.ConfigResourceTypeBrokerLogger
	ofClients = kmsg.ConfigResourceTypeClientMetrics
	ofGroup   = kmsg.ConfigResourceTypeGroupConfig
)

func describeConfigs(name string, kind kmsg.ConfigResourceType, resource string, keys ...string) step {
	return ask(name, kmsg.NewPtrDescribeConfigsRequest, func(c *moment, r *kmsg.DescribeConfigsRequest) {
		r.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: kind, ResourceName: c.its(resource), ConfigNames: keys}}
		r.IncludeSynonyms, r.IncludeDocumentation = true, true
	})
}

// setting is one key of an alteration; value nil is null.
type setting struct {
	key   string
	op    kmsg.IncrementalAlterConfigOp
	value *string
}

func alter(name string, validate bool, kind kmsg.ConfigResourceType, resource string, settings ...setting) step {
	return ask(name, kmsg.NewPtrAlterConfigsRequest, func(c *moment, r *kmsg.AlterConfigsRequest) {
		res := kmsg.AlterConfigsRequestResource{ResourceType: kind, ResourceName: c.its(resource)}
		for _, s := range settings {
			res.Configs = append(res.Configs, kmsg.AlterConfigsRequestResourceConfig{Name: s.key, Value: s.value})
		}
		r.ValidateOnly, r.Resources = validate, []kmsg.AlterConfigsRequestResource{res}
	})
}

func increment(name string, validate bool, kind kmsg.ConfigResourceType, resource string, settings ...setting) step {
	return ask(name, kmsg.NewPtrIncrementalAlterConfigsRequest, func(c *moment, r *kmsg.IncrementalAlterConfigsRequest) {
		res := kmsg.IncrementalAlterConfigsRequestResource{ResourceType: kind, ResourceName: c.its(resource)}
		for _, s := range settings {
			res.Configs = append(res.Configs, kmsg.IncrementalAlterConfigsRequestResourceConfig{Name: s.key, Op: s.op, Value: s.value})
		}
		r.ValidateOnly, r.Resources = validate, []kmsg.IncrementalAlterConfigsRequestResource{res}
	})
}

func is(key, value string) setting { return setting{key, 0, &value} }

// has waits until a described key has a value.
func has(key, value string) func(r kmsg.Response) bool {
	return func(r kmsg.Response) bool {
		for _, res := range r.(*kmsg.DescribeConfigsResponse).Resources {
			for _, c := range res.Configs {
				if c.Name == key {
					return c.Value != nil && *c.Value == value
				}
			}
		}
		return false
	}
}

const (
	opSet kmsg.IncrementalAlterConfigOp = iota
	opDelete
	opAppend
	opSubtract
)

// brokerKeys are keys of a broker that both sides have the same values of.
var brokerKeys = []string{"log.retention.hours", "log.segment.bytes", "message.max.bytes", "num.partitions", "auto.create.topics.enable", "compression.type", "min.insync.replicas", "log.cleanup.policy",
	"group.max.size", "offsets.retention.minutes", "socket.request.max.bytes", "no.such.key"}

func describeConfigsStory() story {
	var all []step
	all = append(all, createTopic("set~", 1, "retention.ms", "5000", "cleanup.policy", "compact,delete"), learn("set~"),
		describeConfigs("a topic, all", ofTopic, "t"), describeConfigs("a topic with overrides", ofTopic, "set~"), describeConfigs("two keys", ofTopic, "set~", "retention.ms", "no.such.key"),
		describeConfigs("an unknown topic", ofTopic, "nowhere"), describeConfigs("an invalid name", ofTopic, "no/slash"), describeConfigs("no name", ofTopic, ""),
		describeConfigs("a broker, some", ofBroker, fmt.Sprint(node), brokerKeys...), describeConfigs("the cluster's default, some", ofBroker, "", brokerKeys...),
		describeConfigs("a broker that is not there", ofBroker, "99", "num.partitions"), describeConfigs("a broker by a word", ofBroker, "one", "num.partitions"),
		describeConfigs("a group", ofGroup, "g"), describeConfigs("client metrics", ofClients, "cm"), describeConfigs("an unknown kind", 77, "x"), describeConfigs("the unknown kind", 0, "x"),
		describeConfigs("a broker's loggers, by a word", ofLoggers, "one"),
		ask("one twice", kmsg.NewPtrDescribeConfigsRequest, func(c *moment, r *kmsg.DescribeConfigsRequest) {
			one := kmsg.DescribeConfigsRequestResource{ResourceType: ofTopic, ResourceName: "t", ConfigNames: []string{"retention.ms"}}
			r.Resources = []kmsg.DescribeConfigsRequestResource{one, one}
		}),
		ask("no keys", kmsg.NewPtrDescribeConfigsRequest, func(c *moment, r *kmsg.DescribeConfigsRequest) {
			r.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: ofTopic, ResourceName: "t", ConfigNames: []string{}}}
		}),
		ask("nothing", kmsg.NewPtrDescribeConfigsRequest, nil))
	return story{name: "describe configs", about: []int16{wire.KeyDescribeConfigs}, steps: all}
}

func alterStory() story {
	var all []step
	all = append(all, createTopic("alter~", 1, "cleanup.policy", "compact"), learn("alter~"),
		alter("a topic, only checked", true, ofTopic, "alter~", is("retention.ms", "7000")), alter("a topic", false, ofTopic, "alter~", is("retention.ms", "7000")),
		describeConfigs("the rest is gone", ofTopic, "alter~", "retention.ms", "cleanup.policy").when(has("retention.ms", "7000")),
		alter("a null value", false, ofTopic, "alter~", setting{key: "retention.ms"}), alter("an unknown key", false, ofTopic, "alter~", is("no.such.key", "1")), alter("a bad value", false, ofTopic, "alter~", is("retention.ms", "soon")),
		alter("a key twice", false, ofTopic, "alter~", is("retention.ms", "1"), is("retention.ms", "2")),
		alter("an unknown topic", false, ofTopic, "nowhere", is("retention.ms", "1")), alter("an invalid name", false, ofTopic, "no/slash", is("retention.ms", "1")), alter("no name", false, ofTopic, "", is("retention.ms", "1")),
		alter("an unknown kind", false, 77, "x", is("a", "b")), alter("no keys", false, ofTopic, "alter~"),
		alter("a broker, only checked", true, ofBroker, fmt.Sprint(node), is("log.retention.ms", "604800000")), alter("a broker that is not there", true, ofBroker, "99", is("log.retention.ms", "1")), alter("a broker by a word", true, ofBroker, "one", is("log.retention.ms", "1")),
		alter("a broker's key that cannot change", true, ofBroker, fmt.Sprint(node), is("socket.request.max.bytes", "1000")), alter("a broker's bad value", true, ofBroker, fmt.Sprint(node), is("message.max.bytes", "x")),
		ask("one twice", kmsg.NewPtrAlterConfigsRequest, func(c *moment, r *kmsg.AlterConfigsRequest) {
			one := kmsg.AlterConfigsRequestResource{ResourceType: ofTopic, ResourceName: c.its("alter~"), Configs: []kmsg.AlterConfigsRequestResourceConfig{{Name: "retention.ms", Value: ptr("9")}}}
			r.Resources = []kmsg.AlterConfigsRequestResource{one, one}
		}).since(2).within(2*time.Second),
		ask("nothing", kmsg.NewPtrAlterConfigsRequest, nil))
	return story{name: "alter configs", about: []int16{wire.KeyAlterConfigs}, steps: all}
}

func incrementStory() story {
	policy := func(op kmsg.IncrementalAlterConfigOp, value string) setting {
		return setting{"cleanup.policy", op, &value}
	}
	var all []step
	all = append(all, createTopic("inc~", 1), learn("inc~"),
		increment("set, only checked", true, ofTopic, "inc~", is("retention.ms", "7000")), increment("set", false, ofTopic, "inc~", is("retention.ms", "7000")), increment("append", false, ofTopic, "inc~", policy(opAppend, "compact")),
		describeConfigs("both are there", ofTopic, "inc~", "retention.ms", "cleanup.policy").when(has("cleanup.policy", "delete,compact")),
		increment("append again", false, ofTopic, "inc~", policy(opAppend, "compact")), increment("subtract", false, ofTopic, "inc~", policy(opSubtract, "delete")), increment("subtract what is not there", false, ofTopic, "inc~", policy(opSubtract, "delete")),
		describeConfigs("one is left", ofTopic, "inc~", "cleanup.policy").when(has("cleanup.policy", "compact")),
		increment("append to what is no list", false, ofTopic, "inc~", setting{"retention.ms", opAppend, ptr("1")}), increment("delete", false, ofTopic, "inc~", setting{key: "retention.ms", op: opDelete}), increment("delete again", false, ofTopic, "inc~", setting{key: "retention.ms", op: opDelete}),
		describeConfigs("the default is back", ofTopic, "inc~", "retention.ms").when(has("retention.ms", "-1")),
		increment("set null", false, ofTopic, "inc~", setting{key: "retention.ms", op: opSet}), increment("an unknown operation", false, ofTopic, "inc~", setting{"retention.ms", 9, ptr("1")}), increment("an unknown key", false, ofTopic, "inc~", is("no.such.key", "1")),
		increment("a bad value", false, ofTopic, "inc~", is("retention.ms", "soon")), increment("a bad list", false, ofTopic, "inc~", policy(opAppend, "burn")), increment("a key twice", false, ofTopic, "inc~", is("retention.ms", "1"), is("retention.ms", "2")),
		increment("an unknown topic", false, ofTopic, "nowhere", is("retention.ms", "1")), increment("an invalid name", false, ofTopic, "no/slash", is("retention.ms", "1")), increment("no name", false, ofTopic, "", is("retention.ms", "1")),
		increment("an unknown kind", false, 77, "x", is("a", "b")), increment("no keys", false, ofTopic, "inc~"),
		increment("a broker, only checked", true, ofBroker, fmt.Sprint(node), is("log.retention.ms", "604800000")), increment("all brokers, only checked", true, ofBroker, "", is("log.retention.ms", "604800000")),
		increment("a broker that is not there", true, ofBroker, "99", is("log.retention.ms", "1")), increment("a broker by a word", true, ofBroker, "one", is("log.retention.ms", "1")),
		increment("a broker's key that cannot change", true, ofBroker, fmt.Sprint(node), is("socket.request.max.bytes", "1000")), increment("a broker's bad value", true, ofBroker, fmt.Sprint(node), is("message.max.bytes", "x")),
		increment("a group", false, ofGroup, "ig~", is("consumer.session.timeout.ms", "50000")), increment("a group's unknown key", false, ofGroup, "ig~", is("no.such.key", "1")), increment("a group's bad value", false, ofGroup, "ig~", is("consumer.session.timeout.ms", "1")), increment("no group", false, ofGroup, "", is("consumer.session.timeout.ms", "50000")),
		describeConfigs("the group's", ofGroup, "ig~", "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms").when(has("consumer.session.timeout.ms", "50000")),
		increment("the group's, deleted", false, ofGroup, "ig~", setting{key: "consumer.session.timeout.ms", op: opDelete}),
		ask("one twice", kmsg.NewPtrIncrementalAlterConfigsRequest, func(c *moment, r *kmsg.IncrementalAlterConfigsRequest) {
			one := kmsg.IncrementalAlterConfigsRequestResource{ResourceType: ofTopic, ResourceName: c.its("inc~"), Configs: []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: "retention.ms", Value: ptr("9")}}}
			r.Resources = []kmsg.IncrementalAlterConfigsRequestResource{one, one}
		}),
		ask("nothing", kmsg.NewPtrIncrementalAlterConfigsRequest, nil))
	return story{name: "change configs", about: []int16{wire.KeyIncrementalAlterConfigs}, steps: all}
}

func resourcesStory() story {
	list := func(name string, kinds ...int8) step {
		return ask(name, kmsg.NewPtrListConfigResourcesRequest, func(c *moment, r *kmsg.ListConfigResourcesRequest) { r.ResourceTypes = kinds })
	}
	return story{name: "config resources", steps: []step{list("client metrics", int8(ofClients)), list("brokers", int8(ofBroker)).since(1), list("an unknown kind", 77).since(1), list("groups", int8(ofGroup)).since(1), list("loggers", int8(ofLoggers)).since(1)}}
}

func configStories() []story {
	return []story{describeConfigsStory(), alterStory(), incrementStory(), resourcesStory()}
}
