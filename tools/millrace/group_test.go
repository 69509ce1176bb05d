package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"

	"millrace/tools/internal/cli"
	"millrace/tools/internal/client"
	"millrace/tools/internal/testbroker"
)

// Claim (F111): each way to reset lands exactly where it says, what is out of range is
// put to the nearest end with a warning, nothing is done without --execute, and the two
// command lines give the same.
// Method: a partition with offsets 40 to 100 whose records are a second apart.
func TestField_F111_ResetLandsWhereItSays(t *testing.T) {
	address := testbroker.Start(t)
	state := liveState(t, address)
	state.require(t, []string{"OffsetCommit", "OffsetFetch", "DescribeGroups", "DeleteRecords"})
	at70 := firstStamp.Add(70 * time.Second)
	for _, c := range []struct {
		to, script string
		from, want int64
		warns      bool
	}{
		{"earliest", "--to-earliest", 50, 40, false},
		{"latest", "--to-latest", 50, 100, false},
		{"70", "--to-offset 70", 50, 70, false},
		{"10", "--to-offset 10", 50, 40, true},
		{"999", "--to-offset 999", 50, 100, true},
		{"-5", "--shift-by -5", 50, 45, false},
		{"+5", "--shift-by 5", 50, 55, false},
		{"-500", "--shift-by -500", 50, 40, true},
		{"current", "--to-current", 50, 50, false},
		{"@" + at70.Format(time.RFC3339), "--to-datetime " + at70.Format("2006-01-02T15:04:05.000"), 50, 70, false},
		{fmt.Sprintf("@%d", at70.UnixMilli()-500), "--to-datetime " + at70.Add(-500*time.Millisecond).Format("2006-01-02T15:04:05.000"), 50, 70, false},
		{"@2001-01-01T00:00:00Z", "--to-datetime 2001-01-01T00:00:00", 50, 40, false},
	} {
		commit := func() {
			state.must(t, func() error {
				return state.admin.CommitAllOffsets(t.Context(), "cli-reset", offsetsAt("cli-events", c.from))
			})
		}
		commit()
		plan := []string{"group", "reset", "cli-reset", "--topic", "cli-events", "--to", c.to, "--json", "-b", address}
		status, out, errs := command(nil, plan...)
		var list []plannedOffset
		if err := json.Unmarshal([]byte(out), &list); status != cli.ExitOK || err != nil || len(list) != 1 || list[0].After != c.want || *list[0].Before != c.from {
			t.Errorf("%s: %d, %s%s", c.to, status, out, errs)
		}
		if warned := strings.Contains(errs, "Value will be set to"); warned != c.warns {
			t.Errorf("%s: warned %v: %s", c.to, warned, errs)
		}
		requireCommitted(t, state, "cli-reset", c.from, c.to+" without --execute")
		command(nil, append(plan, "--execute")...)
		requireCommitted(t, state, "cli-reset", c.want, c.to)

		commit()
		words := append([]string{"kafka-consumer-groups.sh", "--bootstrap-server", "BROKER", "--reset-offsets", "--group", "cli-reset", "--topic", "cli-events", "--execute"}, strings.Fields(c.script)...)
		if status, out, errs := act(t, address, "", words...); status != cli.ExitOK || !strings.Contains(out, "NEW-OFFSET") {
			t.Errorf("%s: %d, %s%s", c.script, status, out, errs)
		}
		requireCommitted(t, state, "cli-reset", c.want, c.script)
	}
}

func requireCommitted(t *testing.T, s *brokerState, group string, want int64, why string) {
	t.Helper()
	offsets, err := s.admin.FetchOffsets(t.Context(), group)
	if err != nil {
		t.Fatal(err)
	}
	if o, ok := offsets.Lookup("cli-events", 0); !ok || o.At != want {
		t.Errorf("%s: the group is at %d, want %d", why, o.At, want)
	}
}

// Claim (F111): while members live a reset is refused with a text that says so.
// Method: a group with a member, both command lines.
func TestField_F111_ResetIsRefusedWhileMembersLive(t *testing.T) {
	address := testbroker.Start(t)
	liveState(t, address).require(t, []string{"JoinGroup", "OffsetCommit", "OffsetFetch", "DescribeGroups"})
	status, _, errs := command(nil, "group", "reset", "cli-live", "--topic", "cli-orders", "--to", "earliest", "--execute", "-b", address)
	if status != cli.ExitFailure || !strings.Contains(errs, "NON_EMPTY_GROUP") {
		t.Errorf("%d: %s", status, errs)
	}
	_, out, _ := act(t, address, "", "kafka-consumer-groups.sh", "--bootstrap-server", "BROKER", "--reset-offsets", "--group", "cli-live", "--topic", "cli-orders", "--to-earliest", "--execute")
	if !strings.Contains(out, "Assignments can only be reset if the group 'cli-live' is inactive, but the current state is Stable.") {
		t.Errorf("got %s", out)
	}
}

