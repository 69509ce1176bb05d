package main

import (
	"bytes"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"millrace/tools/internal/cli"
)

// The lines below were printed by Kafka 4.3.1's own tool.
const (
	kafkaTotal  = "2026-11-29 19:07:22:385, 2026-11-29 19:07:23:375, 19.0907, 19.2836, 200181, 202203.0303, 588, 402, 47.4894, 497962.6866"
	kafkaWindow = "2026-11-29 19:07:24:293, 0, 10.3700, 103.6987, 108737, 1087360.0000, 0, 100, 103.6987, 1087360.0000"
)

// Claim: from the same counts and times come the very lines that Kafka's tool printed.
// Method: its runs, with the counts that those lines give away.
func TestLinesAreKafkas(t *testing.T) {
	dates, err := parseDateFormat(defaultDateFormat)
	if err != nil {
		t.Fatal(err)
	}
	at := func(text string) time.Time {
		when, err := time.Parse("2006-01-02 15:04:05.000", text)
		if err != nil {
			t.Fatal(err)
		}
		return when
	}
	total := tally{records: 200181, bytes: 20_018_100, elapsed: 990 * time.Millisecond, rebalance: 588 * time.Millisecond}
	if got := totalLine(dates, at("2026-11-29 19:07:22.385"), at("2026-11-29 19:07:23.375"), total); got != kafkaTotal {
		t.Errorf("got  %s\nwant %s", got, kafkaTotal)
	}
	sofar := tally{records: 108737, bytes: 10_873_700}
	window := tally{records: 108736, bytes: 10_873_600, elapsed: 100 * time.Millisecond}
	if got := windowLine(dates, at("2026-11-29 19:07:24.293"), sofar, window); got != kafkaWindow {
		t.Errorf("got  %s\nwant %s", got, kafkaWindow)
	}
}

// Claim: a run shorter than a millisecond, or with nothing in it, prints numbers.
// Method: an empty tally.
func TestEmptyRunPrintsNumbers(t *testing.T) {
	got := totalLine(nil, time.Time{}, time.Time{}, tally{})
	if got != ", , 0.0000, 0.0000, 0, 0.0000, 0, 0, 0.0000, 0.0000" {
		t.Errorf("got %s", got)
	}
}

// Claim: java.text.SimpleDateFormat patterns are written as Java writes them.
// Method: a table; what is not known is refused.
func TestDateFormats(t *testing.T) {
	when := time.Date(2026, 3, 9, 0, 5, 7, 42e6, time.FixedZone("X", 3600))
	for pattern, want := range map[string]string{
		defaultDateFormat:            "2026-03-09 00:05:07:042",
		"yy.M.d 'at' H''m":           "26.3.9 at 0'5",
		"hh:mm a, EEE":               "12:05 AM, Mon",
		"EEEE d MMMM yyyy k K":       "Monday 9 March 2026 24 0",
		"yyyy-MM-dd'T'HH:mm:ss.SSSX": "2026-03-09T00:05:07.042+01",
		"XXX Z z":                    "+01:00 +0100 X",
	} {
		f, err := parseDateFormat(pattern)
		if err != nil || f.format(when) != want {
			t.Errorf("%s: %q, %v; want %q", pattern, f.format(when), err, want)
		}
	}
	for _, pattern := range []string{"yyyy-QQ", "it's"} {
		if _, err := parseDateFormat(pattern); err == nil {
			t.Errorf("%s was taken", pattern)
		}
	}
}

func planOf(t *testing.T, args string) (*plan, string, error) {
	t.Helper()
	o := &options{}
	fs := pflag.NewFlagSet("t", pflag.ContinueOnError)
	o.register(fs)
	if err := fs.Parse(strings.Fields(args)); err != nil {
		t.Fatal(err)
	}
	var warned bytes.Buffer
	p, err := o.plan(fs.Changed, fs.Args(), &warned)
	return p, warned.String(), err
}

// Claim: a command line written for Kafka's tool is understood as it is.
// Method: all its flags at once.
func TestKafkasCommandLineIsUnderstood(t *testing.T) {
	p, warned, err := planOf(t, "--bootstrap-server h:1 --topic t --messages 7 --group g --from-latest --fetch-size 2048 --timeout 500 "+
		"--show-detailed-stats --reporting-interval 250 --hide-header --date-format HH:mm --socket-buffer-size 9 --command-property fetch.min.bytes=5 check.crcs=true")
	if err != nil {
		t.Fatal(err)
	}
	s := p.settings
	if p.records != 7 || p.timeout != 500*time.Millisecond || p.interval != 250*time.Millisecond || !p.detailed || !p.hideHeader ||
		s.GroupID != "g" || !s.FromLatest || s.PartitionMaxBytes != 2048 || s.FetchMinBytes != 5 || s.Bootstrap[0] != "h:1" {
		t.Errorf("got %+v, %+v", p, s)
	}
	if !strings.Contains(warned, "deprecated") {
		t.Errorf("no word about --messages: %q", warned)
	}
}

// Claim: a wrong command line is a usage error.
// Method: one of each kind.
func TestWrongCommandLines(t *testing.T) {
	for _, args := range []string{
		"--num-records 1", "--topic t", "--topic t --num-records 0", "--topic t --include x --num-records 1",
		"--topic t --num-records 1 --messages 1", "--include ( --num-records 1", "--topic t --num-records 1 --date-format QQ",
		"--topic t --num-records 1 --timeout 0", "--topic t --num-records 1 --fetch-size 0", "--topic t --num-records 1 --command-property auto.offset.reset=middle",
	} {
		if _, _, err := planOf(t, args); cli.Status(err) != cli.ExitUsage {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// Claim: --include means the whole name, as in Java.
// Method: a name that only begins so.
func TestIncludeMeansTheWholeName(t *testing.T) {
	p, _, err := planOf(t, "--include a|b.* --num-records 1")
	if err != nil || !p.include.MatchString("a") || !p.include.MatchString("bc") || p.include.MatchString("ax") {
		t.Errorf("%v, %v", p.include, err)
	}
}

// Claim: the metrics print without having seen anything.
// Method: print them.
func TestMetricsOfNothing(t *testing.T) {
	new(metrics).print(io.Discard)
	for name, v := range new(metrics).values() {
		if v != 0 || !regexp.MustCompile(`^[a-z-]+$`).MatchString(name) {
			t.Errorf("%s = %v", name, v)
		}
	}
}
