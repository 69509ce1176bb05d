package java

import (
	"fmt"
	"strings"
	"time"
)

// groupActs: kafka-consumer-groups in each form, and kafka-groups of 4.3.
func groupActs(s *stage) {
	g := func(args string, want ...string) string {
		return s.do(act{tool: "consumer-groups", args: args, want: want})
	}
	refused := func(args, exception string) { // the tool's exit status is 0 all the same
		s.do(act{tool: "consumer-groups", args: args, how: alone, err: exception})
	}
	loose := func(args string, want ...string) {
		s.do(act{tool: "consumer-groups", args: args, want: want, how: anyOrder})
	}
	s.do(act{tool: "topics", args: "--create --topic orders --partitions 2"})
	s.do(act{tool: "topics", args: "--create --topic other --partitions 1"})
	now := time.Now()
	fill := "{b}"
	for i := range 10 { // one each ten minutes, the newest 5 minutes old
		at := now.Add(-time.Duration(10*(9-i)+5) * time.Minute).UnixMilli()
		fill += fmt.Sprintf(" orders 0 %d a%d orders 1 %d b%d other 0 %d c%d", at, i, at, i, at, i)
	}
	s.do(act{tool: "Fill", args: fill})
	// reset checks the plan that was printed: group, topic, partition and offset. 3.9 prints no line ends.
	reset := func(args, file string, plan ...string) string {
		out := s.do(act{tool: "consumer-groups", args: "--reset-offsets " + args, file: file, how: anyOrder})
		for _, line := range plan {
			if !strings.Contains(" "+fold(out)+" ", " "+line+" ") {
				s.fail(fmt.Errorf("reset %s: the plan lacks %q: %s", args, line, out))
			}
		}
		if n := strings.Count(" "+fold(out)+" ", " app ") + strings.Count(" "+fold(out)+" ", " new "); n != len(plan) {
			s.fail(fmt.Errorf("reset %s: the plan has %d lines, want %d: %s", args, n, len(plan), out))
		}
		return out
	}

	// A coordinator is there once a member has joined; the tool itself waits 5 s for one, and a busy machine takes longer.
	s.do(act{tool: "Member", args: "join bootstrap.servers={b} group.id=first enable.auto.commit=false -- other"})
	s.do(act{tool: "Member", args: "leave"})
	g("--delete --group first", "~Deletion of requested consumer groups \\(.*first.*\\) was successful.")
	g("--list")
	reset("--group app --topic orders --to-offset 4 --execute", "", "app orders 0 4", "app orders 1 4")
	reset("--group app --topic other --to-latest --execute", "", "app other 0 10")
	loose("--list", "app")
	loose("--list --state", "GROUP STATE", "app Empty")
	if s.old {
		loose("--list --type", "GROUP TYPE", "app Classic")
		loose("--list --type --state", "GROUP TYPE STATE", "app Classic Empty")
	} else {
		loose("--list --type", "GROUP TYPE", "app Classic")
		loose("--list --type consumer")
		s.do(act{tool: "groups", args: "--list", want: []string{"GROUP TYPE PROTOCOL"}, how: anyOrder})
		s.do(act{tool: "groups", args: "--list --consumer", how: anyOrder})
		s.do(act{tool: "groups", args: "--list --group-type classic", how: anyOrder})
		s.do(act{tool: "groups", args: "--list --protocol consumer", how: anyOrder})
	}
	loose("--list --state empty", "app Empty")
	loose("--list --state stable")
	loose("--describe --group app", "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID", "app orders 0 4 10 6 - - -", "app orders 1 4 10 6 - - -", "app other 0 10 10 0 - - -")
	loose("--describe --group app --offsets --verbose", "~app orders 0 .*4 10 6 - - -")
	loose("--describe --group app --members")
	loose("--describe --group app --state", "~GROUP COORDINATOR \\(ID\\) ASSIGNMENT-STRATEGY STATE #MEMBERS", "~app 127.0.0.1:\\d+ \\(1\\) (- )?Empty 0")
	loose("--describe --all-groups", "~app orders 0 .*")
	s.do(act{tool: "consumer-groups", args: "--describe --group nosuch", how: alone, err: "nosuch"})

	// Every way to reset, looked at first and then done.
	plans := []struct {
		how  string
		want [3]int // orders-0, orders-1, other-0; -1: not among them
	}{
		{"--topic orders --to-earliest", [3]int{0, 0, -1}},
		{"--topic orders --to-latest", [3]int{10, 10, -1}},
		{"--topic orders --to-offset 7", [3]int{7, 7, -1}},
		{"--topic orders --to-offset 99", [3]int{10, 10, -1}}, // no farther than the end
		{"--topic orders --shift-by -3", [3]int{7, 7, -1}},
		{"--topic orders --shift-by 2", [3]int{9, 9, -1}},
		{"--topic orders --shift-by -100", [3]int{0, 0, -1}},
		{"--topic orders:1 --to-offset 5", [3]int{-1, 5, -1}},
		{"--topic orders:0,1 --topic other:0 --to-offset 3", [3]int{3, 3, 3}},
		{"--all-topics --to-current", [3]int{3, 3, 3}},
		{"--all-topics --by-duration PT1H", [3]int{4, 4, 4}},
		{"--topic orders --to-datetime " + now.Add(-30*time.Minute).UTC().Format("2006-01-02T15:04:05.000"), [3]int{7, 7, -1}},
		{"--topic orders --to-datetime " + now.Add(-30*time.Minute).UTC().Format("2006-01-02T15:04:05.000") + "Z", [3]int{7, 7, -1}},
		{"--topic orders --to-datetime " + now.Add(time.Hour).UTC().Format("2006-01-02T15:04:05.000") + "Z", [3]int{10, 10, -1}}, // after the newest
	}
	for _, p := range plans {
		var want []string
		for i, tp := range []string{"orders 0", "orders 1", "other 0"} {
			if p.want[i] >= 0 {
				want = append(want, fmt.Sprintf("app %s %d", tp, p.want[i]))
			}
		}
		for _, mode := range []string{" --dry-run", " --execute"} {
			reset("--group app "+p.how+mode, "", want...)
		}
	}
	csv := s.do(act{tool: "consumer-groups", args: "--reset-offsets --group app --topic orders --to-offset 2 --export --dry-run", how: anyOrder})
	if !strings.Contains(csv, "orders,0,2") && !strings.Contains(csv, `"orders",0,2`) {
		s.fail(fmt.Errorf("the exported plan is %q", csv))
	}
	loose("--describe --group app --offsets", "app orders 0 10 10 0 - - -")
	reset("--group app --from-file {file} --dry-run", csv, "app orders 0 2", "app orders 1 2")
	reset("--group app --from-file {file} --execute", csv, "app orders 0 2", "app orders 1 2")
	loose("--describe --group app", "app orders 0 2 10 8 - - -")
	reset("--all-groups --all-topics --to-earliest --dry-run", "", "app orders 0 0", "app orders 1 0", "app other 0 0")
	refused("--reset-offsets --group app --topic nosuch --to-earliest --dry-run", "UnknownTopicOrPartitionException")
	reset("--group new --topic orders --to-earliest --execute", "", "new orders 0 0", "new orders 1 0") // a group that was not there

	// Members.
	s.do(act{tool: "Member", args: "join bootstrap.servers={b} group.id=app group.instance.id=pinned client.id=reader auto.offset.reset=earliest enable.auto.commit=false -- orders"})
	s.do(act{tool: "consumer-groups", args: "--describe --group app --members", want: []string{"~GROUP CONSUMER-ID GROUP-INSTANCE-ID HOST CLIENT-ID #PARTITIONS.*", "~app pinned-\\S+ pinned /127.0.0.1 reader 2.*"}})
	s.do(act{tool: "consumer-groups", args: "--describe --group app --members --verbose", want: []string{"~app pinned-\\S+ pinned /127.0.0.1 reader 2 .*0,1.*"}})
	g("--describe --group app --state", "~app 127.0.0.1:\\d+ \\(1\\) range Stable 1")
	loose("--describe --group app", "~app orders 0 2 10 8 pinned-\\S+ /127.0.0.1 reader")
	loose("--list --state", "app Stable")
	s.do(act{tool: "consumer-groups", args: "--reset-offsets --group app --topic orders --to-earliest --execute", want: []string{"~Error: Assignments can only be reset if the group 'app' is inactive, but the current state is Stable."}})
	refused("--delete --group app", "GroupNotEmptyException")
	refused("--delete-offsets --group app --topic orders", "GroupSubscribedToTopicException")
	s.do(act{tool: "Member", args: "leave"})
	if !s.old {
		s.do(act{tool: "Member", args: "join bootstrap.servers={b} group.id=next group.protocol=consumer client.id=reader auto.offset.reset=earliest enable.auto.commit=false -- orders"})
		for _, form := range []string{"--members --verbose", "--state --verbose", "--offsets --verbose"} {
			// A new group's epoch is 1 here, 2 there: not a thing to rely on.
			s.do(act{tool: "consumer-groups", args: "--describe --group next " + form, how: anyOrder, mask: []string{`\b[12] ( *orders:0,1 +)[12] `, `Stable +[12] +[12]`, `\b[\w-]{22}\b`}, want: []string{"~next .*"}})
		}
		g("--describe --group next --state", "~next 127.0.0.1:\\d+ \\(1\\) uniform Stable 1")
		loose("--list --type --state", "next Consumer Stable")
		s.do(act{tool: "groups", args: "--list --consumer", want: []string{"~next Consumer consumer"}, how: anyOrder})
		s.do(act{tool: "Member", args: "leave"})
	}
	s.do(act{tool: "consumer-groups", args: "--delete-offsets --group app --topic other", how: anyOrder, want: []string{"~Request succeed(ed)? for deleting offsets.* group app.*", "~.*other 0 Successful.*"}})
	s.do(act{tool: "consumer-groups", args: "--delete-offsets --group app --topic orders:1", how: anyOrder})
	loose("--describe --group new", "new orders 0 0 10 10 - - -")
	g("--delete --group new", "~Deletion of requested consumer groups \\(.*new.*\\) was successful.")
	refused("--delete --group nosuch", "GroupIdNotFoundException")
	s.do(act{tool: "consumer-groups", args: "--list", how: anyOrder, not: []string{"new"}})
}
