// Package group is the coordinator of consumer groups as a pure state machine:
// requests, the passing of time and the end of writes go in; answers, records
// to be written and the time of the next alarm come out. It knows no socket, no
// clock, no file and no goroutine, so that a test can play any story and a
// crash can be put between any two steps. Package coordinator drives it.
//
// [Groups] is all groups of one partition of __consumer_offsets. A group speaks
// the classic protocol: members join, the first of them (the leader) is told of
// all, and hands in what each shall own; the broker never looks inside. So
// eager and cooperative rebalancing, and protocols that are not consumers' at
// all, are the same here.
//
//	Empty ──join──▶ PreparingRebalance ──all joined──▶ CompletingRebalance
//	  ▲                 ▲      │                          │          │
//	  └──nobody left────┼──────┘             ┌──trouble───┘          │ leader's
//	                    └────────────────────┤                       ▼ SyncGroup
//	                                         └──join, leave────── Stable
//
// What is answered is on disk: a step that changes what a restart must find
// (commits, the assignment of a generation) hands out a [Write] and answers
// only when [Groups.Written] has said that it is durable. Until then nobody
// reads it either: committed offsets change in memory when the write has ended.
//
// Invariants, attacked by TestOwnersAreUnique:
//   - G1 A partition has at most one owner per generation, and nobody is
//     answered with a generation that is not the group's.
//
// Where this differs from Kafka: a member that is late to join or sync is
// removed after its own rebalance time-out, not after the longest of the group
// (F059); a static member that missed a rebalance stays until its session ends,
// also when the others have synced; the commits of an Empty group expire from
// the later of commit and becoming Empty.
//
// Reading order: machine.go, timers.go, state.go, member.go, join.go, static.go,
// rebalance.go, sync.go, leave.go, commit.go, fetch.go, remove.go, describe.go,
// load.go.
package group
