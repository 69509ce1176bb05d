package broker

import (
	"log/slog"

	"millrace/coord"
	"millrace/engine"
	"millrace/replica"
)

// images follows coordination: each new Image becomes logs on disk and roles of
// partitions, before clients can see it (see coord.Service.Subscribe).
type images struct {
	b    *Broker
	last *coord.Image // what was applied last; nil at first

	unsynced, retained []*engine.Log // to be synced, to have retention applied, see settle
}

// apply is the subscriber. Calls come one at a time.
func (s *images) apply(img *coord.Image) {
	before := s.last
	changed, removed := s.difference(img)
	if layers := layersOf(img, s.b.node); !layers.equal(s.b.live.Load().asked) {
		// Defaults of all topics may be others now.
		s.b.adoptLayers(layers)
		changed = topicsOf(img)
	}
	if before == nil || !coord.SameQuotas(before, img) {
		s.b.quotas.adopt(img.Quotas())
	}
	s.last = img
	if len(changed) == 0 && len(removed) == 0 {
		return
	}
	// Roles end before logs go, and logs are there before roles begin. A topic
	// that was deleted and made anew is in both lists.
	if len(removed) > 0 {
		if err := s.b.replicas.Apply(nil, removed); err != nil {
			s.b.log.Error("partitions could not leave", "error", err)
		}
		for _, name := range removed {
			if err := s.b.store.Delete(name, s.logsOf(before.Topic(name))...); err != nil {
				s.b.log.Error("deleting a topic's logs failed; they will be deleted at the next start", "topic", name, "error", err)
			}
		}
	}
	s.clearAway(changed)
	states := make([]replica.TopicState, 0, len(changed))
	specs := make([]engine.LogSpec, 0, len(changed))
	for _, t := range changed {
		settings := s.b.settingsOf(t.Name, t.Config)
		states = append(states, stateOf(t, settings.Policy))
		if spec := s.missing(before, t, settings.Log); len(spec.Partitions) > 0 {
			specs = append(specs, spec)
		}
		for i := range t.Partitions {
			if log := s.b.store.Log(t.Name, int32(i)); log != nil {
				s.configure(log, settings.Log)
			}
		}
	}
	s.create(specs)
	if err := s.b.replicas.Apply(states, nil); err != nil {
		s.b.log.Error("partitions could not take their role", "error", err)
	}
	s.settle()
}

// configure gives a log other settings, which hold from now on. What follows from
// them is left for settle.
func (s *images) configure(log *engine.Log, next engine.Config) {
	before := log.Config()
	if before == next {
		return
	}
	log.SetConfig(next)
	if before.Durability == engine.PageCache && next.Durability == engine.Sync {
		s.unsynced = append(s.unsynced, log)
	}
	if before.RetentionAge != next.RetentionAge || before.RetentionBytes != next.RetentionBytes || before.Delete != next.Delete {
		s.retained = append(s.retained, log)
	}
}

// settle does what changed settings ask for. A log that is synced from now on shows
// readers only what is synced, so what it held before is synced here, all logs in
// one round: else it would be hidden until the next append.
func (s *images) settle() {
	for _, log := range s.unsynced {
		if err := log.Sync(); err != nil {
			s.b.log.Error("what a log held when its durability became sync could not be synced", "log", log.Dir(), "error", err)
		}
	}
	s.b.retention.add(s.retained...)
	s.unsynced, s.retained = nil, nil
}

func topicsOf(img *coord.Image) []*coord.Topic {
	out := make([]*coord.Topic, 0, len(img.Names()))
	for _, name := range img.Names() {
		out = append(out, img.Topic(name))
	}
	return out
}

// clearAway deletes logs that stand where a topic made anew needs its own: what
// a deletion that failed has left behind. They must never be taken for the new topic's.
func (s *images) clearAway(changed []*coord.Topic) {
	for _, t := range changed {
		for i := range t.Partitions {
			log := s.b.store.Log(t.Name, int32(i))
			if log == nil || log.ID().Topic == t.ID {
				continue
			}
			if err := s.b.store.Delete(t.Name, int32(i)); err != nil {
				s.b.log.Error("the log of a deleted topic of the same name could not be removed; the partition is offline until the next start",
					"topic", t.Name, "partition", i, "error", err)
			}
		}
	}
}

