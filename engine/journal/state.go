package journal

import "math"

// none stands for "no offset": below every offset there is.
const none = math.MinInt64

// ownerState is what the journal knows of one owner. All of it is guarded by Journal.mu.
type ownerState struct {
	owner Owner
	id    LogID

	added  int64 // end of the last Add
	synced int64 // everything below is in synced segment bytes

	// A pass (keeper, SyncAll) that is syncing the owner's files right now: what it will have synced. A Cut lowers it,
	// since the pass may be about to tell of bytes that no longer are.
	passing bool
	passEnd int64

	pins int  // files that list the owner
	gone bool // cut as a whole, nothing added since

	// Where the owner is in the round with that number; see round.owner.
	in [2]struct {
		round uint64
		index int
	}
}

// cut takes back everything at or above from.
func (s *ownerState) cut(from int64) {
	s.added = min(s.added, from)
	s.synced = min(s.synced, from)
	s.passEnd = min(s.passEnd, from)
}

// segmentSynced notes and tells that everything below end is in synced segment bytes.
func (s *ownerState) segmentSynced(end int64) {
	if end > s.synced {
		s.synced = end
		s.owner.SegmentSynced(end)
	}
}

// state returns the state of o, making one if there is none. j.mu is held.
func (j *Journal) state(o Owner) *ownerState {
	if s := j.owners[o]; s != nil {
		return s
	}
	s := &ownerState{owner: o, id: o.ID(), added: none, synced: none, passEnd: none}
	j.owners[o] = s
	return s
}

// forget drops s unless something still speaks of it. j.mu is held.
func (j *Journal) forget(s *ownerState) {
	if s.pins > 0 || s.passing {
		return
	}
	for i := range j.rounds {
		if n := j.rounds[i].number; n != 0 && s.in[i].round == n {
			return
		}
	}
	delete(j.owners, s.owner)
}
