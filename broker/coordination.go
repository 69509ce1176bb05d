package broker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"strings"
	"time"

	"millrace/coord"
	"millrace/coord/controller"
	"millrace/coord/controller/znode"
	"millrace/coord/topicsfile"
	"millrace/coord/zk"
	"millrace/coord/zk/proto"
	"millrace/coord/zk/server"
	"millrace/coord/zk/tree"
)

// coordinationFolder is where the built-in coordination keeps its tree, in the first data directory. It is named like a partition's folder, since Kafka
// refuses to load a data directory with a folder that is not; so no topic may be called __millrace_coordination (coord.CheckName).
const coordinationFolder = coord.ReservedName + "-0"

// openCoordination starts the built-in coordination, unless an ensemble is named, and gets a session. An old file is what an earlier build has left; it
// is in the tree then, and to be put away once its leftovers are gone.
func (b *Broker) openCoordination(ctx context.Context, cluster string) (*controller.Service, *topicsfile.File, error) {
	old, err := topicsfile.Read(b.config.fs(), b.topicsFile())
	if err != nil {
		return nil, nil, err
	}
	if old != nil && cluster == "" {
		cluster = old.ClusterID
	}
	if old != nil && cluster != old.ClusterID {
		return nil, nil, fmt.Errorf("topic state %s belongs to cluster %s, the data directory to cluster %s", b.topicsFile(), old.ClusterID, cluster)
	}
	c := &b.config.Coordination
	dial := controller.Dial(c.Connect, c.SessionTimeout)
	if c.Connect == "" {
		if err := b.startCoordination(); err != nil {
			return nil, nil, err
		}
		dial = controller.DialIn(b.built.Dial, c.SessionTimeout)
	}
	unclean, _ := b.config.Get("unclean.leader.election.enable")
	limited, cancel := context.WithTimeoutCause(ctx, c.ConnectTimeout, fmt.Errorf("zookeeper.connection.timeout.ms=%d is over", c.ConnectTimeout.Milliseconds()))
	defer cancel()
	service, err := controller.Open(limited, controller.Options{
		Dial: dial, BrokerID: b.node, ClusterID: cluster, SessionTimeout: c.SessionTimeout, Unclean: strings.EqualFold(unclean, "true"),
		Stopped: b.stoppedReplica, Now: b.now, Logger: b.levels.logger(logCoord),
	})
	if err != nil {
		return nil, nil, err
	}
	b.coord = service
	if old != nil {
		err = b.importTopics(ctx, service, old)
	}
	return service, old, err
}

// startCoordination starts the service in this process.
func (b *Broker) startCoordination() error {
	c := &b.config.Coordination
	dir := c.Dir
	if dir == "" {
		dir = filepath.Join(b.config.LogDirs[0], coordinationFolder)
		if err := b.bringBack(dir); err != nil {
			return err
		}
	}
	var listener net.Listener
	if c.Listener != "" {
		var err error
		if listener, err = b.listenCoordination(c.Listener); err != nil {
			return err
		}
	}
	// A broker's own session must be granted what it asks for.
	built, err := zk.Start(zk.Options{Dir: dir, FS: b.config.FS, Config: server.Config{
		Listener: listener, MinTimeout: min(4*time.Second, c.SessionTimeout), MaxTimeout: max(40*time.Second, c.SessionTimeout), Logger: b.levels.logger(logCoord),
	}})
	if err != nil {
		return err
	}
	b.built = built
	return b.endLastLife()
}

// listenCoordination binds the address. If the default one is taken, another broker on this machine may have it: no reason not to serve.
func (b *Broker) listenCoordination(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err == nil {
		return l, nil
	}
	if _, given := b.config.Get("millrace.coordinator.listener"); given || address != LookupConfigKey("millrace.coordinator.listener").Default {
		return nil, &ConfigError{Key: "millrace.coordinator.listener", Value: address, Rule: "cannot listen: " + err.Error()}
	}
	l, other := net.Listen("tcp", "127.0.0.1:0")
	if other != nil {
		return nil, &ConfigError{Key: "millrace.coordinator.listener", Value: address, Rule: "cannot listen: " + errors.Join(err, other).Error()}
	}
	b.log.Warn("coordination has a free port: the default address of millrace.coordinator.listener is taken; give this broker one of its own", "address", l.Addr().String(), "error", err)
	return l, nil
}

