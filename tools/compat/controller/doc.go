// Package controller runs coord/controller against a real Apache ZooKeeper 3.9, and takes a tree from Apache Kafka 3.9 and gives it back.
//
// It is opt-in: MILLRACE_ZOOKEEPER=1 go test ./tools/compat/controller. It needs java, and mvn the first time, and says so where it has to skip.
package controller
