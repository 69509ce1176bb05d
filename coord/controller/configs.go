package controller

import (
	"context"
	"fmt"
	"maps"
	"path"
	"strings"

	"github.com/go-zookeeper/zk"

	"millrace/coord"
	"millrace/coord/controller/znode"
	"millrace/wire"
)

// maxTries bounds how often a change of settings is made again since another was faster.
const maxTries = 5

// edit is an entity whose settings are to be changed, as it was read and as it is to be.
type edit struct {
	before, after map[string]string
	version       int32 // -1: there is no node
}

// edits are the entities of one request, in the order in which they were named.
type edits struct {
	byEntity map[string]*edit
	order    []string
}

// of reads an entity at its first mention.
func (e *edits) of(conn Conn, entity string) (*edit, error) {
	if known := e.byEntity[entity]; known != nil {
		return known, nil
	}
	config, version, err := readEntity(conn, entity)
	if err != nil {
		return nil, err
	}
	made := &edit{config, config, version}
	e.byEntity[entity] = made
	e.order = append(e.order, entity)
	return made, nil
}

// alter runs change, which edits, and writes what differs with a notification for each entity: all in one multi where it fits, against the versions
// that were read. If another was faster, change runs again. Any broker may: settings are not the controller's alone. Caller holds mu.
func (s *Service) alter(ctx context.Context, validateOnly bool, change func(*edits) error) error {
	for try := 0; ; try++ {
		if err := s.present(ctx); err != nil {
			return err
		}
		e := &edits{byEntity: map[string]*edit{}}
		if err := change(e); err != nil {
			return err
		}
		if validateOnly {
			return nil
		}
		err := s.writeEdits(e)
		again := isBadVersion(err) || isNodeExists(err) || isNoNode(err)
		switch {
		case err == nil:
			return nil
		case !again:
			s.doubt(err)
			return err
		case try == maxTries:
			return err
		}
	}
}

// writeEdits writes what differs, in as few multis as it takes, and publishes what each has written.
func (s *Service) writeEdits(e *edits) error {
	made := map[string]bool{}
	changed := map[string]map[string]string{}
	var ops []any
	size := 0
	flush := func() error {
		if len(ops) == 0 {
			return nil
		}
		results, err := multi(s.mu.conn, ops...)
		if err != nil {
			return err
		}
		s.noteOwn(ops, results)
		err = s.member.adopt(changed)
		ops, size, changed = nil, 0, map[string]map[string]string{}
		return err
	}
	for _, entity := range e.order {
		one := e.byEntity[entity]
		if maps.Equal(one.before, one.after) {
			continue
		}
		more, err := s.writeEntity(entity, one, made)
		if err != nil {
			return err
		}
		bytes := 0
		for _, op := range more {
			bytes += sizeOf(op)
		}
		if size+bytes > s.o.batch {
			if err := flush(); err != nil {
				return err
			}
		}
		ops, size = append(ops, more...), size+bytes
		changed[entity] = one.after
	}
	return flush()
}

// noteOwn remembers the notifications that this broker has just written: it needs not read them.
func (s *Service) noteOwn(ops []any, results []zk.MultiResponse) {
	for i, op := range ops {
		if c, ok := op.(*zk.CreateRequest); ok && c.Flags&zk.FlagSequence != 0 {
			s.mu.own[path.Dir(c.Path)+"/"+path.Base(results[i].String)] = true
		}
	}
}

// writeEntity are the operations that write an entity, the nodes above it that are missing, and the notification. made are the nodes that operations
// before these make.
func (s *Service) writeEntity(entity string, e *edit, made map[string]bool) (ops []any, err error) {
	parts := strings.Split(entity, "/")
	for n := 2; n < len(parts); n++ { // users/U and users/U/clients
		above := znode.ConfigPath(strings.Join(parts[:n], "/"))
		if made[above] {
			continue
		}
		stat, err := s.mu.conn.Exists(above, false)
		if err != nil {
			return nil, err
		}
		if made[above] = true; stat == nil {
			ops = append(ops, create(above, nil))
		}
	}
	place, data := znode.ConfigPath(entity), znode.EncodeConfig(e.after)
	var write any = set(place, data, e.version)
	switch {
	case e.version < 0 && made[place]:
		write = set(place, data, 0)
	case e.version < 0:
		write = create(place, data)
	}
	made[place] = true
	if len(data) > maxNode {
		return nil, fmt.Errorf("settings of %s take %d bytes, a node may have %d", entity, len(data), maxNode)
	}
	if topic, ok := strings.CutPrefix(entity, znode.EntityTopics+"/"); ok {
		// Of a topic that is still there: no settings are left behind by one that is deleted meanwhile.
		ops = append(ops, &zk.CheckVersionRequest{Path: znode.TopicPath(topic), Version: -1})
	}
	return append(ops, write, createSequential(znode.ChangePrefix(znode.ChangesPath(entity)), znode.EncodeChange(entity))), nil
}

