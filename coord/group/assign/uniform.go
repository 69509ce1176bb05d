package assign

import (
	"slices"
)

// Uniform gives every member as many partitions as any other, as far as what
// they read allows, and leaves with each what it had, as far as that allows.
func Uniform(members []Member, topics map[[16]byte]int) [][]Place {
	u := &uniform{members: members, out: make([][]Place, len(members)), readers: map[[16]byte][]int{}}
	for i := range members {
		for _, topic := range members[i].Topics {
			u.readers[topic] = append(u.readers[topic], i)
		}
	}
	for topic := range u.readers {
		u.topics = append(u.topics, topic)
		for p := range topics[topic] {
			u.places = append(u.places, Place{topic, int32(p)})
		}
	}
	slices.SortFunc(u.places, Compare)
	slices.SortFunc(u.topics, func(a, b [16]byte) int { return slices.Compare(a[:], b[:]) })
	if u.alike() {
		u.even()
	} else {
		u.balance()
	}
	sortAll(u.out)
	return u.out
}

type uniform struct {
	members []Member
	out     [][]Place
	topics  [][16]byte         // that somebody reads, in order
	places  []Place            // of all of them, in order
	readers map[[16]byte][]int // topic → members
}

// alike says whether all members that read anything read the same topics.
func (u *uniform) alike() bool {
	reading := 0
	for i := range u.members {
		if len(u.members[i].Topics) > 0 {
			reading++
		}
	}
	for _, of := range u.readers {
		if len(of) != reading {
			return false
		}
	}
	return true
}

// even is for members that are alike. Each keeps what it had up to its share;
// as many as there are partitions over may keep one more. What is left over
// fills those who have too little.
func (u *uniform) even() {
	if len(u.topics) == 0 {
		return
	}
	of := u.readers[u.topics[0]]
	quota, over := len(u.places)/len(of), len(u.places)%len(of)
	taken := make(map[Place]bool, len(u.places))
	for _, i := range of {
		limit := quota
		if over > 0 {
			limit++
		}
		for _, p := range u.members[i].Had {
			if len(u.out[i]) < limit && u.exists(p) && !taken[p] {
				taken[p] = true
				u.out[i] = append(u.out[i], p)
			}
		}
		if len(u.out[i]) > quota {
			over--
		}
	}
	free := u.free(taken)
	for _, i := range of { // up to the quota first, then one more where that is left
		for len(u.out[i]) < quota && len(free) > 0 {
			u.out[i], free = append(u.out[i], free[0]), free[1:]
		}
	}
	for _, i := range of {
		if len(free) > 0 && len(u.out[i]) == quota {
			u.out[i], free = append(u.out[i], free[0]), free[1:]
		}
	}
}

func (u *uniform) exists(p Place) bool {
	_, ok := slices.BinarySearchFunc(u.places, p, Compare)
	return ok
}

func (u *uniform) free(taken map[Place]bool) (free []Place) {
	for _, p := range u.places {
		if !taken[p] {
			free = append(free, p)
		}
	}
	return free
}

// balance is for members that read different topics. Each keeps what it had;
// what is left over goes to the reader with the least; then, topic by topic,
// partitions move from the fullest to the emptiest reader while that makes the
// two more alike. Every move lowers the sum of the squares of the shares, so
// that comes to an end.
func (u *uniform) balance() {
	taken := make(map[Place]bool, len(u.places))
	for i := range u.members {
		for _, p := range u.members[i].Had {
			if u.exists(p) && !taken[p] && slices.Contains(u.members[i].Topics, p.Topic) {
				taken[p] = true
				u.out[i] = append(u.out[i], p)
			}
		}
	}
	free := u.free(taken)
	// Topics with few readers first: others have more choice.
	slices.SortStableFunc(free, func(a, b Place) int { return len(u.readers[a.Topic]) - len(u.readers[b.Topic]) })
	for _, p := range free {
		of := u.readers[p.Topic]
		least := of[0]
		for _, i := range of[1:] {
			if len(u.out[i]) < len(u.out[least]) {
				least = i
			}
		}
		u.out[least] = append(u.out[least], p)
	}
	for moved := true; moved; {
		moved = false
		for _, topic := range u.topics {
			for u.move(topic) {
				moved = true
			}
		}
	}
}

// move takes one partition of the topic from the fullest of its owners to the
// emptiest of its readers; false if they are even.
func (u *uniform) move(topic [16]byte) bool {
	from, to, at := -1, -1, 0
	for _, i := range u.readers[topic] {
		if to < 0 || len(u.out[i]) < len(u.out[to]) {
			to = i
		}
		if from >= 0 && len(u.out[i]) <= len(u.out[from]) {
			continue
		}
		if k := slices.IndexFunc(u.out[i], func(p Place) bool { return p.Topic == topic }); k >= 0 {
			from, at = i, k
		}
	}
	if from < 0 || len(u.out[from])-len(u.out[to]) < 2 {
		return false
	}
	u.out[to] = append(u.out[to], u.out[from][at])
	u.out[from] = slices.Delete(u.out[from], at, at+1)
	return true
}
