package java

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"millrace/tools/compat/harness"
)

// logActs: what looks at and changes partitions: get-offsets, delete-records, log-dirs, leader-election, reassign-partitions.
func logActs(s *stage) {
	s.do(act{tool: "topics", args: "--create --topic orders --partitions 2"})
	s.do(act{tool: "topics", args: "--create --topic other --partitions 1"})
	base := time.Now().Add(-time.Hour).UnixMilli()
	fill := "{b}"
	for i := range int64(10) {
		fill += fmt.Sprintf(" orders 0 %d a%d", base+1000*i, i)
		if i < 4 {
			fill += fmt.Sprintf(" orders 1 %d b%d other 0 %d c%d", base+1000*i, i, base-1000*i, i) // other's newest comes first
		}
	}
	s.do(act{tool: "Fill", args: fill})
	offsetActs(s, base)
	deleteRecordActs(s)
	logDirActs(s)
	electionActs(s)
	reassignActs(s)
	moveActs(s)
}

func offsetActs(s *stage, base int64) {
	o := func(args string, want ...string) {
		s.do(act{tool: "get-offsets", args: args, want: want, not: []string{"Exception"}})
	}
	o("--topic orders", "orders:0:10", "orders:1:4")
	o("--exclude-internal-topics", "orders:0:10", "orders:1:4", "other:0:4")
	for _, t := range []struct{ time, a, b, c string }{
		{"-1", "10", "4", "4"}, {"latest", "10", "4", "4"}, {"-2", "0", "0", "0"}, {"earliest", "0", "0", "0"}, {"-3", "9", "3", "0"}, {"max-timestamp", "9", "3", "0"},
		{"-4", "0", "0", "0"}, {"earliest-local", "0", "0", "0"},
		{fmt.Sprint(base + 2500), "3", "3", ""}, {fmt.Sprint(base), "0", "0", "0"},
	} {
		want := []string{"orders:0:" + t.a, "orders:1:" + t.b}
		if t.c != "" { // else nothing is as late
			want = append(want, "other:0:"+t.c)
		}
		o("--topic-partitions orders,other --time "+t.time, want...)
	}
	s.do(act{tool: "get-offsets", args: "--topic-partitions orders,other --time -5"})
	s.do(act{tool: "get-offsets", args: "--topic-partitions orders,other --time latest-tiered"})
	o("--topic-partitions orders:1,ot.*:0-1", "orders:1:4", "other:0:4")
	o("--topic o.*s --partitions 1", "orders:1:4")
	s.do(act{tool: "get-offsets", args: "--topic nosuch", status: 1, how: alone, err: "Could not match any topic-partitions with the specified filters"})
}

func deleteRecordActs(s *stage) {
	d := func(file string, want ...string) {
		s.do(act{tool: "delete-records", args: "--offset-json-file {file}", file: file, want: want, how: anyOrder})
	}
	d(`{"partitions":[{"topic":"orders","partition":0,"offset":3},{"topic":"orders","partition":1,"offset":-1}],"version":1}`, "partition: orders-0 low_watermark: 3", "partition: orders-1 low_watermark: 4")
	s.do(act{tool: "get-offsets", args: "--topic orders --time -2", want: []string{"orders:0:3", "orders:1:4"}})
	s.do(act{tool: "get-offsets", args: "--topic orders --time -1", want: []string{"orders:0:10", "orders:1:4"}})
	s.do(act{tool: "delete-records", args: "--offset-json-file {file}", file: `{"partitions":[{"topic":"orders","partition":0,"offset":11}],"version":1}`, how: alone, err: "OffsetOutOfRangeException"})
	s.do(act{tool: "console-consumer", args: "--topic orders --partition 0 --offset earliest --max-messages 1 --timeout-ms 30000", want: []string{"a3"}})
}

// logDirActs holds the JSON of kafka-log-dirs against what is there.
func logDirActs(s *stage) {
	for _, b := range s.brokers {
		out := s.on(b, act{tool: "log-dirs", args: "--describe --broker-list 1 --topic-list orders,other", want: []string{"Querying brokers for log directories information", "Received log directory information from brokers 1"}})
		lines := strings.Split(strings.TrimSpace(out), "\n")
		var dirs struct {
			Brokers []struct {
				Broker  int
				LogDirs []struct {
					LogDir     string
					Error      *string
					Partitions []struct {
						Partition       string
						Size, OffsetLag int64
						IsFuture        bool
					}
				}
			}
		}
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &dirs); err != nil {
			s.fail(fmt.Errorf("log-dirs: %w: %s", err, out))
			continue
		}
		if len(dirs.Brokers) != 1 || dirs.Brokers[0].Broker != 1 || len(dirs.Brokers[0].LogDirs) != 2 {
			s.fail(fmt.Errorf("log-dirs of %s: want broker 1 with two directories: %s", b.name, out))
			continue
		}
		seen := map[string]bool{}
		for _, d := range dirs.Brokers[0].LogDirs {
			if d.Error != nil || d.LogDir != b.fill("{dir}/data") && d.LogDir != b.fill("{dir}/data2") {
				s.fail(fmt.Errorf("log-dirs of %s: directory %q, error %v", b.name, d.LogDir, d.Error))
			}
			for _, p := range d.Partitions {
				if seen[p.Partition] || p.Size <= 0 && p.Partition != "orders-1" || p.OffsetLag != 0 || p.IsFuture {
					s.fail(fmt.Errorf("log-dirs of %s: %+v", b.name, p))
				}
				seen[p.Partition] = true
			}
		}
		if len(seen) != 3 || !seen["orders-0"] || !seen["orders-1"] || !seen["other-0"] {
			s.fail(fmt.Errorf("log-dirs of %s: partitions %v", b.name, seen))
		}
	}
	s.do(act{tool: "log-dirs", args: "--describe", how: alone, want: []string{"~.*\"partition\":\"other-0\".*"}})
	s.do(act{tool: "log-dirs", args: "--describe --broker-list 7", status: 1, how: alone, err: "7"})
}

