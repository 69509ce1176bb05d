// Package coord is what a broker knows of its cluster, and how it asks for
// changes: an immutable [Image] of brokers and topics, and the [Service] that
// publishes images and carries out creations and deletions.
//
// The broker knows only these two. coord/single implements them over one file
// for a broker that is alone; the coordination service proper will implement
// them over its znode tree, and nothing above may notice the difference.
//
// Invariant C4: an Image never changes after it is published.
package coord
