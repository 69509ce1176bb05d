package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/magiconair/properties"
	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"millrace/tools/internal/client"
	"millrace/tools/internal/output"
	"millrace/tools/internal/script"
)

// consoleProducer is kafka-console-producer.sh.
type consoleProducer struct {
	connection script.Connection

	topic        string
	readerConfig string
	reader       client.Pairs
	compression  script.Maybe
	sync         bool
}

// consoleProducerNumbers are the options that each set one property of the client.
var consoleProducerNumbers = []struct{ option, property, usage string }{
	{"batch-size", "batch.size", "bytes of a batch that is sent without lingering (default 16384)"},
	{"max-partition-memory-bytes", "batch.size", "Kafka's older name of --batch-size"},
	{"max-memory-bytes", "buffer.memory", "bytes that may wait to be sent (default 33554432)"},
	{"message-send-max-retries", "retries", "how often a record is sent again (default 3)"},
	{"metadata-expiry-ms", "metadata.max.age.ms", "how old the picture of the cluster may get (default 300000)"},
	{"request-required-acks", "acks", "all, 1 or 0: which copies must be safe (default -1, all)"},
	{"request-timeout-ms", "request.timeout.ms", "how long an answer is waited for (default 1500)"},
	{"timeout", "linger.ms", "how long a batch waits for more records (default 1000)"},
	{"max-block-ms", "", "accepted for Kafka's sake"},
	{"retry-backoff-ms", "", "accepted for Kafka's sake"},
	{"socket-buffer-size", "", "accepted for Kafka's sake"},
}

func newConsoleProducer() *cobra.Command {
	s := &consoleProducer{}
	cmd := &cobra.Command{
		Use:   "kafka-console-producer.sh",
		Short: "This tool helps to read data from standard input and publish it to Kafka.",
		RunE:  func(cmd *cobra.Command, _ []string) error { return s.run(cmd) },
	}
	fs := cmd.Flags()
	s.connection.Register(fs)
	fs.StringVar(&s.connection.Bootstrap, "broker-list", "", "Kafka 2.x's name of --bootstrap-server")
	fs.Var(&s.connection.Properties, "command-property", "a property of the client, name=value (repeatable)")
	fs.Var(&s.connection.Properties, "producer-property", "Kafka's older name of --command-property")
	fs.StringVar(&s.connection.Config, "producer.config", "", "Kafka's older name of --command-config")
	fs.StringVar(&s.topic, "topic", "", "REQUIRED: the topic")
	fs.Var(&s.reader, "reader-property", "how lines are read: parse.key, key.separator, parse.headers, headers.delimiter, headers.separator, headers.key.separator, null.marker, ignore.error (repeatable)")
	fs.Var(&s.reader, "property", "Kafka's older name of --reader-property")
	fs.StringVar(&s.readerConfig, "reader-config", "", "a file of reader properties; --reader-property wins over it")
	fs.String("line-reader", "", "only Kafka's own, org.apache.kafka.tools.LineMessageReader")
	s.compression.Register(fs, "compression-codec", "none, gzip, snappy, lz4 or zstd; gzip if none is named")
	fs.BoolVar(&s.sync, "sync", false, "send records one at a time, each after the answer to the one before")
	for _, n := range consoleProducerNumbers {
		fs.String(n.option, "", n.usage)
	}
	return cmd
}

func (s *consoleProducer) run(cmd *cobra.Command) error {
	if err := script.Exclude(cmd.Flags(), "bootstrap-server", "broker-list"); err != nil {
		return err
	}
	if s.connection.Bootstrap == "" {
		return script.Require(cmd.Flags(), "bootstrap-server")
	}
	if err := script.Require(cmd.Flags(), "topic"); err != nil {
		return err
	}
	if name, _ := cmd.Flags().GetString("line-reader"); name != "" && !strings.HasSuffix(name, "LineMessageReader") {
		return fmt.Errorf("--line-reader %s: classes cannot be loaded here; only LineMessageReader is built in", name)
	}
	reader, err := s.lineReader()
	if err != nil {
		return err
	}
	settings, err := s.settings(cmd)
	if err != nil {
		return err
	}
	probe, err := settings.Connect(cmd.Context(), settings.Common())
	if err != nil {
		return err
	}
	probe.Close()
	options, err := settings.Producer()
	if err != nil {
		return err
	}
	cl, err := kgo.NewClient(append(options, kgo.AllowAutoTopicCreation())...)
	if err != nil {
		return err
	}
	defer cl.Close()
	return s.send(cmd, cl, reader)
}

func (s *consoleProducer) settings(cmd *cobra.Command) (*client.Settings, error) {
	var given client.Pairs
	codec := s.compression.Value
	if s.compression.Given && codec == "" {
		codec = "gzip"
	}
	if codec != "" {
		given = append(given, "compression.type="+codec)
	}
	given = append(given, "linger.ms=1000")
	for _, n := range consoleProducerNumbers {
		value, _ := cmd.Flags().GetString(n.option)
		if value == "" {
			continue
		}
		if _, err := strconv.ParseInt(value, 10, 64); err != nil && n.property != "acks" {
			return nil, script.Usagef("Cannot parse argument '%s' of option %s", value, n.option)
		}
		if n.property != "" {
			given = append(given, n.property+"="+value)
		}
	}
	s.connection.Properties = append(given, s.connection.Properties...)
	settings, err := s.connection.Settings(client.ForProducer, nil, cmd.ErrOrStderr())
	if err != nil {
		return nil, err
	}
	if settings.ClientID == client.NewSettings().ClientID {
		settings.ClientID = "console-producer"
	}
	return settings, nil
}

// lineReader reads --reader-config and --reader-property.
func (s *consoleProducer) lineReader() (*lineReader, error) {
	given := map[string]string{}
	if s.readerConfig != "" {
		l := properties.Loader{Encoding: properties.UTF8, DisableExpansion: true}
		file, err := l.LoadFile(s.readerConfig)
		if err != nil {
			return nil, err
		}
		given = file.Map()
	}
	pairs, err := script.Pairs(s.reader)
	if err != nil {
		return nil, err
	}
	for name, value := range pairs {
		given[name] = value
	}
	return newLineReader(s.topic, given)
}

// send feeds the client until the input ends or a line cannot be read. What was read
// before is sent either way.
func (s *consoleProducer) send(cmd *cobra.Command, cl *kgo.Client, reader *lineReader) error {
	ctx := cmd.Context()
	failed := func(_ *kgo.Record, err error) {
		if err != nil && !errors.Is(err, context.Canceled) {
			fmt.Fprintf(cmd.ErrOrStderr(), "Error when sending message to topic %s with error: %s\n", s.topic, script.Say(err, ""))
		}
	}
	prompt := output.IsTerminal(cmd.OutOrStdout())
	in := bufio.NewReaderSize(cmd.InOrStdin(), 64<<10)
	var lineErr error
	for ctx.Err() == nil {
		if prompt {
			fmt.Fprint(cmd.OutOrStdout(), ">")
		}
		line, err := in.ReadString('\n')
		if err != nil && (line == "" || !errors.Is(err, io.EOF)) {
			if !errors.Is(err, io.EOF) {
				lineErr = err
			}
			break
		}
		record, err := reader.record(strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"))
		if err != nil {
			lineErr = err
			break
		}
		if s.sync {
			r, err := cl.ProduceSync(ctx, record).First()
			failed(r, err)
			continue
		}
		cl.Produce(ctx, record, failed)
	}
	if err := cl.Flush(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	return lineErr
}
