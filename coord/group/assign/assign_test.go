package assign

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func topic(i int) [16]byte { return [16]byte{byte(i + 1)} }

// Claim: whatever a group reads and has, each partition that somebody reads has
// exactly one owner, who reads it; shares that could be even are; and assigning
// again changes nothing.
// Method: random groups, both assignors, counts.
func TestEveryPartitionHasOneOwner(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		topics := map[[16]byte]int{}
		for i := range rapid.IntRange(1, 4).Draw(rt, "topics") {
			topics[topic(i)] = rapid.IntRange(0, 7).Draw(rt, "partitions")
		}
		alike := rapid.Bool().Draw(rt, "alike")
		members := make([]Member, rapid.IntRange(1, 6).Draw(rt, "members"))
		for i := range members {
			members[i].ID = fmt.Sprint("m", i)
			if rapid.Bool().Draw(rt, "static") {
				members[i].Instance = fmt.Sprint("i", len(members)-i)
			}
			for k := range len(topics) {
				if alike || rapid.Bool().Draw(rt, "reads") {
					members[i].Topics = append(members[i].Topics, topic(k))
				}
			}
			for range rapid.IntRange(0, 5).Draw(rt, "had") {
				members[i].Had = append(members[i].Had, Place{topic(rapid.IntRange(0, 4).Draw(rt, "topic")), int32(rapid.IntRange(0, 8).Draw(rt, "partition"))})
			}
			slices.SortFunc(members[i].Had, Compare)
			members[i].Had = slices.Compact(members[i].Had)
		}
		for _, name := range []string{NameUniform, NameRange} {
			shares := ByName(name)(members, topics)
			checkShares(rt, name, members, topics, shares, alike)
			for i := range members {
				members[i].Had = shares[i]
			}
			if again := ByName(name)(members, topics); !reflect.DeepEqual(shares, again) {
				rt.Fatalf("%s: assigned again\n%v\n%v", name, shares, again)
			}
		}
	})
}

func checkShares(rt *rapid.T, name string, members []Member, topics map[[16]byte]int, shares [][]Place, alike bool) {
	owner := map[Place]int{}
	least, most := 1<<30, 0
	for i, share := range shares {
		least, most = min(least, len(share)), max(most, len(share))
		for _, p := range share {
			if other, taken := owner[p]; taken {
				rt.Fatalf("%s: %v has owners %d and %d", name, p, other, i)
			}
			if owner[p] = i; !slices.Contains(members[i].Topics, p.Topic) {
				rt.Fatalf("%s: %v for one who does not read it", name, p)
			}
		}
	}
	want := 0
	for id, n := range topics {
		if slices.ContainsFunc(members, func(m Member) bool { return slices.Contains(m.Topics, id) }) {
			want += n
		}
	}
	if len(owner) != want {
		rt.Fatalf("%s: %d partitions have owners, want %d", name, len(owner), want)
	}
	if name == NameUniform && alike && most-least > 1 {
		rt.Fatalf("uniform: shares from %d to %d", least, most)
	}
}

// Claim: uniform takes from those who have too much and no more; range gives
// static members the first runs, and the same numbers of topics of one size.
// Method: a third member comes to two.
func TestAssignorsMoveLittle(t *testing.T) {
	a, b := topic(0), topic(1)
	had := func(from, to int32) (out []Place) {
		for p := from; p < to; p++ {
			out = append(out, Place{a, p})
		}
		return out
	}
	members := []Member{{ID: "1", Topics: [][16]byte{a}, Had: had(0, 3)}, {ID: "2", Topics: [][16]byte{a}, Had: had(3, 6)}, {ID: "3", Topics: [][16]byte{a}}}
	got := Uniform(members, map[[16]byte]int{a: 6})
	if want := [][]Place{had(0, 2), had(3, 5), {{a, 2}, {a, 5}}}; !reflect.DeepEqual(got, want) {
		t.Errorf("uniform: %v", got)
	}
	pair := []Member{{ID: "1", Topics: [][16]byte{a, b}}, {ID: "2", Instance: "x", Topics: [][16]byte{a, b}}}
	got = Range(pair, map[[16]byte]int{a: 3, b: 3})
	if want := [][]Place{{{a, 2}, {b, 2}}, {{a, 0}, {a, 1}, {b, 0}, {b, 1}}}; !reflect.DeepEqual(got, want) {
		t.Errorf("range: %v", got)
	}
}
