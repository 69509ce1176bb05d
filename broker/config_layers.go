package broker

import (
	"fmt"
	"maps"
	"slices"

	"millrace/coord"
	"millrace/engine"
)

// configLayers is what was set while the broker runs, over server.properties:
// for this broker, and below it for all brokers. Never changed in place.
type configLayers struct {
	own, all map[string]string
}

func layersOf(img *coord.Image, node int32) configLayers {
	return configLayers{own: img.BrokerConfig(node), all: img.DefaultConfig()}
}

func (l configLayers) equal(o configLayers) bool {
	return maps.Equal(l.own, o.own) && maps.Equal(l.all, o.all)
}

// configLayer is one place where settings are said.
type configLayer struct {
	values map[string]string
	source int8
}

// sources are the layers, the strongest first.
func (c *Config) sources() [3]configLayer {
	return [3]configLayer{{c.layers.own, sourceBroker}, {c.layers.all, sourceCluster}, {c.values, sourceStatic}}
}

// given finds where a setting was said that any of these keys names. A higher
// layer wins whatever key it uses: retention in hours, set for this broker, beats
// retention in milliseconds in the file. Within a layer the first key wins. ok is
// false if only the default is left.
func (c *Config) given(keys ...string) (v configValue, ok bool) {
	for _, layer := range c.sources() {
		for _, key := range keys {
			if v, ok := layer.values[key]; ok {
				return configValue{key, v, layer.source}, true
			}
		}
	}
	return v, false
}

// said lists all places where a setting was said, in given's order, and last the
// keys' own defaults, where they have one.
func (c *Config) said(keys ...string) (out []configValue) {
	for _, layer := range c.sources() {
		for _, key := range keys {
			if v, ok := layer.values[key]; ok {
				out = append(out, configValue{key, v, layer.source})
			}
		}
	}
	for _, key := range keys {
		if row := LookupConfigKey(key); row != nil && row.Default != "" {
			out = append(out, configValue{key, row.Default, sourceDefault})
		}
	}
	return out
}

// withLayers is the configuration with these layers over it. What cannot be
// taken (written by another version) is left out, and told.
func (c *Config) withLayers(l configLayers) (Config, []error) {
	next := *c
	next.layers = configLayers{}
	var wrong []error
	keep := func(layer map[string]string, scope dynamicScope) map[string]string {
		out := maps.Clone(layer)
		for _, key := range slices.Sorted(maps.Keys(layer)) {
			if err := next.setDynamic(key, layer[key], scope); err != nil {
				wrong = append(wrong, err)
				delete(out, key)
			}
		}
		return out
	}
	next.layers.all = keep(l.all, dynamicCluster) // below, so that the other comes over it
	next.layers.own = keep(l.own, dynamicBroker)
	return next, wrong
}

// setDynamic checks a value and sets the field behind it. A key that nobody
// knows is kept for whoever does, as Kafka does.
func (c *Config) setDynamic(key, value string, scope dynamicScope) error {
	row := LookupConfigKey(key)
	if row == nil {
		return nil
	}
	if err := checkScope(key, scope); err != nil {
		return err
	}
	if err := row.check(c, value); err != nil {
		return fmt.Errorf("invalid value %q for broker config %s: %w", value, key, err)
	}
	return nil
}

// liveConfig is the configuration in force. Never changed once it is published;
// a change of the layers publishes another.
type liveConfig struct {
	Config
	plain topicSettings // of a topic without any of its own
	asked configLayers  // as coordination has them, with what was left out
}

// adoptLayers puts layers in force. A setting that contradicts another one (only
// another version can have written it) is told; the logs then have defaults for it.
func (b *Broker) adoptLayers(l configLayers) {
	config, wrong := b.config.withLayers(l)
	live := &liveConfig{Config: config, asked: l}
	var err error
	if live.plain, err = live.topicSettings(nil); err != nil {
		wrong = append(wrong, err)
	}
	for _, err := range wrong {
		b.log.Error("a dynamic setting of the broker is wrong and left out", "error", err)
	}
	b.live.Store(live)
	if b.store != nil {
		b.store.SetMoveRate(config.Storage.MoveRate)
		b.store.SetScrubRate(config.Storage.ScrubRate)
		if err := b.store.SetCleaner(config.Storage.cleaner()); err != nil {
			b.log.Error("the cleaner goes on as before", "error", err)
		}
	}
}

// cleaner is how compacted logs are cleaned.
func (c *StorageConfig) cleaner() engine.CleanerConfig {
	cleaner := c.Cleaner
	if !c.CleanerEnable {
		cleaner.Threads = 0
	}
	return cleaner
}

// configNow is the configuration in force, the dynamic layers included. Not to be
// changed.
func (b *Broker) configNow() *Config { return &b.live.Load().Config }
