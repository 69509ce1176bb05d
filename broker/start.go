package broker

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime/debug"

	"millrace/coord"
	"millrace/coord/controller"
	"millrace/coord/topicsfile"
	"millrace/engine"
	"millrace/engine/checkpoint"
	"millrace/engine/vfs"
	"millrace/replica"
)

// Start opens the data directories, recovers them, and serves. When it returns
// without error the broker takes requests; with an error, nothing is left
// running. ctx bounds the start only.
//
// The order: addresses are bound first, since a port in use should not be found
// after a long recovery; then the logs; then roles; connections are taken last.
func Start(ctx context.Context, config Config) (_ *Broker, err error) {
	b, err := newBroker(config)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			b.abandon()
		}
	}()
	if err := b.bind(ctx); err != nil {
		return nil, err
	}
	if err := b.openStorage(ctx); err != nil {
		return nil, err
	}
	if err := b.takeRoles(ctx); err != nil {
		return nil, err
	}
	if err := b.newEpochs(ctx); err != nil {
		return nil, err
	}
	b.tellLimits()
	b.ready = b.readiness()
	b.serve()
	return b, nil
}

func newBroker(config Config) (*Broker, error) {
	if config.Socket.RequestMax == 0 { // not made by LoadConfig or DefaultConfig
		return nil, &ConfigError{"socket.request.max.bytes", "0", "a Config begins with DefaultConfig or LoadConfig"}
	}
	warnings, err := config.finish()
	if err != nil {
		return nil, err
	}
	if config.checked {
		warnings = nil // whoever loaded it has them
	}
	budget := config.Socket.QueuedBytes
	switch least := largestCharge(config.Socket.RequestMax); {
	case budget <= 0:
		budget = defaultBudget(config.Socket.RequestMax)
	case budget < least:
		warnings = append(warnings, Warning{"queued.max.request.bytes", fmt.Sprintf("%d is too little for one frame of socket.request.max.bytes=%d; a frame that large will go over it", budget, config.Socket.RequestMax)})
	}
	b := &Broker{
		config:   config,
		levels:   newLogLevels(config.logger()),
		now:      config.now(),
		budget:   newBudget(budget),
		buffers:  &buffers{keep: budget / 4},
		conns:    newConnections(),
		meters:   newMeters(config.Now != nil),
		stopping: make(chan struct{}),
		stopped:  make(chan struct{}),
	}
	b.log = b.levels.logger(logBroker)
	if _, err = b.config.topicSettings(nil); err != nil {
		return nil, err
	}
	b.adoptLayers(configLayers{})
	b.sessions = newFetchSessions(config.Fetch.SessionSlots, b.now)
	b.quotas = newQuotas(config.Quotas)
	b.retention = newRetainSoon()
	b.telemetry = newTelemetry(config.TelemetryMax)
	b.ctx, b.cancel = context.WithCancel(context.Background())
	for _, w := range warnings {
		b.log.Warn("configuration: " + w.String())
	}
	return b, nil
}

// abandon undoes a start that failed.
func (b *Broker) abandon() {
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	b.closeListeners()
	if b.groups != nil {
		b.groups.Close()
	}
	if b.coord != nil {
		_ = b.coord.Close()
	}
	if b.store != nil {
		_ = b.store.Close(ctx)
	}
	if b.built != nil {
		_ = b.built.Close()
	}
	b.cancel()
}

func (b *Broker) bind(ctx context.Context) error {
	for i, l := range b.config.Listeners {
		bound, err := listen(ctx, l)
		if err != nil {
			return err
		}
		b.listeners = append(b.listeners, bound)
		if b.config.Advertised[i].Port == 0 {
			b.config.Advertised[i].Port = bound.port()
		}
	}
	if b.config.Admin == "" {
		return nil
	}
	admin, err := newHealth(ctx, b, b.config.Admin)
	if address, given := b.config.Get("admin.listener"); err != nil && !given && b.config.Admin == address {
		// Another broker on this machine may have it: no reason not to serve clients.
		b.log.Warn("no /metrics, /healthz and /readyz: the default address of admin.listener is taken; give this broker one of its own", "admin.listener", b.config.Admin, "error", err)
		return nil
	}
	b.health = admin
	return err
}

