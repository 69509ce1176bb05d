// Command compat runs foreign clients, tools and frameworks, and our own tools, against a real Millrace process: each check
// moves real bytes and compares values. What a check needs and the machine lacks is installed from the package registries
// where that is possible (kcat by apt, Python packages into a virtual environment, Java libraries and Node packages below
// .cache); otherwise the check is skipped with its reason, or, with CI set in the environment, fails. A check that meets
// something Millrace does not offer yet says which, with the error it got.
//
//	go run ./tools/compat              # everything
//	go run ./tools/compat -short       # the end-to-end run of `make test`
//	go run ./tools/compat -only kcat   # the checks whose name contains kcat
//	go run ./tools/compat -reference   # what the coordination service is measured by
//	go run ./tools/compat -zookeeper   # everything, with each Millrace node on an Apache ZooKeeper (one server, a chroot a node)
//	go run ./tools/compat -record docs/compat-results.json   # and keep the results for docs/compatibility.md
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"

	"millrace/tools/compat/clients"
	"millrace/tools/compat/core"
	"millrace/tools/compat/frameworks"
	"millrace/tools/compat/harness"
	"millrace/tools/compat/interchange"
	"millrace/tools/compat/java"
	"millrace/tools/compat/sweep"
	"millrace/tools/compat/zookeeper"
)

func main() {
	var o harness.Options
	flag.BoolVar(&o.Short, "short", false, "only the short end-to-end run")
	flag.StringVar(&o.Only, "only", "", "only the checks whose name contains this")
	flag.StringVar(&o.Tally, "tally", "", "append the counts to this file")
	flag.StringVar(&o.Record, "record", "", "write the results to this file")
	flag.IntVar(&o.MB, "mb", 0, "size of the real file in MB (default 24, short 2)")
	flag.IntVar(&o.Jobs, "jobs", 2, "checks at a time")
	zk := flag.Bool("zookeeper", false, "everything, with each Millrace node on an Apache ZooKeeper in place of its own coordination; without it, and without -short, some checks run that way too")
	reference := flag.Bool("reference", false, "the checks of the coordination service against Apache ZooKeeper itself, nothing else")
	flag.Parse()
	if o.MB == 0 {
		o.MB = 24
		if o.Short {
			o.MB = 2
		}
	}
	checks := slices.Concat(core.Checks(), clients.Checks(), frameworks.Checks(), java.Checks(), interchange.Checks(), sweep.Checks(), zookeeper.Checks())
	switch {
	case *reference:
		checks = zookeeper.Reference()
	case *zk:
		checks = harness.OnZooKeeper(checks)
	case !o.Short:
		checks = append(checks, harness.OnZooKeeper(slices.DeleteFunc(slices.Clone(checks), func(c harness.Check) bool { return !onZooKeeperToo(c) }))...)
	}
	if err := harness.RunAll(checks, o); err != nil {
		fmt.Fprintln(os.Stderr, "compat:", err)
		os.Exit(1)
	}
}

// onZooKeeperToo chooses what always runs on an Apache ZooKeeper as well: the checks of `make test`, and of Kafka's tools and Java clients those
// that ask most of the controller.
func onZooKeeperToo(c harness.Check) bool {
	return c.Short || slices.Contains([]string{
		"Apache Kafka's tools 4.3.1: topics",
		"Apache Kafka's tools 4.3.1: configs and quotas",
		"Apache Kafka's tools 4.3.1: consumer groups",
		"Java client 4.3.1: admin client",
		"Java client 3.9.2: idempotent producer, each codec, keys, headers, nulls, sizes, timestamps",
		"Java client 4.3.1: acked records and committed offsets survive kill -9 of the broker",
		"Java client 2.8.2: each codec in and out, groups with each assignor",
	}, c.Title())
}
