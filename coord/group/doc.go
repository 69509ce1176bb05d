// Package group is the coordinator of consumer groups as a pure state machine:
// requests, the passing of time and the end of writes go in; answers, records
// to be written and the time of the next alarm come out. It knows no socket, no
// clock, no file and no goroutine, so that a test can play any story and a
// crash can be put between any two steps. Package coordinator drives it.
//
// [Groups] is all groups of one partition of __consumer_offsets. A group speaks
// one of two protocols and can go over to the other, its commits and members with
// it: when it has no members, or as its [Migration] allows.
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
// In a group of the next-generation protocol there may be members that speak the
// classic one (files mixed*.go): those of the classic group that it was, and such
// as have joined since. Each is answered JoinGroup at once, its epoch is its
// generation, what it reads and owns stands in the embedded consumer protocol
// (package embedded), and a Heartbeat tells it to join again when it has
// something to give up or to get.
//
//	classic ──first member of the next generation joins──▶ upgrade.go ───┐
//	   ▲                                                                 ▼
//	   └── downgrade.go ◀──its last one leaves or is removed── next-generation
//
// What is answered is on disk: a step that changes what a restart must find
// (commits, the assignment of a generation) hands out a [Write] and answers
// only when [Groups.Written] has said that it is durable. Until then nobody
// reads it either: committed offsets change in memory when the write has ended.
// A group of the next-generation protocol has one write under way at a time, a
// [step] of all that has come meanwhile, and takes it back if it fails.
//
// Invariants, attacked by TestOwnersAreUnique, TestConsumersNeverShare and
// TestMigrantsNeverShare:
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
// once and not behind an answer. And in migrations: members that have never been
// answered are not taken over but join anew; a partition that its leader has
// given to two is a reason not to upgrade; a classic member of a mixed group that
// was removed and joins with what it owns is told so first; a static member takes
// its own old place also in a full group; after every downgrade all join, also
// when a static member caused it and after a restart, so that somebody leads;
// until then a member may name the epoch that it had; new partitions are noticed
// also while all members are classic.
//
// Reading order: machine.go, timers.go, state.go, member.go, join.go, static.go,
// rebalance.go, sync.go, leave.go, commit.go, fetch.go, remove.go, describe.go,
// load.go; then consumer.go, consumer_step.go, consumer_heartbeat.go,
// consumer_target.go, consumer_leave.go, consumer_commit.go,
// consumer_describe.go, consumer_load.go; then upgrade.go, mixed_join.go,
// mixed.go, downgrade.go.
package group