// openStorage finds out who we are, opens what coordination keeps, and the logs.
func (b *Broker) openStorage(ctx context.Context) error {
	fsys := b.config.fs()
	metas := map[string]checkpoint.Meta{}
	clean := true
	for _, dir := range b.config.LogDirs {
		if err := fsys.MkdirAll(dir); err != nil {
			b.log.Error("a data directory cannot be made", "dir", dir, "error", err)
			continue // the store goes on without it
		}
		if m, ok, err := checkpoint.ReadMeta(fsys, dir); err == nil && ok {
			metas[dir] = m
			_, err := fsys.Stat(filepath.Join(dir, checkpoint.CleanName))
			clean = clean && err == nil
		}
	}
	node, cluster, err := checkpoint.Agree(metas, b.config.LogDirs, b.config.NodeID, b.config.ClusterID)
	if err != nil {
		return err
	}
	b.node = max(node, 0)
	service, old, err := b.openCoordination(ctx, cluster)
	if err != nil {
		return err
	}
	b.unclean = !clean
	image := service.Image()
	b.adoptLayers(layersOf(image, b.node))
	b.store, err = engine.OpenStore(ctx, engine.StoreOptions{
		FS: b.config.FS, IO: vfs.IO(b.config.Storage.IO), Dirs: b.config.LogDirs, NotLogs: []string{coordinationFolder}, BrokerID: b.node, ClusterID: image.ClusterID(),
		Journal: b.config.Storage.Journal, JournalDir: b.config.Storage.JournalDir, JournalThreshold: b.config.Storage.JournalThreshold,
		RetentionCheck: b.config.Storage.RetentionCheck, CheckpointEvery: b.config.Storage.CheckpointEvery,
		RecoveryThreads: b.configNow().Storage.RecoveryThreads, IndexMaps: b.config.Storage.IndexMaps,
		Cleaner: b.configNow().Storage.cleaner(), MinFree: b.config.Storage.MinFree, MoveThreads: b.config.Storage.MoveThreads, MoveRate: max(1, b.configNow().Storage.MoveRate),
		ScrubRate: b.configNow().Storage.ScrubRate,
		Logger:    b.levels.logger(logEngine), Now: b.now,
		ConfigFor: func(topic string) engine.Config {
			settings := b.settingsOf(topic, overridesOf(image, topic)).Log
			if service.Fresh() { // nobody knows the settings of logs that are found, and nothing may be deleted for it
				settings.RetentionAge, settings.RetentionBytes = -1, -1
			}
			return settings
		},
		DirOffline: func(dir string, err error) {
			b.log.Error("a data directory failed and is offline until the next start; its partitions take no more records", "dir", dir, "error", err)
		},
	})
	if err != nil {
		return err
	}
	b.store.SetMoveRate(b.configNow().Storage.MoveRate) // 0 halts moves, which the option cannot say
	for _, d := range b.store.Damaged() {
		b.log.Error("a log is damaged and was set aside; its files are untouched", "dir", d.Dir, "topic", d.Topic, "partition", d.Partition, "error", d.Err)
	}
	return b.adopt(ctx, service, old)
}

// newEpochs raises leader epochs where an unclean stop may have lost records.
func (b *Broker) newEpochs(ctx context.Context) error {
	if !b.unclean || !b.mayHaveLost(b.coord.Image()) {
		return nil
	}
	return b.coord.(*controller.Service).BumpEpochs(ctx)
}

// mayHaveLost reports whether an unclean stop may have taken records that
// readers saw: those of page-cache topics, if the machine went down. Then
// offsets are given out anew, and readers can tell by the epoch. A synced topic
// shows nothing that is not on disk, and needs no new epoch (which would cost a
// sync for each partition).
func (b *Broker) mayHaveLost(image *coord.Image) bool {
	for _, name := range image.Names() {
		if b.settingsOf(name, image.Topic(name).Config).Log.Durability == engine.PageCache {
			return true
		}
	}
	return false
}

func overridesOf(image *coord.Image, topic string) map[string]string {
	if t := image.Topic(topic); t != nil {
		return t.Config
	}
	return nil
}