// create makes logs: all at once, since that costs one sync; if that fails, topic
// by topic, so that one that cannot be made costs only itself.
func (s *images) create(specs []engine.LogSpec) {
	if len(specs) == 0 {
		return
	}
	err := s.b.store.Create(specs...)
	if err != nil && len(specs) > 1 {
		for _, spec := range specs {
			s.create([]engine.LogSpec{spec})
		}
		return
	}
	if err != nil {
		s.b.log.Error("a topic's logs could not be made; its partitions are offline until the next start", "topic", specs[0].Topic, "error", err)
		s.b.notMade.Store(specs[0].Topic, err) // for the client that asks for it (createTopics)
	}
}

// difference lists the topics that are new or other than before, and the names
// of those that went, including those made anew.
func (s *images) difference(img *coord.Image) (changed []*coord.Topic, removed []string) {
	for _, name := range img.Names() {
		t := img.Topic(name)
		var before *coord.Topic
		if s.last != nil {
			before = s.last.Topic(name)
		}
		if before == t {
			continue
		}
		if before != nil && before.ID != t.ID {
			removed = append(removed, name)
		}
		changed = append(changed, t)
	}
	if s.last != nil {
		for _, name := range s.last.Names() {
			if img.Topic(name) == nil {
				removed = append(removed, name)
			}
		}
	}
	return changed, removed
}

// logsOf lists the partitions of a topic that have logs here, and those that were made
// for it and that it never came to have (see makeNewLogs).
func (s *images) logsOf(t *coord.Topic) []int32 {
	var out []int32
	for i := int32(0); ; i++ {
		log := s.b.store.Log(t.Name, i)
		if log != nil && (int(i) < len(t.Partitions) || log.ID().Topic == t.ID) {
			out = append(out, i)
		} else if int(i) >= len(t.Partitions) {
			return out
		}
	}
}

// missing is what must be made so that all of the topic's partitions that this
// broker has replicas of have a log.
func (s *images) missing(before *coord.Image, t *coord.Topic, config engine.Config) engine.LogSpec {
	// What was not in the image before is being made now; at the start anything may lie in a directory that is offline.
	known := before == nil || before.Topic(t.Name) != nil && before.Topic(t.Name).ID == t.ID
	spec := engine.LogSpec{Topic: t.Name, TopicID: t.ID, Config: config, New: !known}
	damaged := map[int32]bool{}
	for _, d := range s.b.store.Damaged() {
		if d.Topic == t.Name {
			damaged[d.Partition] = true // set aside: never replaced by an empty one
		}
	}
	for i, p := range t.Partitions {
		index := int32(i)
		for _, replica := range p.Replicas {
			if replica == s.b.node && s.b.store.Log(t.Name, index) == nil && !damaged[index] {
				spec.Partitions = append(spec.Partitions, index)
			}
		}
	}
	return spec
}

func stateOf(t *coord.Topic, policy replica.Policy) replica.TopicState {
	s := replica.TopicState{Name: t.Name, ID: t.ID, Policy: policy, Partitions: make([]replica.PartitionState, 0, len(t.Partitions))}
	for i, p := range t.Partitions {
		s.Partitions = append(s.Partitions, replica.PartitionState{Index: int32(i), Leader: p.Leader, Epoch: p.Epoch, Replicas: p.Replicas, InSync: p.ISR})
	}
	return s
}

// settingsOf resolves a topic's settings. Those that cannot be read (written by
// another version) fall back to defaults, with a line in the log. Most topics
// have no settings of their own, and a start asks for each of thousands.
func (b *Broker) settingsOf(topic string, overrides map[string]string) topicSettings {
	live := b.live.Load()
	if len(overrides) == 0 {
		return live.plain
	}
	settings, err := live.topicSettings(overrides)
	if err != nil {
		b.log.Log(b.ctx, slog.LevelError, "a topic's settings are wrong; using defaults for those", "topic", topic, "error", err)
	}
	return settings
}
