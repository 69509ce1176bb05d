// Package assign decides which member of a group reads which partitions: the
// server-side assignors of the next-generation group protocol (KIP-848). Pure
// functions of the whole group; the same input gives the same output.
package assign

import (
	"cmp"
	"slices"
)

// Place is one partition of one topic.
type Place struct {
	Topic     [16]byte
	Partition int32
}

// Compare orders places by topic and partition.
func Compare(a, b Place) int {
	if c := slices.Compare(a.Topic[:], b.Topic[:]); c != 0 {
		return c
	}
	return cmp.Compare(a.Partition, b.Partition)
}

// Member is what an assignor knows of a member.
type Member struct {
	ID       string
	Instance string     // "": not static
	Topics   [][16]byte // that it reads and that exist, each once
	Had      []Place    // its share until now, in order
}

// Assignor divides the partitions of topics (their counts by id) among those
// who read them. Shares are in the order of the members, each sorted. Every
// partition that somebody reads has exactly one owner.
type Assignor func(members []Member, topics map[[16]byte]int) [][]Place

// The names of the assignors, as clients and settings write them.
const (
	NameUniform = "uniform"
	NameRange   = "range"
)

// ByName finds an assignor; nil if there is none of that name.
func ByName(name string) Assignor {
	switch name {
	case NameUniform:
		return Uniform
	case NameRange:
		return Range
	}
	return nil
}

// Range gives each reader of a topic a run of its partitions, static members
// first, by name. Readers of the same topics with equally many partitions get
// the same numbers of each, so that they can be joined.
func Range(members []Member, topics map[[16]byte]int) [][]Place {
	order := make([]int, len(members))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		a, b := &members[i], &members[j]
		switch {
		case a.Instance != "" && b.Instance != "":
			return cmp.Compare(a.Instance, b.Instance)
		case a.Instance != "":
			return -1
		case b.Instance != "":
			return 1
		}
		return cmp.Compare(a.ID, b.ID)
	})
	readers := map[[16]byte][]int{}
	for _, i := range order {
		for _, topic := range members[i].Topics {
			readers[topic] = append(readers[topic], i)
		}
	}
	out := make([][]Place, len(members))
	for topic, of := range readers {
		count, n := topics[topic], len(of)
		at := 0
		for k, i := range of {
			size := count / n
			if k < count%n {
				size++
			}
			for range size {
				out[i] = append(out[i], Place{topic, int32(at)})
				at++
			}
		}
	}
	sortAll(out)
	return out
}

func sortAll(shares [][]Place) {
	for i := range shares {
		slices.SortFunc(shares[i], Compare)
	}
}
