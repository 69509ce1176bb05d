// Package controller is coord.Service over a ZooKeeper-style tree laid out as Kafka 3.9's (package znode), for brokers that share it.
//
// Every broker has one Service, in two halves. The member half (member.go) holds the Image that the broker reads: it takes orders from whoever is
// controller, and follows the settings in the tree by itself. The controller half (lead.go and those behind it) exists while this broker is the elected
// one: it decides with package cluster, writes, and gives orders through Peer, its own member included.
//
// What stands when a change is answered: it is written, and this broker's subscribers have acted on the Image that has it.
//
// Writes. The controller's are multis that begin with a check of /controller_epoch (C1): once another is elected they fail whole, and this one resigns.
// Settings, quotas and blocks of producer ids are written by any broker, against the version that was read. A topic's nodes are made in one multi
// where they fit (batches in write.go), its settings and its assignment always together; so a crash leaves it whole, or missing, or, if it is
// large, without some partitions' states, which the next controller makes. Deletion: the request's node is there until all else is gone.
//
// When an answer is lost (connection closed, session expired) nobody knows whether the write took effect. Then nothing is guessed: the request is answered
// with a retriable error, and all that is known is read again before the next write (resync in session.go). The same path serves a start, a new session,
// and a new election; there is no other recovery.
//
// Errors while coordination is away: the Image stays served. What only the controller may do is answered with NOT_CONTROLLER, what could not be
// written in time or whose answer was lost with REQUEST_TIMED_OUT ("may still succeed"); clients retry both.
//
// What Kafka 3.9 has no node for is under /millrace, which it neither reads nor writes: settings of groups and of subscriptions to clients'
// metrics, and the queue of changes of both.
//
// Who may call what: all exported methods from any goroutine. Lock order: Service.mu (one change of the tree at a time) before member.mu (the
// image). One goroutine a Service, run in session.go; Close waits for it.
package controller
