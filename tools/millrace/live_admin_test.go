package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"millrace/tools/internal/cli"
	"millrace/tools/internal/testbroker"
)

// decode reads what a command wrote with --json.
func decode[T any](t *testing.T, out string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return v
}

// Claim: places and times in a log are found, as lines and as JSON, and "-" stands for
// none.
// Method: a topic whose records are a second apart.
func TestOffsetsOfATopic(t *testing.T) {
	address := testbroker.Start(t)
	liveState(t, address)
	for at, want := range map[string]string{
		"latest": "cli-orders\t0\t10\ncli-orders\t1\t20\ncli-orders\t2\t30\n", "earliest": "cli-orders\t0\t0\ncli-orders\t1\t0\ncli-orders\t2\t0\n",
		"@2024-01-02T03:04:20Z": "cli-orders\t0\t-\ncli-orders\t1\t15\ncli-orders\t2\t15\n", "max-timestamp": "cli-orders\t0\t9\ncli-orders\t1\t19\ncli-orders\t2\t29\n",
	} {
		if got := must(t, "", "topic", "offsets", "cli-orders", "--at", at, "-b", address); got != want {
			t.Errorf("%s: got %q", at, got)
		}
	}
	list := decode[[]partitionOffset](t, must(t, "", "topic", "offsets", "cli-events", "--json", "-b", address))
	if len(list) != 1 || *list[0].Offset != 100 {
		t.Errorf("got %+v", list)
	}
	if status, _, _ := command(nil, "topic", "offsets", "nope", "-b", address); status != cli.ExitNotFound {
		t.Errorf("a topic that is not there: %d", status)
	}
}

// Claim: a topic grows, and its old records go, where the broker can do so.
// Method: both commands, and what they refuse.
func TestTopicGrowsAndIsTrimmed(t *testing.T) {
	address := testbroker.Start(t)
	state := liveState(t, address)
	t.Run("alter", func(t *testing.T) {
		state.require(t, []string{"CreatePartitions"})
		must(t, "", "topic", "alter", "cli-empty", "--partitions", "5", "-b", address)
		if got := must(t, "", "topic", "offsets", "cli-empty", "-b", address); strings.Count(got, "\n") != 5 {
			t.Errorf("got %s", got)
		}
		if status, _, errs := command(nil, "topic", "alter", "cli-empty", "--partitions", "2", "-b", address); status != cli.ExitFailure || errs == "" {
			t.Errorf("fewer partitions: %d, %s", status, errs)
		}
		if status, _, _ := command(nil, "topic", "alter", "nope", "--partitions", "2", "-b", address); status != cli.ExitNotFound {
			t.Errorf("no topic: %d", status)
		}
	})
	t.Run("trim", func(t *testing.T) {
		state.require(t, []string{"DeleteRecords"})
		if got := must(t, "", "topic", "trim", "cli-four", "--before", "5", "-p", "1", "-b", address); got != "cli-four\t1\t5\n" {
			t.Errorf("got %q", got)
		}
		if got := must(t, "", "topic", "trim", "cli-four", "--all", "-p", "2", "-b", address); got != "cli-four\t2\t25\n" {
			t.Errorf("got %q", got)
		}
		if status, _, errs := command(nil, "topic", "trim", "cli-four", "--before", "500", "-p", "0", "-b", address); status != cli.ExitFailure || !strings.Contains(errs, "OFFSET_OUT_OF_RANGE") {
			t.Errorf("beyond the end: %d, %s", status, errs)
		}
	})
}

// Claim: settings are shown, made and taken back, for topics and brokers.
// Method: the life of one setting.
func TestLifeOfASetting(t *testing.T) {
	address := testbroker.Start(t)
	liveState(t, address).require(t, []string{"IncrementalAlterConfigs"})
	const line = "retention.ms\t5000\tdynamic_topic_config\n"
	must(t, "", "config", "set", "topic", "cli-empty", "retention.ms=5000", "cleanup.policy=compact,delete", "-b", address)
	if got := must(t, "", "config", "describe", "topic", "cli-empty", "-b", address); got != "cleanup.policy\tcompact,delete\tdynamic_topic_config\n"+line {
		t.Errorf("got %q", got)
	}
	if all := must(t, "", "config", "describe", "topic", "cli-empty", "--all", "-b", address); !strings.Contains(all, line) || !strings.Contains(all, "segment.bytes\t") {
		t.Errorf("got %q", all)
	}
	must(t, "", "config", "unset", "topic", "cli-empty", "retention.ms", "cleanup.policy", "-b", address)
	if list := decode[[]entitySetting](t, must(t, "", "config", "describe", "topic", "cli-empty", "--json", "-b", address)); len(list) != 0 {
		t.Errorf("got %+v", list)
	}
	for args, want := range map[string]int{
		"describe topic nope": cli.ExitNotFound, "set topic cli-empty nope=1": cli.ExitFailure, "set topic cli-empty retention.ms=x": cli.ExitFailure,
		"describe broker 99": cli.ExitNotFound, "describe broker 1 --all": cli.ExitOK,
	} {
		if status, _, errs := command(nil, append(append([]string{"config"}, strings.Fields(args)...), "-b", address)...); status != want {
			t.Errorf("%s: %d, want %d: %s", args, status, want, errs)
		}
	}
}

