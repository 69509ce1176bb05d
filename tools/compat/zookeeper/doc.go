// Package zookeeper runs Apache ZooKeeper and compares coord/zk with it: the same
// sequence of requests goes to both, and results, versions, stats, zxids and watch
// events must be equal, but for clocks.
//
// It is opt-in: MILLRACE_ZOOKEEPER=1 go test ./tools/compat/zookeeper. It needs java,
// and mvn the first time, and says so where it has to skip.
package zookeeper
