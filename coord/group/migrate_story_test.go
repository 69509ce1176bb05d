package group

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/coord/group/embedded"
	"millrace/wire"
)

// rider is a consumer of the classic protocol that reads orders, as real ones
// do it: cooperative, so that it keeps what it uses while it joins, gives up
// what it is not given, and joins again then; or eager.
type rider struct {
	*client
	name    string
	eager   bool
	owns    map[int32]bool // what it uses
	stopped map[int32]int  // partition → how often it has stopped using it
	joins   Call           // JoinGroup under way
	syncs   Call           // SyncGroup under way
	inside  bool           // has an assignment
	fenced  bool           // another has its place; it is over
}

func (s *story) rider(name string) *rider {
	r := &rider{client: s.client("g"), name: name, owns: map[int32]bool{}, stopped: map[int32]int{}}
	r.version, r.protocols = 5, []string{"cooperative-sticky"}
	r.tell = func() []byte {
		v := kmsg.NewConsumerMemberMetadata()
		v.Version, v.Topics, v.Generation = 3, []string{"orders"}, r.generation
		if len(r.owns) > 0 {
			v.OwnedPartitions = []kmsg.ConsumerMemberMetadataOwnedPartition{{Topic: "orders", Partitions: slices.Sorted(maps.Keys(r.owns))}}
		}
		return v.AppendTo(nil)
	}
	r.lead = func(members []kmsg.JoinGroupResponseMember) map[string][]byte {
		return cooperativeShares(members, s.known["orders"].Partitions)
	}
	return r
}

// cooperativeShares is what a leader decides: even shares, each keeps what it
// has as far as that goes, and what another still uses is held back.
func cooperativeShares(members []kmsg.JoinGroupResponseMember, partitions int) map[string][]byte {
	uses := map[int32]string{}
	for _, m := range members {
		told, err := embedded.ParseSubscription(m.ProtocolMetadata)
		if err != nil {
			panic(err)
		}
		for _, t := range told.Owned {
			for _, p := range t.Partitions {
				uses[p] = m.MemberID
			}
		}
	}
	shares := map[string][]int32{}
	var free []int32
	for p := range int32(partitions) {
		if id, ok := uses[p]; ok && len(shares[id]) < (partitions+len(members)-1)/len(members) {
			shares[id] = append(shares[id], p)
		} else {
			free = append(free, p)
		}
	}
	out := map[string][]byte{}
	for _, p := range free {
		least := members[0].MemberID
		for _, m := range members {
			if len(shares[m.MemberID]) < len(shares[least]) {
				least = m.MemberID
			}
		}
		shares[least] = append(shares[least], p)
	}
	for _, m := range members {
		var now []int32
		for _, p := range shares[m.MemberID] {
			if id, ok := uses[p]; !ok || id == m.MemberID {
				now = append(now, p)
			}
		}
		out[m.MemberID] = embedded.FormatAssignment(3, []embedded.Topic{{Name: "orders", Partitions: now}})
	}
	return out
}

// drop stops using partitions.
func (r *rider) drop(gone func(p int32) bool) (any bool) {
	for p := range r.owns {
		if gone(p) {
			delete(r.owns, p)
			r.stopped[p]++
			any = true
		}
	}
	return any
}

func everything(int32) bool { return true }

// poll lets it do its next act: what it says, it says when nothing is under way.
func (r *rider) poll() {
	switch {
	case r.fenced:
	case r.joins != 0:
		r.pollJoin()
	case r.syncs != 0:
		r.pollSync()
	case !r.inside:
		r.begin()
	default:
		r.heed(r.heartbeat())
	}
}

func (r *rider) begin() {
	if r.eager {
		r.drop(everything)
	}
	r.joins = r.s.next + 1
	r.inside = false
	r.join()
}

func (r *rider) pollJoin() {
	code := r.joined(r.joins)
	if code == -100 {
		return
	}
	r.joins = 0
	if code != wire.ErrNone {
		r.heed(code)
		return
	}
	r.syncs = r.s.next + 1
	r.sync()
}

func (r *rider) pollSync() {
	code := r.synced(r.syncs)
	if code == -100 {
		return
	}
	r.syncs = 0
	if code != wire.ErrNone {
		r.heed(code)
		return
	}
	a, err := embedded.ParseAssignment([]byte(r.share))
	if err != nil {
		r.s.t.Fatal(err)
	}
	given := map[int32]bool{}
	for _, t := range a.Topics {
		for _, p := range t.Partitions {
			given[p] = true
		}
	}
	r.inside = !r.drop(func(p int32) bool { return !given[p] }) || r.eager
	r.owns = given
}

// heed does what a code asks for.
func (r *rider) heed(code int16) {
	switch code {
	case wire.ErrNone:
		return
	case wire.ErrMemberIDRequired, wire.ErrRebalanceInProgress:
	case wire.ErrUnknownMemberID:
		r.id, r.generation = "", -1
		r.drop(everything)
	case wire.ErrFencedInstanceID:
		r.fenced = true
		r.drop(everything)
	default: // ILLEGAL_GENERATION; and what may be over soon
		r.generation = -1
		r.drop(everything)
	}
	r.inside = false
}

// quit leaves, as a dynamic member does.
func (r *rider) quit() int16 {
	r.drop(everything)
	r.inside, r.joins, r.syncs = false, 0, 0
	code := r.leave()
	r.id, r.generation = "", -1
	return code
}

func (r *rider) has() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(slices.Sorted(maps.Keys(r.owns))), " ", ","), "[]")
}

// settleDown lets all clients do what they have to until nothing changes.
func (s *story) settleDown(riders []*rider, moderns []*modernClient) {
	for range 12 {
		for _, r := range riders {
			for range 4 {
				r.poll()
			}
		}
		for _, c := range moderns {
			c.obey()
			c.beat()
			c.obey()
		}
		s.pass(time.Second)
	}
}

// allowing lets groups migrate.
func allowing(up, down bool) func(*Settings) {
	return func(s *Settings) { s.Migration = Migration{Upgrade: up, Downgrade: down} }
}
