// Package tree is the znode tree of ZooKeeper 3.9 as a state machine: no clock, no
// socket, no file, no goroutine. [Tree.Apply] takes one transaction after another and
// returns the result and the events for watchers as values; [Tree.Read] answers
// everything else.
//
// # What is the same as in ZooKeeper
//
// Node kinds (persistent, ephemeral, sequential, container, TTL), versions, stats, zxids,
// the order of checks and so the error code of several, multis and what their results
// say, access lists of the schemes world, auth, digest and ip with the super user, the
// quota nodes and their counters, one-shot, persistent and recursive watches and what
// each is told, setWatches, path rules. tools/compat/zookeeper compares all of that with
// the real server, request by request.
//
// # What is not
//
// "sasl" and "x509" in access lists are unknown schemes (as in a ZooKeeper that has no
// provider for them configured). A check outside a multi answers without a body.
// deleteContainer is the service's own request: clients' must be refused before they come
// here. Counts and lists go by what was sent: invalid UTF-8 is an invalid path.
//
// # How it is kept small
//
// A node is 64 bytes in a page of an arena and one allocation for name and data. It is
// found by the number of its parent and its name, so no path is stored; siblings are a
// linked list, so no node has a set of children; and what most leaves have no need of is
// apart. Equal access lists are stored once.
//
// # Who may call what at once
//
// Nothing here is locked. Apply, Unwatch, a Snapshot's methods, and Read when [Arms] says
// so need the tree for themselves; Read otherwise, Size, Sessions, Reapable and Watched
// may run beside each other. Data in a result is memory that is never written again.
//
// Reading order: tree.go, node.go, path.go, txn.go, apply.go, multi.go, read.go, watch.go,
// acl.go, acl_ip.go, quota.go, snapshot.go, snapshot_load.go.
package tree
