// Package znode is the layout of Kafka 3.9's ZooKeeper tree: where each node is (path.go) and what is in it.
//
// Encoding writes what Kafka 3.9 writes, byte for byte: the keys in its order, maps by ascending number or name (Kafka's order within a map is that of
// its hash tables, and no reader cares). Decoding demands that what we rely on is there and of the right type, takes older versions of a node where part A
// of the layout has them, and passes over fields that it does not know.
//
// A node whose data is null in the tree of Kafka is written with nil here. Delegation tokens and the marks of a migration to KRaft are left alone: nothing here reads them.
package znode