func electionActs(s *stage) {
	e := func(args, file string, want ...string) {
		s.do(act{tool: "leader-election", args: args, file: file, want: want, how: anyOrder})
	}
	e("--election-type preferred --topic orders --partition 0", "", "Valid replica already elected for partitions orders-0")
	e("--election-type preferred --all-topic-partitions", "")
	e("--election-type preferred --path-to-json-file {file}", `{"partitions":[{"topic":"orders","partition":1}]}`, "Valid replica already elected for partitions orders-1")
	e("--election-type unclean --topic orders --partition 1", "", "Valid replica already elected for partitions orders-1")
	s.do(act{tool: "leader-election", args: "--election-type preferred --topic nosuch --partition 0", status: 1, how: alone, err: "UnknownTopicOrPartitionException"})
}

func reassignActs(s *stage) {
	r := func(args, file string, want ...string) string {
		return s.do(act{tool: "reassign-partitions", args: args, file: file, want: want, how: anyOrder})
	}
	const here = `{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[1],"log_dirs":["any"]},{"topic":"orders","partition":1,"replicas":[1],"log_dirs":["any"]}]}`
	r("--list", "", "No partition reassignments found.")
	r("--generate --topics-to-move-json-file {file} --broker-list 1", `{"version":1,"topics":[{"topic":"orders"}]}`, here)
	r("--execute --reassignment-json-file {file}", here, "Successfully started partition reassignments for orders-0,orders-1")
	r("--verify --reassignment-json-file {file}", here, "Reassignment of partition orders-0 is completed.", "Reassignment of partition orders-1 is completed.")
	r("--execute --throttle 1000000 --additional --reassignment-json-file {file}", here, "Successfully started partition reassignments for orders-0,orders-1")
	r("--cancel --reassignment-json-file {file}", here)
	r("--verify --reassignment-json-file {file}", here, "~Clearing broker-level throttles on broker 1", "~Clearing topic-level throttles on topic orders")
	s.do(act{tool: "configs", args: "--broker 1 --describe", not: []string{"throttled"}})
	s.do(act{tool: "configs", args: "--topic orders --describe", not: []string{"throttled"}, mask: []string{`(?m)^  min\.insync.*`}})
	s.do(act{tool: "reassign-partitions", args: "--execute --reassignment-json-file {file}", file: `{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[1,2]}]}`, status: 1, how: alone, err: "2"})
	s.do(act{tool: "reassign-partitions", args: "--execute --reassignment-json-file {file}", file: `{"version":1,"partitions":[{"topic":"nosuch","partition":0,"replicas":[1]}]}`, status: 1, how: alone, err: "nosuch"})
}

// moveActs moves a partition between log directories while it serves.
func moveActs(s *stage) {
	for _, to := range []string{"{dir}/data2", "{dir}/data"} {
		plan := `{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[1],"log_dirs":["` + to + `"]},{"topic":"orders","partition":1,"replicas":[1],"log_dirs":["` + to + `"]}]}`
		s.do(act{tool: "reassign-partitions", args: "--execute --reassignment-json-file {file}", file: plan, how: alone, want: []string{"Successfully started partition reassignments for orders-0,orders-1"}})
		for _, b := range s.brokers {
			err := harness.Within(time.Minute, func() error {
				out, err := s.once(act{tool: "log-dirs", args: "--describe --topic-list orders"}, b)
				if err == nil && !movedTo(out, b.fill(to)) {
					err = fmt.Errorf("orders is not whole in %s: %s", b.fill(to), out)
				}
				return err
			})
			if err != nil {
				s.fail(fmt.Errorf("moving logs on %s: %w", b.name, err))
			}
		}
		s.do(act{tool: "reassign-partitions", args: "--verify --reassignment-json-file {file}", file: plan, how: anyOrder,
			want: []string{"Reassignment of partition orders-0 is completed.", "Reassignment of partition orders-1 is completed.", "Reassignment of replica orders-0-1 completed successfully.", "Reassignment of replica orders-1-1 completed successfully."}})
		s.do(act{tool: "console-consumer", args: "--topic orders --partition 0 --offset earliest --max-messages 7 --timeout-ms 30000", want: []string{"a3", "a4", "a5", "a6", "a7", "a8", "a9"}})
	}
	s.do(act{tool: "reassign-partitions", args: "--execute --reassignment-json-file {file}", file: `{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[1],"log_dirs":["/nosuch"]}]}`, status: 1, how: alone, err: "LogDirNotFoundException"})
}

// movedTo says whether kafka-log-dirs shows both partitions of orders in this directory, and nothing under way.
func movedTo(out, dir string) bool {
	in, _, ok := strings.Cut(out, `"logDir":"`+dir+`"`) // the directory's name comes after its partitions
	in = in[strings.LastIndex(in, `{"partitions"`)+1:]
	return ok && strings.Contains(in, `"orders-0"`) && strings.Contains(in, `"orders-1"`) && !strings.Contains(out, `"isFuture":true`) && strings.Count(out, `"orders-`) == 2
}