// Claim: quotas are set, listed and taken away.
// Method: the life of two.
func TestLifeOfAQuota(t *testing.T) {
	address := testbroker.Start(t)
	liveState(t, address).require(t, []string{"AlterClientQuotas", "DescribeClientQuotas"})
	must(t, "", "quota", "set", "--client", "cli-q", "producer_byte_rate=1000", "request_percentage=12.5", "-b", address)
	defer command(nil, "quota", "unset", "--client", "cli-q", "request_percentage", "-b", address)
	want := "client-id 'cli-q'\tproducer_byte_rate\t1000\nclient-id 'cli-q'\trequest_percentage\t12.5\n"
	if got := must(t, "", "quota", "list", "--client", "cli-q", "-b", address); !sameSet(got, want) {
		t.Errorf("got %q", got)
	}
	if got := must(t, "", "quota", "list", "-b", address); !strings.Contains(got, "client-id 'cli-q'\tproducer_byte_rate\t1000\n") {
		t.Errorf("got %q", got)
	}
	must(t, "", "quota", "unset", "--client", "cli-q", "producer_byte_rate", "-b", address)
	if list := decode[[]quotaRow](t, must(t, "", "quota", "list", "--client", "cli-q", "--json", "-b", address)); len(list) != 1 || len(list[0].Quotas) != 1 {
		t.Errorf("got %+v", list)
	}
	if status, _, _ := command(nil, "quota", "unset", "--client", "cli-q", "producer_byte_rate", "-b", address); status != cli.ExitFailure {
		t.Errorf("a quota that is not there: %d", status)
	}
}

func sameSet(a, b string) bool {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	if len(x) != len(y) {
		return false
	}
	for _, line := range x {
		if !strings.Contains(b, line) {
			return false
		}
	}
	return true
}

// Claim: the cluster, what it speaks and what it stores are told; the script's list of
// APIs has Kafka's names.
// Method: every command, as text and JSON where a script would look.
func TestClusterIsTold(t *testing.T) {
	address := testbroker.Start(t)
	state := liveState(t, address)
	view := decode[clusterView](t, must(t, "", "cluster", "describe", "--json", "-b", address))
	if view.ID == "" || len(view.Brokers) != 1 || view.Brokers[0].Address != address {
		t.Errorf("got %+v", view)
	}
	if got := must(t, "", "cluster", "apis", "-b", address); !strings.Contains(got, "\t0\tProduce\t") || !strings.Contains(got, "\t22\tInitProducerId\t") {
		t.Errorf("got %s", got)
	}
	_, out, _ := act(t, address, "", "kafka-broker-api-versions.sh", "--bootstrap-server", "BROKER")
	if !strings.HasPrefix(out, address+" (id: 1 rack: null isFenced: false) -> (\n\tProduce(0): 0 to 13 [usable: 13],\n\tFetch(1): ") || !strings.HasSuffix(out, "\n)\n") {
		t.Errorf("got %s", out)
	}
	t.Run("logdirs", func(t *testing.T) {
		state.require(t, []string{"DescribeLogDirs"})
		requireLogDirs(t, address)
	})
}

func requireLogDirs(t *testing.T, address string) {
	dirs := decode[[]logDirView](t, must(t, "", "logdirs", "--topic", "cli-events", "--json", "-b", address))
	if len(dirs) != 1 || len(dirs[0].Partitions) != 1 || dirs[0].Size == 0 {
		t.Errorf("got %+v", dirs)
	}
	if got := must(t, "", "logdirs", "--partitions", "-t", "cli-orders", "-b", address); strings.Count(got, "\tcli-orders\t") != 3 {
		t.Errorf("got %s", got)
	}
}