// endLastLife ends the session of this broker's last life, if it was killed: nobody else can have it, since this process holds the folder. Else the new
// life would have to wait until it expires.
func (b *Broker) endLastLife() error {
	owners := map[int64]bool{}
	b.built.View(func(t *tree.Tree) {
		own, _ := t.Read(&proto.Request{Op: proto.OpGetData, Path: znode.BrokerPath(b.node)}, &tree.Reader{SkipACL: true}, nil)
		office, _ := t.Read(&proto.Request{Op: proto.OpGetData, Path: znode.ControllerPath}, &tree.Reader{SkipACL: true}, nil)
		if own.Err == proto.OK {
			owners[own.Stat.EphemeralOwner] = true
		}
		if holder, err := znode.DecodeController(office.Data); office.Err == proto.OK && err == nil && holder.BrokerID == b.node {
			owners[office.Stat.EphemeralOwner] = true
		}
	})
	for id := range owners {
		if id == 0 {
			continue
		}
		if err := b.built.EndSession(id); err != nil {
			return err
		}
	}
	return nil
}

// bringBack undoes what a Kafka does that ran over the data directory: it sets a folder aside that belongs to no topic it knows, as
// <folder>.<id>-stray. If there are several it is not known which, and the topics are adopted from the logs.
func (b *Broker) bringBack(dir string) error {
	fsys := b.config.fs()
	if _, err := fsys.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent, name := filepath.Split(dir)
	entries, err := fsys.ReadDir(parent)
	if err != nil {
		return err
	}
	var aside []string
	for _, e := range entries {
		if e.IsDir && strings.HasPrefix(e.Name, name+".") && strings.HasSuffix(e.Name, "-stray") {
			aside = append(aside, e.Name)
		}
	}
	if len(aside) != 1 {
		return nil
	}
	if err := fsys.Rename(filepath.Join(parent, aside[0]), dir); err != nil {
		return err
	}
	b.log.Warn("coordination's folder had been set aside by a Kafka broker", "from", aside[0], "to", name)
	return fsys.SyncDir(parent)
}

func (b *Broker) topicsFile() string { return filepath.Join(b.config.LogDirs[0], topicsfile.Name) }

// importTopics takes over what an earlier build has kept, once. A file that is there although the tree is in use has been imported, and only its name was
// not changed any more; if it is another one, an earlier build has run since, and nobody can say which is right.
func (b *Broker) importTopics(ctx context.Context, service *controller.Service, old *topicsfile.File) error {
	if service.Fresh() {
		if err := service.Import(ctx, &old.Saved, old.Checksum); err != nil {
			return fmt.Errorf("import %s: %w", b.topicsFile(), err)
		}
		b.log.Info("took over the topics of an earlier build", "file", b.topicsFile(), "topics", len(old.Topics))
		return nil
	}
	known, err := service.Imported()
	if err != nil {
		return err
	}
	if known != old.Checksum {
		return fmt.Errorf("topic state %s is of an earlier build, but coordination is in use already and was not filled from it: move the file away to go on with coordination's topics", b.topicsFile())
	}
	return nil
}

// putAway gives the file of an earlier build another name, as all of it is in the tree.
func (b *Broker) putAway() error {
	fsys := b.config.fs()
	if err := fsys.Rename(b.topicsFile(), b.topicsFile()+topicsfile.DoneSuffix); err != nil {
		return err
	}
	return fsys.SyncDir(b.config.LogDirs[0])
}

// leftBehind is a with the logs that the file of an earlier build knows to be those of deleted topics: no strays.
func leftBehind(a coord.Adoption, old *topicsfile.File) coord.Adoption {
	gone := map[coord.ID]string{}
	for _, d := range old.Deleting {
		gone[d.ID] = d.Topic
	}
	out := a
	out.Strays = nil
	for _, f := range a.Strays {
		if name, ok := gone[f.ID]; ok && name == f.Topic {
			out.Leftovers = append(out.Leftovers, f)
		} else {
			out.Strays = append(out.Strays, f)
		}
	}
	return out
}

// stoppedReplica says whether the log of a deleted replica has gone.
func (b *Broker) stoppedReplica(r controller.StoppedReplica) error {
	if log := b.store.Log(r.Topic, r.Partition); log != nil && log.ID().Topic == r.ID {
		return fmt.Errorf("the log %s could not be deleted", log.Dir())
	}
	return nil
}

// coordinatorName is for the ready line.
func (b *Broker) coordinatorName() string {
	switch {
	case b.built == nil:
		return b.config.Coordination.Connect
	case b.built.Addr() == nil:
		return "-"
	}
	return b.built.Addr().String()
}
