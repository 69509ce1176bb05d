package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/magiconair/properties"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/tools/internal/client"
	"millrace/tools/internal/script"
)

// configChange is what is to be set and what is to be taken back.
type configChange struct {
	set    map[string]string
	remove []string
}

func (s *configsScript) change() (configChange, error) {
	c := configChange{set: map[string]string{}}
	for _, name := range strings.Split(s.remove, ",") {
		if name = strings.TrimSpace(name); name != "" {
			c.remove = append(c.remove, name)
		}
	}
	if s.addFile != "" {
		l := properties.Loader{Encoding: properties.UTF8, DisableExpansion: true}
		file, err := l.LoadFile(s.addFile)
		if err != nil {
			return c, err
		}
		c.set = file.Map()
		return c, nil
	}
	var err error
	c.set, err = parseAddConfig(s.add)
	return c, err
}

// parseAddConfig reads a=1,b=[x,y]; brackets hold a value with commas.
func parseAddConfig(text string) (map[string]string, error) {
	out := map[string]string{}
	depth, from := 0, 0
	for i := 0; i <= len(text); i++ {
		switch {
		case i < len(text) && text[i] == '[':
			depth++
		case i < len(text) && text[i] == ']':
			depth--
		case i == len(text) || text[i] == ',' && depth == 0:
			if pair := text[from:i]; strings.TrimSpace(pair) != "" {
				name, value, ok := strings.Cut(pair, "=")
				if !ok || strings.TrimSpace(name) == "" {
					return nil, &script.UsageError{Why: `requirement failed: Invalid entity config: all configs to be added must be in the format "key=val" or  "key=[val1,val2]" to group values which contain commas.`}
				}
				value = strings.TrimSpace(value)
				if strings.HasPrefix(value, "[") && strings.HasSuffix(value, "]") {
					value = value[1 : len(value)-1]
				}
				out[strings.TrimSpace(name)] = value
			}
			from = i + 1
		}
	}
	return out, nil
}

// resourceTypes are the types whose settings the config requests carry.
var resourceTypes = map[string]kmsg.ConfigResourceType{
	"topics": kmsg.ConfigResourceTypeTopic, "brokers": kmsg.ConfigResourceTypeBroker,
	"broker-loggers": kmsg.ConfigResourceTypeBrokerLogger, "groups": kmsg.ConfigResourceTypeGroupConfig,
	"client-metrics": kmsg.ConfigResourceTypeClientMetrics,
}

// ownSources are, by type, the source of a setting that was set for just that entity.
func ownSource(kind, name string) kmsg.ConfigSource {
	switch {
	case kind == "topics":
		return kmsg.ConfigSourceDynamicTopicConfig
	case kind == "brokers" && name == "":
		return kmsg.ConfigSourceDynamicDefaultBrokerConfig
	case kind == "brokers":
		return kmsg.ConfigSourceDynamicBrokerConfig
	case kind == "broker-loggers":
		return kmsg.ConfigSourceDynamicBrokerLoggerConfig
	case kind == "groups":
		return kmsg.ConfigSourceGroupConfig
	}
	return kmsg.ConfigSourceClientMetricsConfig
}

// askConfigs gets the settings of one entity.
func askConfigs(ctx context.Context, cl *client.Admin, kind, name string, synonyms bool) ([]kmsg.DescribeConfigsResponseResourceConfig, error) {
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.IncludeSynonyms = synonyms
	r := kmsg.NewDescribeConfigsRequestResource()
	r.ResourceType, r.ResourceName = resourceTypes[kind], name
	req.Resources = append(req.Resources, r)
	resp, err := req.RequestWith(ctx, cl.Raw)
	if err != nil {
		return nil, err
	}
	for _, r := range resp.Resources {
		if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
			return nil, refusedBy(err, text(r.ErrorMessage))
		}
		slices.SortFunc(r.Configs, func(a, b kmsg.DescribeConfigsResponseResourceConfig) int { return strings.Compare(a.Name, b.Name) })
		return r.Configs, nil
	}
	return nil, errors.New("the broker answered without settings")
}

// entityConfigs are the settings that were set for the entity, or all that count for it.
func entityConfigs(ctx context.Context, cl *client.Admin, kind, name string, all bool) ([]kmsg.DescribeConfigsResponseResourceConfig, error) {
	list, err := askConfigs(ctx, cl, kind, name, true)
	if err != nil || all {
		return list, err
	}
	own := ownSource(kind, name)
	return slices.DeleteFunc(list, func(c kmsg.DescribeConfigsResponseResourceConfig) bool { return c.Source != own }), nil
}

// sourceName is Kafka's name of a source; the client library shortens two of them.
func sourceName(s kmsg.ConfigSource) string {
	switch s {
	case kmsg.ConfigSourceGroupConfig, kmsg.ConfigSourceClientMetricsConfig:
		return "DYNAMIC_" + s.String()
	}
	return s.String()
}