// Claim (F113): groups on one topic have each their own lag, groups without members
// are shown with all that they committed, and JSON has the same numbers.
// Method: G1 at 10 and G2 at 90 of 100; G3 with commits on 2 of 4 partitions.
func TestField_F113_EveryGroupHasItsOwnNumbers(t *testing.T) {
	address := testbroker.Start(t)
	liveState(t, address).require(t, []string{"OffsetCommit", "OffsetFetch", "DescribeGroups"})
	out := must(t, "", "group", "describe", "cli-g1", "cli-g2", "cli-g3", "-b", address)
	want := "cli-g1\tcli-hundred\t0\t10\t100\t90\t-\t-\t-\ncli-g2\tcli-hundred\t0\t90\t100\t10\t-\t-\t-\n" +
		"cli-g3\tcli-four\t0\t5\t25\t20\t-\t-\t-\ncli-g3\tcli-four\t1\t25\t25\t0\t-\t-\t-\n"
	if out != want {
		t.Errorf("got\n%swant\n%s", out, want)
	}
	var list []describedGroup
	if err := json.Unmarshal([]byte(must(t, "", "group", "describe", "cli-g1", "cli-g2", "cli-g3", "-b", address, "--json")), &list); err != nil {
		t.Fatal(err)
	}
	for i, lag := range []int64{90, 10, 20} {
		if g := list[i]; g.Lag != lag || g.State != "Empty" || len(g.Topics) != 1 || g.Topics[0].Lag != lag {
			t.Errorf("got %+v, want lag %d", g, lag)
		}
	}
	if g3 := list[2]; len(g3.Partitions) != 2 || *g3.Partitions[0].Lag != 20 || *g3.Partitions[1].Lag != 0 {
		t.Errorf("got %+v", g3)
	}
	if out := must(t, "", "group", "list", "-b", address); !strings.Contains(out, "cli-g3\tEmpty\t") {
		t.Errorf("got %s", out)
	}
}

