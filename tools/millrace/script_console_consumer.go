package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/magiconair/properties"
	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"millrace/tools/internal/client"
	"millrace/tools/internal/script"
)

// consoleConsumer is kafka-console-consumer.sh. Without --group it reads directly and
// leaves no group behind, where Kafka's script makes one up.
type consoleConsumer struct {
	connection script.Connection

	topic, include  string
	partition       script.Whole
	offset          string
	fromBeginning   bool
	maxMessages     script.Whole
	timeout         script.Whole
	group           string
	isolation       string
	formatter       string
	formatterConfig string
	format          client.Pairs
	readKey         string
	readValue       string
	skipOnError     bool
	events          bool
}

func newConsoleConsumer() *cobra.Command {
	s := &consoleConsumer{}
	cmd := &cobra.Command{
		Use:   "kafka-console-consumer.sh",
		Short: "This tool helps to read data from Kafka topics and outputs it to standard output.",
		RunE:  func(cmd *cobra.Command, _ []string) error { return s.run(cmd) },
	}
	fs := cmd.Flags()
	s.connection.Register(fs)
	fs.Var(&s.connection.Properties, "command-property", "a property of the client, name=value (repeatable)")
	fs.Var(&s.connection.Properties, "consumer-property", "Kafka's older name of --command-property")
	fs.StringVar(&s.connection.Config, "consumer.config", "", "Kafka's older name of --command-config")
	fs.StringVar(&s.topic, "topic", "", "the topic")
	fs.StringVar(&s.include, "include", "", "the topics whose whole name matches this regular expression")
	s.partition.Register(fs, 32, "partition", "only this partition, from its end unless --offset says otherwise")
	fs.StringVar(&s.offset, "offset", "", "with --partition: begin at this offset, at earliest, or at latest (the default)")
	fs.BoolVar(&s.fromBeginning, "from-beginning", false, "begin at the first record where the group has no offset")
	s.maxMessages.Register(fs, 32, "max-messages", "stop after so many records")
	s.timeout.Register(fs, 64, "timeout-ms", "stop when no record came for so long")
	fs.StringVar(&s.group, "group", "", "read as a member of this group, and commit (default: no group)")
	fs.StringVar(&s.isolation, "isolation-level", "read_uncommitted", "read_committed leaves out what a transaction took back")
	fs.StringVar(&s.formatter, "formatter", "", "DefaultMessageFormatter or NoOpMessageFormatter")
	fs.Var(&s.format, "formatter-property", "how records are written: print.key, print.value, print.timestamp, print.partition, print.offset, print.epoch, print.headers, key.separator, line.separator, headers.separator, null.literal, key.deserializer, value.deserializer (repeatable)")
	fs.Var(&s.format, "property", "Kafka's older name of --formatter-property")
	fs.StringVar(&s.formatterConfig, "formatter-config", "", "a file of formatter properties; --formatter-property wins over it")
	fs.StringVar(&s.readKey, "key-deserializer", "", "how keys are read; see --formatter-property key.deserializer")
	fs.StringVar(&s.readValue, "value-deserializer", "", "how values are read")
	fs.BoolVar(&s.skipOnError, "skip-message-on-error", false, "go on after a record that cannot be written")
	fs.BoolVar(&s.events, "enable-systest-events", false, "accepted for Kafka's sake")
	return cmd
}

// begin resolves --offset, --from-beginning and auto.offset.reset.
func (s *consoleConsumer) begin(settings *client.Settings) (kgo.Offset, error) {
	switch {
	case s.offset == "earliest":
		return kgo.NewOffset().AtStart(), nil
	case s.offset == "latest":
		return kgo.NewOffset().AtEnd(), nil
	case s.offset != "":
		n, err := strconv.ParseInt(s.offset, 10, 64)
		if err != nil || n < 0 {
			return kgo.Offset{}, script.Usagef("The provided offset value '%s' is incorrect. Valid values are 'earliest', 'latest', or a non-negative long.", s.offset)
		}
		return kgo.NewOffset().At(n), nil
	case s.fromBeginning || s.resetsToStart(settings):
		return kgo.NewOffset().AtStart(), nil
	}
	return kgo.NewOffset().AtEnd(), nil
}