// configLine is a setting as kafka-configs.sh shows it.
func configLine(c kmsg.DescribeConfigsResponseResourceConfig) string {
	value := "null"
	if c.Value != nil {
		value = *c.Value
	}
	var synonyms []string
	for _, s := range c.ConfigSynonyms {
		v := "null"
		if s.Value != nil {
			v = *s.Value
		}
		synonyms = append(synonyms, fmt.Sprintf("%s:%s=%s", sourceName(s.Source), s.Name, v))
	}
	return fmt.Sprintf("  %s=%s sensitive=%t synonyms={%s}", c.Name, value, c.IsSensitive, strings.Join(synonyms, ", "))
}

// entityNames are the entities to describe: the one named, or all of the type.
func entityNames(ctx context.Context, cl *client.Admin, e configEntity) ([]string, error) {
	if e.name != nil {
		return []string{*e.name}, nil
	}
	switch e.kind {
	case "topics":
		topics, err := cl.ListTopicsWithInternal(ctx)
		return topics.Names(), err
	case "brokers", "broker-loggers":
		brokers, err := cl.ListBrokers(ctx)
		var names []string
		for _, id := range brokers.NodeIDs() {
			names = append(names, strconv.Itoa(int(id)))
		}
		if e.kind == "brokers" {
			names = append(names, "")
		}
		return names, err
	case "groups":
		groups, err := consumerGroups(ctx, cl, nil, nil)
		if err != nil {
			return nil, err
		}
		var names []string
		for _, g := range groups {
			names = append(names, g.Group)
		}
		configured, err := configResources(ctx, cl, e.kind) // a group need not be there to have settings
		for _, name := range configured {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		return names, err
	}
	return configResources(ctx, cl, e.kind)
}

// configResources are the names of those of a type that have settings.
func configResources(ctx context.Context, cl *client.Admin, kind string) ([]string, error) {
	if err := client.NeedAPIs(ctx, cl, kmsg.ListConfigResources); err != nil {
		return nil, err
	}
	req := kmsg.NewPtrListConfigResourcesRequest()
	req.ResourceTypes = []int8{int8(resourceTypes[kind])}
	resp, err := req.RequestWith(ctx, cl.Raw)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, r := range resp.ConfigResources {
		names = append(names, r.Name)
	}
	return names, kerr.ErrorForCode(resp.ErrorCode)
}

// entityExists is Kafka's check of a name before it is described. A group, or a
// subscription to clients' metrics, is there if it has settings.
func entityExists(ctx context.Context, cl *client.Admin, kind, name string) (bool, error) {
	switch kind {
	case "topics":
		topics, err := cl.ListTopicsWithInternal(ctx, name)
		return err == nil && topics[name].Err == nil && len(topics[name].Partitions) > 0, err
	case "brokers", "broker-loggers":
		brokers, err := cl.ListBrokers(ctx)
		return slices.ContainsFunc(brokers.NodeIDs(), func(id int32) bool { return strconv.Itoa(int(id)) == name }), err
	}
	names, err := entityNames(ctx, cl, configEntity{kind: kind})
	return slices.Contains(names, name), err
}

// onlyLoggers refuses names that are no loggers of the broker.
func onlyLoggers(ctx context.Context, cl *client.Admin, e configEntity, change configChange) error {
	known, err := askConfigs(ctx, cl, e.kind, *e.name, false)
	if err != nil {
		return err
	}
	var wrong []string
	for _, name := range slices.Concat(change.remove, slices.Sorted(maps.Keys(change.set))) {
		if !slices.ContainsFunc(known, func(c kmsg.DescribeConfigsResponseResourceConfig) bool { return c.Name == name }) {
			wrong = append(wrong, name)
		}
	}
	if len(wrong) > 0 {
		return &plainError{"Invalid broker logger(s): " + strings.Join(wrong, ",")}
	}
	return nil
}

// alterEntity changes settings of a topic, a broker, a group and the like.
func alterEntity(ctx context.Context, cl *client.Admin, e configEntity, change configChange) error {
	if err := client.NeedAPIs(ctx, cl, kmsg.IncrementalAlterConfigs); err != nil {
		return err
	}
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	r := kmsg.NewIncrementalAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName = resourceTypes[e.kind], *e.name
	for name, value := range change.set {
		c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		c.Name, c.Op, c.Value = name, kmsg.IncrementalAlterConfigOpSet, kmsg.StringPtr(value)
		r.Configs = append(r.Configs, c)
	}
	for _, name := range change.remove {
		c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		c.Name, c.Op = name, kmsg.IncrementalAlterConfigOpDelete
		r.Configs = append(r.Configs, c)
	}
	req.Resources = append(req.Resources, r)
	resp, err := req.RequestWith(ctx, cl.Raw)
	if err != nil {
		return err
	}
	for _, r := range resp.Resources {
		if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
			return refusedBy(err, text(r.ErrorMessage))
		}
	}
	return nil
}
