package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"millrace/coord"
	"millrace/coord/controller/znode"
	"millrace/coord/zk/proto"
	"millrace/tools/internal/zkclient"
)

// zookeeperUsage describes --zookeeper.
const zookeeperUsage = "as in Kafka 2.x: host:port[,host:port...][/chroot] of the cluster's coordination, in place of --bootstrap-server"

// znodes are what scripts work on with --zookeeper: the nodes of a cluster's coordination.
type znodes struct {
	c   *zkclient.Client
	out io.Writer
}

// zookeeperTimeout is what the session is asked to end after, and what Kafka's tool asks for.
const zookeeperTimeout = 30 * time.Second

// withTree runs f on the coordination at connect, until cmd's context ends.
func withTree(cmd *cobra.Command, connect string, f func(znodes) error) error {
	c, err := zkclient.Dial(cmd.Context(), connect, zookeeperTimeout)
	if err != nil {
		return err
	}
	defer c.Close()
	defer context.AfterFunc(cmd.Context(), c.Interrupt)()
	return f(znodes{c, cmd.OutOrStdout()})
}

// children are the names below a path, sorted; none if it is not there.
func (t znodes) children(path string) ([]string, error) {
	r, err := t.c.Do(proto.Request{Op: proto.OpGetChildren, Path: path})
	if errors.Is(err, proto.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	slices.Sort(r.Children)
	return r.Children, nil
}

// read gives the data and versions of nodes, in their order; what is not there has none.
func (t znodes) read(paths []string) ([]proto.Result, error) {
	list := make([]proto.Request, len(paths))
	for i, p := range paths {
		list[i] = proto.Request{Op: proto.OpGetData, Path: p}
	}
	all, err := t.c.All(list)
	if err != nil {
		return nil, err
	}
	for i, r := range all {
		if r.Err != proto.OK && r.Err != proto.ErrNoNode {
			return nil, fmt.Errorf("%s: %w", paths[i], r.Err)
		}
	}
	return all, nil
}

// brokers are those that are alive.
func (t znodes) brokers() ([]coord.Broker, error) {
	names, err := t.children(znode.BrokerIDs)
	if err != nil {
		return nil, err
	}
	var out []coord.Broker
	for _, name := range names {
		id, err := strconv.ParseInt(name, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path.Join(znode.BrokerIDs, name), err)
		}
		out = append(out, coord.Broker{ID: int32(id)})
	}
	return out, nil
}

// both does two things or neither.
func (t znodes) both(a, b proto.Request) error {
	r, err := t.c.Do(proto.Request{Op: proto.OpMulti, Ops: []proto.Request{a, b}})
	if err != nil {
		return err
	}
	for _, one := range r.Results {
		if one.Err != proto.OK && one.Err != proto.ErrInconsistency { // the latter: undone for the other's sake
			return one.Err
		}
	}
	return nil
}
