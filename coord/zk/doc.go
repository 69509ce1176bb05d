// Package zk is coordination in ZooKeeper's manner: a znode tree that means what ZooKeeper
// 3.9's means, kept by an engine.Log, served by ZooKeeper's client protocol. [Start]
// opens all of it below one folder, in the broker's process or in one of its own.
//
//	proto/    the client protocol as values and bytes
//	tree/     the tree, its sessions, access lists, quotas and watches: a pure state machine
//	store/    its transactions in a log, its snapshots in files, recovery
//	expiry/   when sessions end
//	server/   connections, sessions, order, four-letter words
//	service.go  the pieces put together over one folder
//
// A write goes: request parsed (proto), made a tree.Txn with the client's identities and
// the rules in force, committed with whatever else waits (store: one batch, one sync),
// applied (tree), its watch events and its answer handed out, in that order. A read goes
// straight to the tree, behind its own session's earlier writes.
//
// Transactions are requests, not outcomes: what a request comes to is decided when it is
// applied, by the tree and the transaction alone, and so the same in every replay and,
// later, on every member of an ensemble. Whatever else matters (quota enforcement, TTL
// nodes, the time, who asks) is part of the transaction. A refused request is one too and
// takes a zxid, as in ZooKeeper: a client that has seen it must not find a service whose
// zxid is lower.
//
// Invariants: C2 (an acknowledged write is in every later state) and C3 (events before
// what they are about); docs/INVARIANTS.md.
package zk
