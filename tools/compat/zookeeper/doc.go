// Package zookeeper holds the checks of the coordination service against Apache ZooKeeper.
//
// In the tests (opt-in: MILLRACE_ZOOKEEPER=1 go test ./tools/compat/zookeeper; it needs java, and mvn the first time, and says
// so where it has to skip) the same sequence of requests goes to both: results, versions, stats, zxids and watch events must
// be equal, but for clocks.
//
// In tools/compat ZooKeeper's own shell, JUnit tests and clients, Apache Curator's recipes and kazoo's own test-suite are
// pointed at a server. Reference runs them against Apache ZooKeeper 3.9.5, which is how it is known that what is left out,
// with its reason, does not pass there either.
package zookeeper
