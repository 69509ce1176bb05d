package java

import (
	"fmt"
	"strings"
	"time"

	"millrace/tools/compat/harness"
)

// toolChecks run the command line tools of both lines of Kafka.
func toolChecks() []harness.Check {
	var out []harness.Check
	for _, l := range []harness.Libs{harness.Kafka43, harness.Kafka39} {
		client := "Apache Kafka's tools " + strings.TrimPrefix(l.Name, "kafka-")
		for _, c := range []struct {
			name  string
			play  func(*stage)
			alone bool
			with  []string
		}{
			{name: "topics", play: topicActs},
			{name: "configs and quotas", play: configActs},
			{name: "client metrics", play: metricsActs},
			{name: "console producer and consumer", play: consoleActs},
			{name: "consumer groups", play: groupActs},
			{name: "offsets, records, directories, elections, reassignments", play: logActs},
			{name: "cluster and API versions", play: clusterActs},
			{name: "verifiable clients, performance tests, end-to-end latency", play: perfActs},
		} {
			out = append(out, harness.Check{Client: client, Name: c.name, Limit: 6 * time.Minute, Run: func(e *harness.Env) error {
				start := besideKafka
				if c.alone {
					start = millraceOnly
				}
				s, err := start(e, l, c.with...)
				if err != nil {
					return err
				}
				defer s.close()
				c.play(s)
				return s.finish()
			}})
		}
		for _, n := range notBuilt {
			out = append(out, harness.Check{Client: client, Name: n.tool + " " + n.args, Limit: 3 * time.Minute, Run: func(e *harness.Env) error { return refusedClearly(e, l, n.tool, n.args, n.api, n.got) }})
		}
	}
	return out
}

// notBuilt are acts whose requests Millrace does not serve, with what the tool says of it.
var notBuilt = []struct{ tool, args, api, got string }{
	{"acls", "--list", "access control lists (DescribeAcls, CreateAcls, DeleteAcls)", "does not support DESCRIBE_ACLS"},
	{"configs", "--entity-type users --describe", "SCRAM credentials (DescribeUserScramCredentials); quotas of users are shown", "does not support DESCRIBE_USER_SCRAM_CREDENTIALS"},
	{"metadata-quorum", "describe --status", "the controllers' quorum (DescribeQuorum)", "does not support DESCRIBE_QUORUM"},
	{"features", "upgrade --feature metadata.version=20", "changing features (UpdateFeatures)", "does not support UPDATE_FEATURES"},
	{"transactions", "list", "transactions (ListTransactions, DescribeTransactions)", "does not support LIST_TRANSACTIONS"},
}

// refusedClearly demands that the tool fails with these very words.
func refusedClearly(e *harness.Env, l harness.Libs, tool, args, api, got string) error {
	s, err := millraceOnly(e, l)
	if err != nil {
		return err
	}
	defer s.close()
	class, err := harness.ToolClass(l, tool)
	if err != nil {
		return err
	}
	words := append(split(args), "--bootstrap-server", s.brokers[0].addr)
	if tool == "metadata-quorum" || tool == "features" || tool == "transactions" { // their option comes before the act
		words = append([]string{"--bootstrap-server", s.brokers[0].addr}, split(args)...)
	}
	r, err := s.tools.run(class, "", words)
	if err != nil {
		return err
	}
	for line := range strings.Lines(r.out + r.err) {
		if strings.Contains(line, got) {
			return harness.NotBuilt{API: api, Got: fold(line)}
		}
	}
	return fmt.Errorf("exit status %d without %q: %s%s", r.status, got, r.out, r.err)
}
