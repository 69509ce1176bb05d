package tree

import (
	"sort"
	"strconv"
	"strings"
)

const (
	limitName = "zookeeper_limits"
	statName  = "zookeeper_stats"
)

// track is StatsTrack: counters in the text of a node, "count=2,bytes=30" and, behind
// an extra "=" that old readers stop at, further ones. -1 is no limit.
type track map[string]int64

func parseTrack(text string) track {
	t := track{}
	for _, pair := range strings.FieldsFunc(text, func(c rune) bool { return c == ',' || c == ';' }) {
		key, value, _ := strings.Cut(pair, "=")
		value, _, _ = strings.Cut(value, "=")
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			n = -1
		}
		t[key] = n
	}
	return t
}

func (t track) get(key string) int64 {
	if n, ok := t[key]; ok {
		return n
	}
	return -1
}

func (t track) String() string {
	s := "count=" + strconv.FormatInt(t.get("count"), 10) + ",bytes=" + strconv.FormatInt(t.get("bytes"), 10)
	var rest []string
	for key := range t {
		if key != "count" && key != "bytes" {
			rest = append(rest, key)
		}
	}
	if len(rest) > 0 {
		s += "="
		sort.Strings(rest)
		for _, key := range rest {
			s += ";" + key + "=" + strconv.FormatInt(t[key], 10)
		}
	}
	return s
}

// quotaFor returns the deepest path at or above the given one that has a quota, or "".
func (t *Tree) quotaFor(path string) string {
	if len(t.quotas) == 0 {
		return ""
	}
	for path != "" {
		if _, ok := t.quotas[path]; ok {
			return path
		}
		path = path[:max(0, strings.LastIndexByte(path, '/'))] // a refused request's path may have none
	}
	return ""
}

// exceeds reports whether a change would break a hard limit of the quota at prefix.
// ZooKeeper only warns of soft ones.
func (t *Tree) exceeds(prefix string, bytes, count int64) bool {
	limit, stat := t.find(quotaPath+prefix+"/"+limitName), t.find(quotaPath+prefix+"/"+statName)
	if limit == 0 || stat == 0 {
		return false
	}
	l := parseTrack(string(t.nodes.at(limit).data()))
	s := parseTrack(string(t.nodes.at(stat).data()))
	over := func(key string, diff int64, hard string) bool {
		return diff != 0 && l.get(hard) > -1 && s.get(key)+diff > l.get(hard)
	}
	return over("count", count, "countHardLimit") || over("bytes", bytes, "byteHardLimit")
}

// SoftQuota is a limit that only warns, and what there is instead.
type SoftQuota struct {
	Path         string // that has the quota
	What         string // "count" or "bytes"
	Limit, Usage int64
}

// HasQuotas says whether there is any quota at all.
func (t *Tree) HasQuotas() bool { return len(t.quotas) > 0 }

// OverSoft is the soft quota above path that is exceeded, if there is one.
func (t *Tree) OverSoft(path string) (SoftQuota, bool) {
	prefix := t.quotaFor(path)
	if prefix == "" {
		return SoftQuota{}, false
	}
	limit, stat := t.find(quotaPath+prefix+"/"+limitName), t.find(quotaPath+prefix+"/"+statName)
	if limit == 0 || stat == 0 {
		return SoftQuota{}, false
	}
	l, s := parseTrack(string(t.nodes.at(limit).data())), parseTrack(string(t.nodes.at(stat).data()))
	for _, what := range []string{"count", "bytes"} {
		if n := l.get(what); n > -1 && s.get(what) > n {
			return SoftQuota{prefix, what, n, s.get(what)}, true
		}
	}
	return SoftQuota{}, false
}

// account adds to the counters of the quota that path is under, if there is one.
func (c *change) account(path string, bytes, count int64) {
	prefix := c.t.quotaFor(path)
	if prefix == "" {
		return
	}
	id := c.t.find(quotaPath + prefix + "/" + statName)
	if id == 0 {
		return
	}
	s := parseTrack(string(c.t.nodes.at(id).data()))
	s["count"], s["bytes"] = s.get("count")+count, s.get("bytes")+bytes
	c.setCounters(id, s)
}

func (c *change) setCounters(id nodeID, s track) {
	c.touch(id)
	n := c.t.nodes.at(id)
	c.t.dataBytes -= int64(n.dataLen())
	n.setBlob(n.name(), []byte(s.String()))
	c.t.dataBytes += int64(n.dataLen())
}

// noteQuota sees to a node made or removed below /zookeeper/quota: a limits node begins
// or ends a quota, a stats node is filled with what there is at that moment.
func (c *change) noteQuota(parent, name string, made bool) {
	of, ok := strings.CutPrefix(parent, quotaPath)
	if !ok || of == "" {
		return
	}
	switch {
	case name == limitName && made:
		c.t.quotas[of] = struct{}{}
		c.undo(undo{kind: undoQuotaMade, path: of})
	case name == limitName:
		delete(c.t.quotas, of)
		c.undo(undo{kind: undoQuotaGone, path: of})
	case name == statName && made:
		s := track{}
		s["count"], s["bytes"] = c.t.measure(c.t.find(of))
		c.setCounters(c.t.find(parent+"/"+name), s)
	}
}

// measure counts the nodes at and below id and the bytes of their data.
func (t *Tree) measure(id nodeID) (count, bytes int64) {
	t.walk(id, func(n *node) {
		count++
		bytes += int64(n.dataLen())
	})
	return count, bytes
}

// walk visits id and all below it, without recursion.
func (t *Tree) walk(id nodeID, visit func(*node)) {
	if id == 0 {
		return
	}
	todo := []nodeID{id}
	for len(todo) > 0 {
		n := t.nodes.at(todo[len(todo)-1])
		todo = todo[:len(todo)-1]
		visit(n)
		if n.more != nil {
			for id := n.more.first; id != 0; id = t.nodes.at(id).older {
				todo = append(todo, id)
			}
		}
	}
}

// findQuotas makes the set of quotas anew, after a snapshot was read.
func (t *Tree) findQuotas() {
	top := t.find(quotaPath)
	if top == 0 {
		return
	}
	var ids []nodeID
	todo := []nodeID{top}
	for len(todo) > 0 {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		n := t.nodes.at(id)
		if n.name() == limitName {
			ids = append(ids, n.parent)
		}
		if n.more != nil {
			for id := n.more.first; id != 0; id = t.nodes.at(id).older {
				todo = append(todo, id)
			}
		}
	}
	for _, id := range ids {
		if of := strings.TrimPrefix(t.path(id), quotaPath); of != "" {
			t.quotas[of] = struct{}{}
		}
	}
}
