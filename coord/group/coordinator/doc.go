// Package coordinator drives the state machines of package group: it is the
// coordinator of the groups whose partition of __consumer_offsets this broker
// leads. Each such partition is a shard with one mutex, one state machine and
// one log; shards know nothing of each other.
//
// A request runs on its caller's goroutine: the step is taken and its records
// are put in line for the log under the shard's mutex, so that the log has them
// in the order of the steps; then the caller itself sees to it that they become
// durable, without the mutex, and reports back. A write's end is told to the
// state machine in the order of the writes, whoever comes first.
//
// Goroutines of a [Service], all ended by Close: one that waits for the next
// alarm of all shards, one that makes writes durable which no request waits
// for, and at most maxLoads that read partitions.
//
// Reading order: log.go, service.go, shard.go, requests.go, consumer.go, admin.go, load.go,
// alarm.go.
package coordinator
