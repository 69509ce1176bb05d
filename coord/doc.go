// Package coord is what a broker knows of its cluster, and how it asks for
// changes: an immutable [Image] of brokers and topics, and the [Service] that
// publishes images and carries out creations and deletions.
//
// The broker knows only these two, but for its start. coord/controller implements
// them over a ZooKeeper-style tree that brokers share; coord/contract are the
// tests that any implementation has to pass.
//
// Invariant C4: an Image never changes after it is published.
package coord
