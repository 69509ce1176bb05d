package broker

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// oldestVersions remembers which client id uses which version of an API at the
// lowest (A11): whom an upgrade would leave behind. Connections come here only
// when they see a version lower than all before, so it is off the hot path.
// What was heard of longest ago makes room for what is new.
type oldestVersions struct {
	mu      sync.Mutex
	known   map[clientAPI]*oldestVersion
	evicted int64     // pairs that made room
	last    time.Time // when one did
}

type clientAPI struct {
	client string
	key    int16
}

type oldestVersion struct {
	version int16
	heard   time.Time
}

const (
	// maxClientVersions bounds the pairs of client id and API: about 60 of
	// our kind of client, and as many series in a scrape.
	maxClientVersions = 1000
	// maxShownID is the longest client id that is told in a metric.
	maxShownID = 100
	// evictEvery bounds what a client that makes up ids can cost: looking for
	// the oldest goes through all.
	evictEvery = 10 * time.Millisecond
)

func (o *oldestVersions) saw(client string, key, version int16) {
	if client = labelText(client); len(client) > maxShownID {
		client = labelText(client[:maxShownID])
	}
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	id := clientAPI{client, key}
	if v := o.known[id]; v != nil {
		v.version, v.heard = min(v.version, version), now
		return
	}
	if len(o.known) >= maxClientVersions && !o.evictLocked(now) {
		return
	}
	if o.known == nil {
		o.known = map[clientAPI]*oldestVersion{}
	}
	o.known[id] = &oldestVersion{version, now}
}

func (o *oldestVersions) evictLocked(now time.Time) bool {
	o.evicted++
	if now.Sub(o.last) < evictEvery {
		return false // the new one is left out
	}
	o.last = now
	var oldest clientAPI
	at := now
	for id, v := range o.known {
		if v.heard.Before(at) {
			oldest, at = id, v.heard
		}
	}
	delete(o.known, oldest)
	return len(o.known) < maxClientVersions
}

// clientVersion is one row of list.
type clientVersion struct {
	clientAPI
	version int16
}

func (o *oldestVersions) list() (all []clientVersion, evicted int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id, v := range o.known {
		all = append(all, clientVersion{id, v.version})
	}
	slices.SortFunc(all, func(a, b clientVersion) int {
		return cmp.Or(cmp.Compare(a.client, b.client), cmp.Compare(a.key, b.key))
	})
	return all, o.evicted
}
