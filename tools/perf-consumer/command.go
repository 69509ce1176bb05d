package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"millrace/tools/internal/cli"
	"millrace/tools/internal/client"
)

// options is the command line as it was given.
type options struct {
	connection client.Flags

	topics     []string
	include    string
	records    int64
	messages   int64
	group      string
	fromLatest bool
	fetchSize  cli.Size
	socketSize cli.Size
	timeout    cli.Millis
	interval   cli.Millis
	detailed   bool
	hideHeader bool
	dateFormat string
	metrics    bool
	jsonFile   string
}

const about = `Measure consuming from a Kafka broker.

It takes the flags of Kafka's kafka-consumer-perf-test.sh and prints the same
lines: a head, then comma-separated figures. One thing differs: without --group
no consumer group is used, every partition is read directly, and nothing is
committed. MB are of 1,048,576 bytes; the bytes are those of keys and values.

If records stop coming before --num-records are read, the figures so far are
printed and the exit status is 4.`

const examples = `  # read a million records from the start of a topic
  perf-consumer --topic t --num-records 1000000

  # a line every second, and the figures as JSON
  perf-consumer --topic t --num-records 50000000 --show-detailed-stats --reporting-interval 1000 --json result.json

  # with a consumer group, from any Kafka broker
  perf-consumer --bootstrap-server kafka:9092 --topic t --num-records 1000000 --group g`

func newCommand() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:     filepath.Base(os.Args[0]) + " --topic TOPIC --num-records N",
		Short:   "Measure consuming from a Kafka broker",
		Long:    about + "\n\n" + cli.ExitHelp,
		Example: examples,
		Version: client.Version(),
		Args:    func(_ *cobra.Command, args []string) error { return o.connection.OnlyProperties(args) },
		RunE: func(cmd *cobra.Command, args []string) error {
			plan, err := o.plan(cmd.Flags().Changed, args, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return plan.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.register(cmd.Flags())
	return cmd
}

func (o *options) register(fs *pflag.FlagSet) {
	fs.SortFlags = false
	o.connection.Register(fs, "consumer.config", "")
	fs.StringSliceVar(&o.topics, "topic", nil, "topic to consume; several with commas, or repeated")
	fs.StringVar(&o.include, "include", "", "consume the topics whose whole name matches this regular expression")
	fs.Int64Var(&o.records, "num-records", 0, "how many records to consume")
	fs.Int64Var(&o.messages, "messages", 0, "Kafka's older name of --num-records")
	fs.StringVar(&o.group, "group", "", "consume as a member of this group (default: no group)")
	fs.BoolVar(&o.fromLatest, "from-latest", false, "begin at the end of the log where there is no committed offset")
	o.fetchSize = 1 << 20
	fs.Var(&o.fetchSize, "fetch-size", "most bytes of a partition in one fetch")
	fs.Var(&o.socketSize, "socket-buffer-size", "accepted for Kafka's sake; the system sizes socket buffers by itself")
	o.timeout = cli.Millis(10 * time.Second)
	fs.Var(&o.timeout, "timeout", "stop when no record came for so long")
	fs.BoolVar(&o.detailed, "show-detailed-stats", false, "print a line every reporting interval")
	o.interval = cli.Millis(5 * time.Second)
	fs.Var(&o.interval, "reporting-interval", "how often, with --show-detailed-stats")
	fs.BoolVar(&o.hideHeader, "hide-header", false, "do not print the head line")
	fs.StringVar(&o.dateFormat, "date-format", defaultDateFormat, "how times are written, as java.text.SimpleDateFormat reads it")
	fs.BoolVar(&o.metrics, "print-metrics", false, "print the client's counters at the end")
	fs.StringVar(&o.jsonFile, "json", "", "write the results to this file as JSON; - is standard output")
}

// plan checks the command line as a whole and resolves it into what run needs.
func (o *options) plan(given func(string) bool, extra []string, warn io.Writer) (*plan, error) {
	records := o.records
	if given("messages") {
		fmt.Fprintln(warn, "warning: --messages is deprecated; use --num-records")
		records = o.messages
	}
	dates, dateErr := parseDateFormat(o.dateFormat)
	pattern, patternErr := regexp.Compile("^(?:" + o.include + ")$")
	switch {
	case len(o.topics) == 0 && o.include == "", len(o.topics) > 0 && o.include != "":
		return nil, cli.Usagef("give exactly one of --topic and --include")
	case given("messages") && given("num-records"):
		return nil, cli.Usagef("--messages and --num-records are the same; give one")
	case records < 1:
		return nil, cli.Usagef("--num-records must be given, 1 or more")
	case o.interval <= 0 || o.timeout <= 0:
		return nil, cli.Usagef("--reporting-interval and --timeout must be more than 0")
	case dateErr != nil:
		return nil, cli.Usagef("--date-format: %w", dateErr)
	case patternErr != nil:
		return nil, cli.Usagef("--include: %w", patternErr)
	}
	s, err := o.connection.Settings(client.ForConsumer, extra, warn)
	if err != nil {
		return nil, err
	}
	for _, f := range []struct{ flag, property, value string }{
		{"fetch-size", "max.partition.fetch.bytes", strconv.FormatInt(int64(o.fetchSize), 10)},
		{"group", "group.id", o.group},
	} {
		if !given(f.flag) {
			continue
		}
		if _, err := s.Set(client.ForConsumer, f.property, f.value); err != nil {
			return nil, cli.Usagef("--%s: %w", f.flag, err)
		}
	}
	s.FromLatest = s.FromLatest || o.fromLatest
	if s.ClientID == client.NewSettings().ClientID {
		s.ClientID = "perf-consumer-client" // Kafka's tool's own
	}
	return &plan{
		settings: s, topics: o.topics, include: pattern, records: records,
		timeout: o.timeout.Duration(), interval: o.interval.Duration(),
		detailed: o.detailed, hideHeader: o.hideHeader, dates: dates,
		metrics: o.metrics, jsonFile: o.jsonFile,
	}, nil
}