// Claim: rows are one for each partition assigned or committed, the busiest member's
// first; a lag is never below 0, and is not known without a commit.
// Method: a made-up group with a commit beyond the end, as after a topic was made anew.
func TestRowsOfAGroup(t *testing.T) {
	g := groupView{name: "g", state: "Stable", members: []groupMember{
		{id: "small", assigned: []topicPartition{{"t", 0}}},
		{id: "big", assigned: []topicPartition{{"t", 1}, {"t", 2}}},
	}}
	commits := map[topicPartition]kadm.Offset{
		{"t", 0}: {At: 50, LeaderEpoch: 4}, {"t", 1}: {At: 7, LeaderEpoch: -1}, {"old", 3}: {At: 9, LeaderEpoch: -1},
	}
	ends := map[topicPartition]listedAt{{"t", 0}: {offset: 20}, {"t", 1}: {offset: 10}, {"t", 2}: {offset: 30}}
	var got []string
	for _, r := range joinRows(g, commits, ends) {
		member := "-"
		if r.member != nil {
			member = r.member.id
		}
		got = append(got, fmt.Sprint(r.dashed(), " ", member, " ", optional(r.committed), " ", number32(r.epoch), " ", optional(r.end), " ", optional(r.lag()), " ", r.beyondEnd()))
	}
	want := []string{"t-1 big 7 - 10 3 false", "t-2 big - - 30 - false", "t-0 small 50 4 20 0 true", "old-3 - 9 - - - false"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// Claim: a commit beyond the end is flagged, not shown as a negative lag.
// Method: the script's table of such a row.
func TestCommitBeyondTheEndIsFlagged(t *testing.T) {
	at, end := int64(50), int64(20)
	var out, errs bytes.Buffer
	(&groupsScript{}).printOffsets(&out, &errs, groupView{name: "g", state: "Stable"}, []groupRow{{topicPartition: topicPartition{"t", 0}, committed: &at, end: &end}})
	if !strings.Contains(errs.String(), "committed offset 50 of t-0, which ends at 20") || strings.Contains(out.String(), "-30") {
		t.Errorf("%s%s", out.String(), errs.String())
	}
}

// Claim: members of the newer protocol have epochs and targets; UPGRADED shows only
// where a group has both kinds.
// Method: a made-up group in the middle of an upgrade.
func TestMembersOfTheNewerProtocol(t *testing.T) {
	yes, no, epoch, target := true, false, int32(3), int32(4)
	g := groupView{name: "g", kind: "consumer", state: "Stable", targetEpoch: &target, members: []groupMember{
		{id: "a", client: "c", host: "/h", epoch: &epoch, upgraded: &yes, assigned: []topicPartition{{"t", 0}, {"t", 1}, {"u", 0}}, target: []topicPartition{{"t", 0}}},
		{id: "b", client: "c", host: "/h", epoch: &epoch, upgraded: &no},
	}}
	var out, errs bytes.Buffer
	(&groupsScript{verbose: true}).printMembers(&out, &errs, g)
	for _, want := range []string{"UPGRADED", "t:0,1;u:0", " 3               t:0,1;u:0            4               t:0                  true\n", "-                    false\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// Claim: times, durations and CSV plans are read as Kafka's script reads them.
// Method: tables of what it takes and what it refuses.
func TestWhereResetsGo(t *testing.T) {
	for text, want := range map[string]string{
		"2024-01-02T03:04:05.678":       "2024-01-02T03:04:05.678Z",
		"2024-01-02T03:04:05":           "2024-01-02T03:04:05Z",
		"2024-01-02T03:04:05Z":          "2024-01-02T03:04:05Z",
		"2024-01-02T03:04:05.000+02:00": "2024-01-02T01:04:05Z",
		"2024-01-02T03:04:05.000-0230":  "2024-01-02T05:34:05Z",
		"2024-01-02":                    "", "yesterday": "", "2024-13-02T03:04:05": "",
	} {
		got, err := parseDateTime(text)
		if (err == nil) != (want != "") || err == nil && got.UTC().Format(time.RFC3339Nano) != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]time.Duration{
		"PT1H": time.Hour, "P1DT2H3M4.5S": 26*time.Hour + 3*time.Minute + 4500*time.Millisecond, "P2D": 48 * time.Hour,
		"PT-5M": -5 * time.Minute, "-PT5M": -5 * time.Minute, "pt10s": 10 * time.Second, "PT0.000000001S": 1,
		"": -1, "P": -1, "PT": -1, "1h": -1, "P1Y": -1, "P1DT": -1,
	} {
		if got, err := parseISODuration(text); (err != nil) != (want == -1) || err == nil && got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	file := filepath.Join(t.TempDir(), "plan.csv")
	for text, ok := range map[string]bool{"t,0,5\n": true, "g,t,0,5\n": true, "\"a b\", 1, 2": true, "t,0\n": false, "t,x,5\n": false, "t,0,x\n": false} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := fileResets(file, []string{"g"})
		if (err == nil) != ok || ok && len(got["g"]) != 1 {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	if csvField(`a,b`) != `"a,b"` || csvField("a") != "a" {
		t.Error("CSV fields are not quoted as they must be")
	}
}

// Claim: one line names the API that a broker lacks.
// Method: a broker with one of three.
func TestMissingAPIIsNamed(t *testing.T) {
	has := client.APIs{1: true}
	if err := has.Need(keyOf(1)); err != nil {
		t.Error(err)
	}
	err := has.Need(keyOf(1), keyOf(35), keyOf(47))
	if err == nil || err.Error() != "the broker does not have the APIs DescribeLogDirs and OffsetDelete, which this command needs" {
		t.Errorf("got %v", err)
	}
}

// Claim: a watch looks again and again, and an interrupt ends it with exit status 0.
// Method: a short interval; the context stands for the signal.
func TestLagIsWatched(t *testing.T) {
	address := testbroker.Start(t)
	liveState(t, address).require(t, []string{"OffsetCommit", "OffsetFetch", "DescribeGroups"})
	root := newRoot()
	ctx, stop := contextWithStop(t)
	lines := &countedLines{enough: 3, stop: stop}
	root.SetOut(lines)
	root.SetArgs([]string{"group", "lag", "cli-g1", "--watch=20ms", "--json", "-b", address})
	if status := cli.Execute(ctx, root); status != cli.ExitOK || lines.n < 3 {
		t.Errorf("%d after %d lines", status, lines.n)
	}
	if !strings.Contains(lines.last, `"lag":90`) {
		t.Errorf("last line: %s", lines.last)
	}
}

// Claim: the help of every script has its options, and asks no broker.
// Method: each act with --help, then without anything.
func TestHelpOfScripts(t *testing.T) {
	for name, make := range acts {
		var out, errs bytes.Buffer
		if status := runNamed(t.Context(), name, []string{"--help"}, nil, &out, &errs); status != cli.ExitOK || !strings.Contains(out.String(), "--bootstrap-server") && name != "kafka-dump-log.sh" { // which reads files
			t.Errorf("%s --help: %d\n%s", name, status, out.String())
		}
		if status := runNamed(t.Context(), name, nil, nil, &out, &errs); status != cli.ExitFailure {
			t.Errorf("%s alone: %d", name, status)
		}
		var cmd *cobra.Command = make()
		if cmd.Short == "" {
			t.Errorf("%s does not say what it is", name)
		}
	}
}
