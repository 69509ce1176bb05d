// Package group is the coordinator of consumer groups as a pure state machine:
// requests, the passing of time and the end of writes go in; answers, records
// to be written and the time of the next alarm come out. It knows no socket, no
// clock, no file and no goroutine, so that a test can play any story and a
// crash can be put between any two steps. Package coordinator drives it.
//
// [Groups] is all groups of one partition of __consumer_offsets. A group speaks
// one of two protocols, and can go over to the other while it is empty; its
// commits stay.
//
// In the classic protocol members join, the first of them (the leader) is told of
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
// In the next-generation protocol (KIP-848, files consumer*.go) the broker
// assigns, and there is one request, ConsumerGroupHeartbeat: a member says what
// it reads and what it uses, and is told what to use. Whatever changes begins an
// epoch of the group; an assignor makes a target for it; each member goes there
// by itself: it gives up first, and gets what nobody uses any more. So only the
// partitions that move stand still.
//
//	heartbeat ─▶ epoch ─▶ target ─▶ reconcile one member ─▶ one write ─▶ answer
//
// What is answered is on disk: a step that changes what a restart must find
// (commits, the assignment of a generation) hands out a [Write] and answers
// only when [Groups.Written] has said that it is durable. Until then nobody
// reads it either: committed offsets change in memory when the write has ended.
// A group of the next-generation protocol has one write under way at a time, a
// [step] of all that has come meanwhile, and takes it back if it fails.
//
// Invariants, attacked by TestOwnersAreUnique and TestConsumersNeverShare:
//   - G1 A partition has at most one owner per generation, and nobody is
//     answered with a generation that is not the group's.
//   - G2 A partition of a group of the next-generation protocol is held by one
//     member at most, from the answer that gives it until the member says that
//     it does not use it, leaves or is removed.
//
// Where this differs from Kafka: a member that is late to join or sync is
// removed after its own rebalance time-out, not after the longest of the group
// (F059); a static member that missed a rebalance stays until its session ends,
// also when the others have synced; the commits of an Empty group expire from
// the later of commit and becoming Empty; patterns of topics are resolved at
// once and not behind an answer; a group with members cannot change its protocol
// (in Kafka's words: the migration policy is disabled).
//
// Reading order: machine.go, timers.go, state.go, member.go, join.go, static.go,
// rebalance.go, sync.go, leave.go, commit.go, fetch.go, remove.go, describe.go,
// load.go; then consumer.go, consumer_step.go, consumer_heartbeat.go,
// consumer_target.go, consumer_leave.go, consumer_commit.go,
// consumer_describe.go, consumer_load.go.
package group