// present says whether the tree can be reached. Caller holds mu.
func (s *Service) present(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.mu.closed {
		return errClosed
	}
	if s.mu.conn == nil {
		return errNoSession
	}
	return nil
}

// unwritten answers for settings that were not written, or perhaps were.
func (s *Service) unwritten(results []coord.ConfigResult, err error) []coord.ConfigResult {
	for i := range results {
		if results[i].Code == wire.ErrNone {
			results[i] = coord.ConfigResult{Code: wire.ErrRequestTimedOut, Message: "settings were not written, or the answer was lost: " + err.Error()}
		}
	}
	return results
}

// AlterConfigs is coord.Service's.
func (s *Service) AlterConfigs(ctx context.Context, changes []coord.ConfigChange, validateOnly bool) []coord.ConfigResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	results := make([]coord.ConfigResult, len(changes))
	err := s.alter(ctx, validateOnly, func(e *edits) error {
		for i := range changes {
			c := &changes[i]
			if c.Resource.Topic != "" && s.Image().Topic(c.Resource.Topic) == nil {
				results[i] = coord.ConfigResult{Code: wire.ErrUnknownTopicOrPartition, Message: fmt.Sprintf("topic %q does not exist", c.Resource.Topic)}
				continue
			}
			one, err := e.of(s.mu.conn, entityOf(c.Resource))
			if err != nil {
				return err
			}
			after, code, message := c.Edit(one.after)
			if results[i] = (coord.ConfigResult{Code: code, Message: message}); code == wire.ErrNone {
				one.after = emptyIsNil(after)
			}
		}
		return nil
	})
	if err != nil {
		return s.unwritten(results, err)
	}
	if !validateOnly {
		s.uncleanNow(changes)
	}
	return results
}

func emptyIsNil(config map[string]string) map[string]string {
	if len(config) == 0 {
		return nil
	}
	return config
}

// uncleanNow has the controller look at partitions without a leader, which settings may allow to have one now. Whoever else is controller does so when it
// sees the notification.
func (s *Service) uncleanNow(changes []coord.ConfigChange) {
	if s.mu.lead == nil || s.mu.stale {
		return
	}
	o := s.newOrders()
	if err := s.reelect(s.standing(), o); err == nil {
		_ = o.send() // an error has made s stale: all is read again
	}
}

// AlterQuotas is coord.Service's. Credentials and whatever else stands beside a user's quotas stay as they are.
func (s *Service) AlterQuotas(ctx context.Context, changes []coord.QuotaChange, validateOnly bool) []coord.ConfigResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	results := make([]coord.ConfigResult, len(changes))
	err := s.alter(ctx, validateOnly, func(e *edits) error {
		have := maps.Clone(s.Image().Quotas())
		if have == nil {
			have = map[coord.QuotaEntity]map[string]float64{}
		}
		for i := range changes {
			c := &changes[i]
			one, err := e.of(s.mu.conn, quotaPath(c.Entity))
			if err != nil {
				return err
			}
			before := quotasIn(one.after)
			if len(before) == 0 {
				before = nil
			}
			after, code, message := c.Edit(before)
			if results[i] = (coord.ConfigResult{Code: code, Message: message}); code != wire.ErrNone || maps.Equal(before, after) {
				continue
			}
			switch {
			case len(after) == 0:
				delete(have, c.Entity)
			case before == nil && len(have) >= coord.MaxQuotaEntities:
				results[i] = coord.ConfigResult{Code: wire.ErrPolicyViolation, Message: fmt.Sprintf("%d entities have quotas already, no more than %d may", len(have), coord.MaxQuotaEntities)}
				continue
			default:
				have[c.Entity] = after
			}
			one.after = withQuotas(one.after, after)
		}
		return nil
	})
	if err != nil {
		return s.unwritten(results, err)
	}
	return results
}

// withQuotas is config with these quotas and no others.
func withQuotas(config map[string]string, quotas map[string]float64) map[string]string {
	out := map[string]string{}
	for key, value := range config {
		if _, ok := isQuota(key, value); !ok {
			out[key] = value
		}
	}
	for key, value := range quotas {
		out[key] = quotaText(key, value)
	}
	return emptyIsNil(out)
}
