package java

import (
	"fmt"
	"regexp"
	"strings"
)

// clusterActs: kafka-broker-api-versions and kafka-cluster.
func clusterActs(s *stage) {
	outs := make([]string, len(s.brokers))
	for i, b := range s.brokers {
		outs[i] = s.on(b, act{tool: "broker-api-versions", want: []string{"~127.0.0.1:\\d+ \\(id: 1 rack: null( isFenced: false)?\\) -> \\(", "~Produce\\(0\\): 0 to \\d+ \\[usable: \\d+\\],", "~Metadata\\(3\\): 0 to \\d+ \\[usable: \\d+\\],"}})
	}
	// What both serve is served to the same newest version.
	line := regexp.MustCompile(`(\w+)\(\d+\): (\d+)(?: to (\d+))? \[usable: (\d+)\]`)
	versions := func(out string) map[string][]string {
		m := map[string][]string{}
		for _, f := range line.FindAllStringSubmatch(out, -1) {
			m[f[1]] = f
		}
		return m
	}
	ours, theirs := versions(outs[0]), versions(outs[1])
	if len(ours) < 30 {
		s.fail(fmt.Errorf("broker-api-versions: only %d requests: %s", len(ours), outs[0]))
	}
	for api, v := range ours {
		if strings.Contains(api, "Telemetry") {
			continue // Kafka serves it with a plugin only
		}
		if w, ok := theirs[api]; !ok || w[4] != v[4] {
			s.fail(fmt.Errorf("broker-api-versions: Millrace says %v, Apache Kafka %v", v, w))
		}
	}
	if missing := regexp.MustCompile(`(\w+)\(\d+\): UNSUPPORTED`).FindAllStringSubmatch(outs[0], -1); len(missing) > 0 {
		var names []string
		for _, m := range missing {
			names = append(names, m[1])
		}
		s.e.Note("broker-api-versions finds %d requests served and %d not: %s", len(ours), len(missing), strings.Join(names, ", "))
	}
	s.do(act{tool: "cluster", args: "cluster-id --bootstrap-server {b}", want: []string{"~Cluster ID: [\\w-]{22}"}, how: alone})
	if !s.old {
		s.do(act{tool: "cluster", args: "list-endpoints --bootstrap-server {b}", want: []string{"~ID HOST PORT RACK STATE ENDPOINT_TYPE", "~1 127.0.0.1 \\d+ null .*"}, mask: []string{`\d{5}`}})
	}
}