// resetsToStart says whether auto.offset.reset=earliest was given; latest is the
// default of this script, earliest that of Settings.
func (s *consoleConsumer) resetsToStart(settings *client.Settings) bool {
	for _, pair := range s.connection.Properties {
		if strings.HasPrefix(pair, "auto.offset.reset=") {
			return !settings.FromLatest
		}
	}
	return false
}

func (s *consoleConsumer) check(cmd *cobra.Command) error {
	fs := cmd.Flags()
	if err := script.Require(fs, "bootstrap-server"); err != nil {
		return err
	}
	switch {
	case s.topic == "" && s.include == "" || s.topic != "" && s.include != "":
		return script.Usagef("Exactly one of the following arguments is required: [topic], [include]")
	case s.partition.Given && s.topic == "":
		return script.Usagef("The topic is required when partition is specified.")
	case s.offset != "" && !s.partition.Given:
		return script.Usagef("The partition is required when offset is specified.")
	case s.offset != "" && s.fromBeginning:
		return script.Usagef("Options from-beginning and offset cannot be specified together.")
	case s.partition.Given && s.group != "":
		return script.Usagef("Options group and partition cannot be specified together.")
	case s.isolation != "read_committed" && s.isolation != "read_uncommitted":
		return script.Usagef("Isolation level must be read_committed or read_uncommitted, not %s", s.isolation)
	}
	return nil
}

// write resolves the options that say how records are written.
func (s *consoleConsumer) write() (func([]byte, *kgo.Record) ([]byte, error), error) {
	given := map[string]string{}
	if s.formatterConfig != "" {
		l := properties.Loader{Encoding: properties.UTF8, DisableExpansion: true}
		file, err := l.LoadFile(s.formatterConfig)
		if err != nil {
			return nil, err
		}
		given = file.Map()
	}
	pairs, err := script.Pairs(s.format)
	if err != nil {
		return nil, err
	}
	maps.Copy(given, pairs)
	for name, class := range map[string]string{"key.deserializer": s.readKey, "value.deserializer": s.readValue} {
		if class != "" {
			given[name] = class
		}
	}
	switch s.formatter[strings.LastIndexByte(s.formatter, '.')+1:] {
	case "", "DefaultMessageFormatter":
		f, err := newMessageFormatter(given)
		if err != nil {
			return nil, err
		}
		return f.appendRecord, nil
	case "NoOpMessageFormatter":
		return func(dst []byte, _ *kgo.Record) ([]byte, error) { return dst, nil }, nil
	}
	return nil, fmt.Errorf("--formatter %s: classes cannot be loaded here; DefaultMessageFormatter and NoOpMessageFormatter are built in", s.formatter)
}

