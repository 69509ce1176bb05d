package main

import (
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kgo"

	"millrace/tools/internal/cli"
	"millrace/tools/internal/client"
	"millrace/tools/internal/payload"
)

// produceOptions is the command line of 'millrace produce' as it was given.
type produceOptions struct {
	connection client.Flags

	topic        string
	file         string
	delimiter    string
	keySeparator string
	key          string
	headers      []string
	partition    int32
	compression  string
	acks         string
	idempotence  bool
	exact        bool
	asJSON       bool
}

func newProduce() *cobra.Command {
	o := &produceOptions{}
	cmd := &cobra.Command{
		Use:   "produce TOPIC",
		Short: "Send lines of a file or of standard input as records",
		Long: `Send every line of standard input, or of --file, as one record.

Bytes are sent as they are: no character set, no trimming, empty lines are empty
records. The newline itself is not part of a record, so a file comes back
byte-identical from 'millrace consume', which writes a newline after each, if it
ended with one. With --exact the newline stays in the record; then any file comes
back byte-identical from 'millrace consume --exact'.

Records of one partition stay in order. On a topic with several partitions use
--partition to keep the order of a whole file.

It stops at the first record that cannot be stored, with exit status 1.`,
		Example: `  millrace produce logs < /var/log/syslog
  millrace produce logs --file big.txt --compression zstd --partition 0
  printf 'anna:1\nbert:2\n' | millrace produce ages --key-separator :
  find . -print0 | millrace produce names --delimiter '\0'
  echo hello | millrace produce logs --headers source=shell --headers lang=en`,
		Args: cobra.ArbitraryArgs, // oneTopic checks them
		RunE: func(cmd *cobra.Command, args []string) error {
			topic, err := oneTopic(o.topic, args)
			if err != nil {
				return err
			}
			return o.run(cmd, topic)
		},
	}
	o.register(cmd.Flags())
	return cmd
}

func (o *produceOptions) register(fs *pflag.FlagSet) {
	fs.SortFlags = false
	fs.StringVarP(&o.topic, "topic", "t", "", "the topic, if it is not given as an argument")
	fs.StringVarP(&o.file, "file", "f", "-", "read this file; - is standard input")
	fs.StringVarP(&o.delimiter, "delimiter", "d", `\n`, `what ends a record; \n \t \0 \xNN are understood, "" makes the whole input one record`)
	fs.StringVarP(&o.keySeparator, "key-separator", "k", "", "what stands between key and value; the first one in a line counts")
	fs.StringVar(&o.key, "key", "", "give every record this key")
	fs.StringArrayVarP(&o.headers, "headers", "H", nil, "give every record this header, name=value (repeatable)")
	fs.Int32VarP(&o.partition, "partition", "p", -1, "send to this partition (default: by key, else spread)")
	fs.StringVarP(&o.compression, "compression", "z", "none", "none, gzip, snappy, lz4 or zstd")
	fs.StringVar(&o.acks, "acks", "all", "all, 1 or 0: which copies must be safe before a record counts as sent")
	fs.BoolVar(&o.idempotence, "idempotence", true, "no duplicates when a request is repeated; needs --acks all")
	fs.BoolVar(&o.exact, "exact", false, "keep the delimiter as part of each record")
	fs.BoolVar(&o.asJSON, "json", false, "print what was sent as JSON")
	o.connection.Register(fs, "", "")
}

func (o *produceOptions) run(cmd *cobra.Command, topic string) error {
	s, err := o.settings(cmd)
	if err != nil {
		return err
	}
	template, delimiter, separator, err := o.record(cmd.Flags().Changed, topic)
	if err != nil {
		return err
	}
	in, size, err := o.open(cmd.InOrStdin())
	if err != nil {
		return err
	}
	defer in.Close()

	limit, err := prepareProduce(cmd.Context(), s, topic)
	if err != nil {
		return err
	}
	options, err := s.Producer()
	if err != nil {
		return cli.Usagef("%w", err)
	}
	cl, err := kgo.NewClient(options...)
	if err != nil {
		return cli.Usagef("%w", err)
	}
	defer cl.Close()
	f := &feeder{
		client:    cl,
		template:  template,
		separator: []byte(separator),
		limit:     limit,
		reader: payload.NewReader(in, payload.Options{
			Delimiter: delimiter, Keep: o.exact, Limit: limit.record(template),
		}),
	}
	return f.run(cmd, size, o.asJSON)
}

func (o *produceOptions) settings(cmd *cobra.Command) (*client.Settings, error) {
	s, err := o.connection.Settings(client.ForProducer, nil, cmd.ErrOrStderr())
	if err != nil {
		return nil, err
	}
	for _, f := range []struct{ flag, property, value string }{
		{"acks", "acks", o.acks},
		{"compression", "compression.type", o.compression},
		{"idempotence", "enable.idempotence", strconv.FormatBool(o.idempotence)},
	} {
		if !cmd.Flags().Changed(f.flag) {
			continue
		}
		if _, err := s.Set(client.ForProducer, f.property, f.value); err != nil {
			return nil, cli.Usagef("--%s: %w", f.flag, err)
		}
	}
	s.Partition = o.partition
	return s, nil
}

// record makes the record that all others begin as, and reads the two separators.
func (o *produceOptions) record(given func(string) bool, topic string) (r kgo.Record, delimiter, separator string, err error) {
	r = kgo.Record{Topic: topic, Partition: max(o.partition, 0)}
	if delimiter, err = cli.Unescape(o.delimiter); err != nil {
		return r, "", "", cli.Usagef("--delimiter: %w", err)
	}
	if separator, err = cli.Unescape(o.keySeparator); err != nil {
		return r, "", "", cli.Usagef("--key-separator: %w", err)
	}
	switch {
	case given("key") && separator != "":
		return r, "", "", cli.Usagef("--key and --key-separator exclude each other")
	case given("partition") && o.partition < 0:
		return r, "", "", cli.Usagef("--partition must be 0 or more")
	case given("key"):
		r.Key = []byte(o.key)
	}
	for _, h := range o.headers {
		name, value, ok := strings.Cut(h, "=")
		if !ok || name == "" {
			return r, "", "", cli.Usagef("--headers %q is not of the form name=value", h)
		}
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
	}
	return r, delimiter, separator, nil
}

// open opens the input; size is -1 where it cannot be known.
func (o *produceOptions) open(stdin io.Reader) (in io.ReadCloser, size int64, err error) {
	file, ok := stdin.(*os.File)
	switch {
	case o.file != "-":
		if file, err = os.Open(o.file); err != nil {
			return nil, 0, err
		}
	case !ok:
		return io.NopCloser(stdin), -1, nil
	}
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
		return file, info.Size(), nil
	}
	return file, -1, nil
}
