// Package coord is what a broker knows of its cluster, and how it asks for
// changes: an immutable [Image] of brokers and topics, and the [Service] that
// publishes images and carries out creations and deletions.
//
// The broker knows only these two. coord/single implements them over one file
// for a broker that is alone; coord/controller over a ZooKeeper-style tree that
// brokers share. Nothing above may notice the difference: both pass the tests of
// coord/contract.
//
// Invariant C4: an Image never changes after it is published.
package coord