// Claim: a partition is moved to the directory named and 'logdirs' finds it there; what the broker refuses is told with the reason.
// Method: a broker in this process with two directories.
func TestLogDirsMove(t *testing.T) {
	if os.Getenv(testbroker.Variable) != "" {
		t.Skip("another broker's directories are its own")
	}
	dirs := []string{t.TempDir(), t.TempDir()}
	address := testbroker.StartIn(t, dirs...)
	must(t, "", "topic", "create", "moved", "--partitions", "3", "-b", address)
	for _, dir := range dirs {
		if got := must(t, "", "logdirs", "move", "moved", dir, "-b", address); got != fmt.Sprintf("moving: moved-0 to %[1]s\nmoving: moved-1 to %[1]s\nmoving: moved-2 to %[1]s\n", dir) {
			t.Fatalf("got %s", got)
		}
		want := ""
		for p := range 3 {
			want += fmt.Sprintf("1\t%s\tmoved\t%d\t0\t0\tno\n", dir, p)
		}
		for got := ""; got != want; time.Sleep(time.Millisecond) {
			if got = must(t, "", "logdirs", "--partitions", "-b", address); t.Context().Err() != nil {
				t.Fatalf("got %s", got)
			}
		}
	}
	rows := decode[[]movedPartition](t, must(t, "", "logdirs", "move", "moved", dirs[0], "-p", "1", "--broker", "1", "--json", "-b", address))
	if len(rows) != 1 || rows[0] != (movedPartition{"moved", 1, 1, dirs[0], ""}) {
		t.Errorf("got %+v", rows)
	}
	for want, args := range map[string]string{
		"is not one of the broker's log.dirs": "moved /nowhere",
		"there is no broker 7":                "moved /nowhere --broker 7",
		"does not have this partition":        "moved " + dirs[0] + " -p 9",
		"absent":                              "absent " + dirs[0],
	} {
		status, _, errs := command(nil, append([]string{"logdirs", "move", "-b", address}, strings.Fields(args)...)...)
		if status == cli.ExitOK || !strings.Contains(errs, want) {
			t.Errorf("%s: %d, %s", args, status, errs)
		}
	}
}

// Claim: filters write the records that match and no others, and the limit counts those.
// Method: values and keys of a topic that is read to its end.
func TestFilters(t *testing.T) {
	address := testbroker.Start(t)
	liveState(t, address)
	for args, want := range map[string]string{
		"--match ^v0-9":         "v0-9\nv0-90\nv0-91\nv0-92\nv0-93\nv0-94\nv0-95\nv0-96\nv0-97\nv0-98\nv0-99\n",
		"--match-key ^k7$":      "v0-7\n",
		"--match 9$ -n 2":       "v0-9\nv0-19\n",
		"--match x --match-key": "",
	} {
		words := append([]string{"consume", "cli-hundred", "--from-beginning", "--to-end", "-b", address}, strings.Fields(args)...)
		if strings.HasSuffix(args, "--match-key") {
			words = append(words, "k")
		}
		if got := must(t, "", words...); got != want {
			t.Errorf("%s: got %q", args, got)
		}
	}
}

// Claim: a group reads to what was the end at the start and exits; the next run has what
// is new, and no more.
// Method: three runs with records between them, one with a limit.
func TestGroupReadsToTheEnd(t *testing.T) {
	address := testbroker.Start(t)
	state := liveState(t, address)
	state.require(t, []string{"JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit", "OffsetFetch"})
	run := func(more ...string) string {
		return must(t, "", append([]string{"consume", "cli-input", "--group", "cli-nightly", "--from-beginning", "--to-end", "-b", address}, more...)...)
	}
	must(t, "a\nb\nc\n", "produce", "cli-input", "-b", address)
	if got := run("-n", "2"); got != "a\nb\n" {
		t.Errorf("with a limit: %q", got)
	}
	if got := run(); got != "c\n" {
		t.Errorf("the rest: %q", got)
	}
	if got := run(); got != "" {
		t.Errorf("nothing new: %q", got)
	}
	must(t, "d\ne\n", "produce", "cli-input", "-b", address)
	if got := run("--match", "e"); got != "e\n" {
		t.Errorf("what is new, filtered: %q", got)
	}
	groups := decode[[]describedGroup](t, must(t, "", "group", "describe", "cli-nightly", "--json", "-b", address))
	if len(groups) != 1 || groups[0].Lag != 0 || *groups[0].Partitions[0].Committed != 5 || groups[0].State != "Empty" {
		t.Errorf("got %+v", groups)
	}
}
