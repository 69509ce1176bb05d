// Package proto is ZooKeeper's client protocol as values and bytes: requests,
// results, stats, ACLs, watch events, the session handshake, error codes, and the
// jute encoding of each. It knows no tree, no clock and no socket.
//
// Both directions are here. The server parses requests and appends replies; our
// own tools, and the tests that drive a real ZooKeeper, append requests and parse
// replies.
//
// A frame is a big-endian length and that many bytes; the frame's reader strips the
// length and bounds it (jute.maxbuffer). Everything parsed here lies within the bytes
// given (W1): a count is checked against what is left before anything is allocated for
// it, so a body of n bytes never makes more than a small multiple of n. Data parsed
// from a request aliases the frame; strings are copies.
//
// Reading order: codes.go, types.go, jute.go, request.go, multi.go, result.go,
// connect.go. Source: zookeeper.jute, ZooDefs, KeeperException, MultiOperationRecord
// of ZooKeeper 3.9.
package proto
