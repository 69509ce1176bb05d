// Package server speaks ZooKeeper's client protocol over a store: connections, sessions,
// order, watch events, four-letter words. It is one service on one node.
//
// # Goroutines
//
// Every connection has a reader and a writer; both end with it. The committer takes what
// all of them have submitted and commits it together. The ticker expires sessions and
// reaps containers. The acceptor takes connections. Close ends all and waits for them.
//
// # Order
//
// Answers leave in request order on each connection, except pings and auth, which have
// xids of their own. Writes of a connection are in line before it reads its next request,
// so they keep their order; a read waits until its connection's writes are answered.
// Answers and events are put into a connection's buffer while the tree is held, so they
// stand there in the order in which the tree was changed and read (C3), and no watch fires
// before the answer to the request that set it.
//
// # Bounds
//
// limits.go names them. A client that does not read is cut off when what waits for it
// exceeds maxOut: by its own answers it never does, since its next request is not read
// before, so what cuts it off are events. Requests in flight share one budget of bytes,
// which is taken before a request is read.
package server