func (s *consoleConsumer) run(cmd *cobra.Command) error {
	if err := s.check(cmd); err != nil {
		return err
	}
	write, err := s.write()
	if err != nil {
		return err
	}
	settings, err := s.connection.Settings(client.ForConsumer, nil, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	if s.group != "" && settings.GroupID != "" && s.group != settings.GroupID {
		return script.Usagef("The group ids provided in different places (directly using '--group', via '--consumer-property', or via '--consumer.config') do not match. Detected group ids: '%s', '%s'", s.group, settings.GroupID)
	}
	if s.group != "" {
		settings.GroupID = s.group
	}
	settings.ReadCommitted = settings.ReadCommitted || s.isolation == "read_committed"
	if settings.ClientID == client.NewSettings().ClientID {
		settings.ClientID = "console-consumer"
	}
	begin, err := s.begin(settings)
	if err != nil {
		return err
	}
	options := append(settings.Consumer(), kgo.ConsumeStartOffset(begin), kgo.ConsumeResetOffset(begin))
	switch {
	case s.partition.Given:
		options = append(options, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{s.topic: {int32(s.partition.Value): begin}}), kgo.ConsumeResetOffset(kgo.NewOffset().AtEnd()))
	case s.include != "":
		if _, err := regexp.Compile(s.include); err != nil {
			return err
		}
		options = append(options, kgo.ConsumeRegex(), kgo.ConsumeTopics("^(?:"+s.include+")$"))
	default:
		options = append(options, kgo.ConsumeTopics(s.topic), kgo.AllowAutoTopicCreation())
	}
	if settings.GroupID != "" {
		if err := needGroupMembership(cmd.Context(), settings); err != nil {
			return err
		}
		options = append(options, kgo.AutoCommitMarks(), shareBalancers()) // only what was written is committed
	}
	cl, err := settings.Connect(cmd.Context(), options)
	if err != nil {
		return err
	}
	defer cl.Close()
	return s.read(cmd, cl, settings.GroupID != "", write)
}

// read writes records until something ends it: the count, the silence, a signal.
func (s *consoleConsumer) read(cmd *cobra.Command, cl *kgo.Client, grouped bool, write func([]byte, *kgo.Record) ([]byte, error)) error {
	ctx, out := cmd.Context(), bufio.NewWriterSize(cmd.OutOrStdout(), outBuffer)
	count, last := int64(0), time.Now()
	warned := map[string]bool{}
	enough := func() bool { return s.maxMessages.Given && s.maxMessages.Value >= 0 && count >= s.maxMessages.Value }
	err := func() error {
		var line []byte
		for !enough() {
			polling, cancel := context.WithTimeout(ctx, lookAround)
			fetches := cl.PollFetches(polling)
			cancel()
			if ctx.Err() != nil {
				return nil
			}
			if err := warnOnce(cmd.ErrOrStderr(), fetches, warned); err != nil {
				return err
			}
			for records := fetches.RecordIter(); !records.Done() && !enough(); {
				r := records.Next()
				count++
				var err error
				if line, err = write(line[:0], r); err != nil && !s.skipOnError {
					return err
				}
				if _, err := out.Write(line); err != nil {
					return lostOutput(cmd.ErrOrStderr())
				}
				if grouped {
					cl.MarkCommitRecords(r)
				}
				last = time.Now()
			}
			if out.Flush() != nil {
				return lostOutput(cmd.ErrOrStderr())
			}
			if s.timeout.Given && s.timeout.Value >= 0 && time.Since(last) > time.Duration(s.timeout.Value)*time.Millisecond {
				fmt.Fprintf(cmd.ErrOrStderr(), "no record came for %d ms\n", s.timeout.Value)
				return nil
			}
		}
		return nil
	}()
	if grouped {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), graceLimit)
		defer cancel()
		err = errors.Join(err, cl.CommitMarkedOffsets(limited))
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "Processed a total of %d messages\n", count)
	return err
}

func lostOutput(errs io.Writer) error {
	fmt.Fprintln(errs, "Unable to write to standard out, closing consumer.")
	return nil // Kafka's script ends with exit status 0 then, as in head's pipe
}

// warnOnce tells what fetches report, each thing once; what will not pass ends it.
func warnOnce(errs io.Writer, fetches kgo.Fetches, warned map[string]bool) error {
	for _, e := range fetches.Errors() {
		switch {
		case errors.Is(e.Err, context.DeadlineExceeded):
			continue
		case kerr.IsRetriable(e.Err), errors.Is(e.Err, kerr.OffsetOutOfRange):
			// said below, and tried again
		default:
			return e.Err
		}
		if say := fmt.Sprintf("WARN %s-%d: %v", e.Topic, e.Partition, e.Err); !warned[say] {
			warned[say] = true
			fmt.Fprintln(errs, say)
		}
	}
	return nil
}
