package controller

import (
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"millrace/coord/controller/znode"
)

var world = zk.WorldACL(zk.PermAll)

// One multi holds at most this: ZooKeeper refuses requests above 1 MiB (jute.maxbuffer), and each operation takes its path, its data and some 60 bytes.
const (
	maxBatchBytes = 512 << 10
	maxNode       = 900 << 10
	opBytes       = 100
)

// errMoved says that a write was refused since this is not the controller any more.
var errMoved = errors.New("another controller has been elected")

// errNoSession says that there is no session just now.
var errNoSession = errors.New("coordination is away")

// refused is an operation that was refused; none of its multi was done.
type refused struct {
	op    any
	index int
	cause error
}

func (r *refused) Error() string { return fmt.Sprintf("%s: %v", describe(r.op), r.cause) }
func (r *refused) Unwrap() error { return r.cause }

func describe(op any) string {
	switch op := op.(type) {
	case *zk.CreateRequest:
		return "create " + op.Path
	case *zk.SetDataRequest:
		return "set " + op.Path
	case *zk.DeleteRequest:
		return "delete " + op.Path
	case *zk.CheckVersionRequest:
		return "check " + op.Path
	}
	return fmt.Sprintf("%T", op)
}

func create(path string, data []byte) *zk.CreateRequest {
	return &zk.CreateRequest{Path: path, Data: data, Acl: world}
}

func createEphemeral(path string, data []byte) *zk.CreateRequest {
	return &zk.CreateRequest{Path: path, Data: data, Acl: world, Flags: zk.FlagEphemeral}
}

func createSequential(path string, data []byte) *zk.CreateRequest {
	return &zk.CreateRequest{Path: path, Data: data, Acl: world, Flags: zk.FlagSequence}
}

func set(path string, data []byte, version int32) *zk.SetDataRequest {
	return &zk.SetDataRequest{Path: path, Data: data, Version: version}
}

func remove(path string) *zk.DeleteRequest { return &zk.DeleteRequest{Path: path, Version: -1} }

// multi does all of ops or none. Its error is a *refused if they were not done; otherwise nobody knows.
func multi(conn Conn, ops ...any) ([]zk.MultiResponse, error) {
	if conn == nil {
		return nil, errNoSession
	}
	results, err := conn.Multi(ops...)
	if err != nil {
		return nil, err
	}
	for i := range results {
		if cause := results[i].Error; cause != nil {
			return nil, &refused{ops[i], i, cause}
		}
	}
	return results, nil
}

// fenced does all of ops or none, and none if this is not the controller any more (C1: the check of the epoch's node is in every multi). Caller holds mu.
func (s *Service) fenced(ops ...any) ([]zk.MultiResponse, error) {
	l := s.mu.lead
	if l == nil {
		return nil, errMoved
	}
	check := &zk.CheckVersionRequest{Path: znode.ControllerEpochPath, Version: l.epochVersion}
	results, err := multi(s.mu.conn, append([]any{check}, ops...)...)
	if r := (*refused)(nil); errors.As(err, &r) {
		if r.index == 0 {
			s.resign("its epoch has passed")
			return nil, errMoved
		}
		r.index--
		return nil, r
	}
	if err != nil {
		s.doubt(err)
		return nil, err
	}
	return results[1:], nil
}

// fencedInBatches does ops in order, in as many multis as they need. head and tail are how many at the start and at the end must not be parted. done is
// told the results of each multi.
func (s *Service) fencedInBatches(ops []any, head, tail int, done func(first int, results []zk.MultiResponse)) error {
	tail = len(ops) - tail
	for first := 0; first < len(ops); {
		next, size := first, 0
		for next < len(ops) && (size == 0 || size+sizeOf(ops[next]) <= s.o.batch) {
			size += sizeOf(ops[next])
			next++
		}
		switch {
		case next > tail && next < len(ops) && first < tail:
			next = tail
		case first >= tail:
			next = len(ops)
		}
		next = max(next, head)
		results, err := s.fenced(ops[first:next]...)
		if err != nil {
			return err
		}
		if done != nil {
			done(first, results)
		}
		first = next
	}
	return nil
}

func sizeOf(op any) int {
	switch op := op.(type) {
	case *zk.CreateRequest:
		return opBytes + len(op.Path) + len(op.Data)
	case *zk.SetDataRequest:
		return opBytes + len(op.Path) + len(op.Data)
	case *zk.DeleteRequest:
		return opBytes + len(op.Path)
	}
	return opBytes
}
