// Package replica holds a partition's role on this broker: who leads it, in
// which epoch, who is in sync, how far readers may read, and who waits for more.
//
// A [Manager] maps names and ids to a [Topic] and its [Partition]s. Look-ups are
// lock-free; changes come in through Apply, from whatever coordinates.
//
// Of the roles only the leader's is built. A follower's would sit beside
// leader.go, with its fetcher, and be switched in by Partition.assume; the
// leader would learn what followers hold where highWatermark takes its minimum.
//
// Lock order: Manager.mu, then Partition.mu, then the locks of engine.Log.
// Reading order: policy.go, topic.go, leader.go, waiters.go, manager.go.
package replica