// adopt brings what is on disk and what coordination knows together.
func (b *Broker) adopt(ctx context.Context, service *controller.Service, old *topicsfile.File) error {
	producers := int64(0)
	if service.Fresh() {
		var err error
		if producers, err = b.freeProducerIDs(); err != nil {
			return err
		}
	}
	var found []coord.Found
	for _, log := range b.store.Logs() {
		id := log.ID()
		found = append(found, coord.Found{Topic: log.Topic(), ID: id.Topic, Partition: log.Partition(), Epoch: int32(log.Epoch())})
	}
	for _, d := range b.store.Damaged() { // still the topic's
		found = append(found, coord.Found{Topic: d.Topic, Partition: d.Partition})
	}
	a, err := service.Adopt(ctx, found, producers)
	if err != nil {
		return err
	}
	if len(a.Adopted) > 0 {
		b.log.Info("took over the topics found in the data directories", "topics", len(a.Adopted))
	}
	if old != nil {
		a = leftBehind(a, old)
	}
	for _, f := range a.Leftovers {
		if err := b.store.Delete(f.Topic, f.Partition); err != nil {
			b.log.Error("the rest of a deleted topic could not be removed", "topic", f.Topic, "partition", f.Partition, "error", err)
		}
	}
	for _, f := range a.Strays {
		if b.wasBeingMade(service.Image(), f) {
			if b.store.Delete(f.Topic, f.Partition) == nil {
				continue
			}
		}
		b.log.Warn("a log belongs to no topic; left as it is", "topic", f.Topic, "partition", f.Partition, "id", coord.IDText(f.ID))
	}
	if old != nil {
		return b.putAway()
	}
	return nil
}

// wasBeingMade reports whether a log is what a growth has left that was cut off between making the logs (coord.MorePartitions.Prepare) and writing that
// they are there: one of a topic that we know, behind its last partition, that never had a record.
func (b *Broker) wasBeingMade(image *coord.Image, f coord.Found) bool {
	topic, log := image.Topic(f.Topic), b.store.Log(f.Topic, f.Partition)
	return topic != nil && log != nil && f.ID == topic.ID && int(f.Partition) >= len(topic.Partitions) && log.End() == 0
}

// foreignProducerIDs is from where on producer ids are handed out over logs that another cluster has written: far above the counter of
// that cluster, which may take the logs back one day.
const foreignProducerIDs = 1 << 32

// freeProducerIDs is from where on producer ids are free where logs were found and no state of ours. An id handed out a second time
// begins at sequence 0 again, and a log that remembers its first owner would take the records for ones that it has.
func (b *Broker) freeProducerIDs() (int64, error) {
	logs := b.store.Logs()
	if len(logs) == 0 {
		return 0, nil
	}
	first := int64(foreignProducerIDs)
	for _, log := range logs {
		newest, err := log.NewestProducer()
		if err != nil {
			return 0, fmt.Errorf("look for producer ids in %s: %w", log.Dir(), err)
		}
		first = max(first, newest+1)
	}
	return first, nil
}

// takeRoles follows coordination from now on and makes this broker known to it.
func (b *Broker) takeRoles(ctx context.Context) error {
	b.replicas = replica.NewManager(b.node, b.store)
	if err := b.keepOffsets(ctx); err != nil {
		return err
	}
	follow := &images{b: b}
	b.coord.Subscribe(follow.apply)
	b.coord.Subscribe(b.telemetry.follow)
	b.startGroups() // behind the roles of partitions
	self := coord.Broker{ID: b.node, Rack: b.config.Rack}
	for _, a := range b.config.Advertised {
		self.Endpoints = append(self.Endpoints, coord.Endpoint{Listener: a.Name, Host: a.Host, Port: a.Port})
	}
	return b.coord.RegisterBroker(ctx, self)
}

// serve starts the goroutines. From here on only Stop ends the broker.
func (b *Broker) serve() {
	b.background.Add(2)
	go b.sweep()  // owner: b; ends when stopping is closed; Stop waits
	go b.retain() // likewise
	for _, l := range b.listeners {
		b.accepting.Add(1)
		go b.accept(l) // owner: b; ends when its socket is closed; Stop waits
	}
	if b.health != nil {
		b.health.setReady()
	}
	go debug.FreeOSMemory() // what the start has left, of which a broker at rest would be rid only minutes later; ends by itself
}
