package main

import (
	"path/filepath"
	"strconv"

	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"millrace/tools/internal/cli"
	"millrace/tools/internal/client"
)

// options is the command line as it was given.
type options struct {
	connection client.Flags

	topics      []string
	records     int64 // -1: all of the payload file
	throughput  float64
	warmup      int64
	producers   int
	partition   int32
	interval    cli.Millis
	metrics     bool
	jsonFile    string
	recordSize  cli.Size
	payloadFile string
	delimiter   string
	order       string
	monotonic   bool

	acks, compression string
	idempotence       bool
	batchSize         cli.Size
	linger            cli.Millis

	transactionalID     string
	transactionDuration int64
}

const about = `Measure producing to a Kafka broker, or send a real file to it.

It takes the flags of Kafka's kafka-producer-perf-test.sh, prints the same lines,
and has the same defaults (acks=all, idempotence, batch.size=16384, linger.ms=5),
so its figures can be put beside that tool's.

With --throughput every record has an intended start, and its latency is measured
from there: a broker that stalls is charged for the records that had to wait.`

const examples = `  # one million records of 100 bytes, as fast as it goes
  perf-producer --topic t --num-records 1000000 --record-size 100

  # 50,000 records a second for 20 s; latencies are what a user would have seen
  perf-producer --topic t --num-records 1000000 --record-size 100 --throughput 50000

  # every line of a file, in order, compressed; then read it back and compare
  perf-producer --topic t --payload-file big.txt --payload-order sequence --compression zstd
  millrace consume t --from-beginning --to-end | cmp - big.txt

  # Kafka's spelling works too
  perf-producer --topic t --num-records 100000 --throughput -1 --record-size 1000 \
    --producer-props bootstrap.servers=127.0.0.1:9092 acks=1 linger.ms=0`

func newCommand() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:     filepath.Base(os.Args[0]) + " --topic TOPIC --num-records N (--record-size N | --payload-file FILE | --payload-monotonic)",
		Short:   "Measure producing to a Kafka broker",
		Long:    about + "\n\n" + cli.ExitHelp,
		Example: examples,
		Version: client.Version(),
		Args:    func(_ *cobra.Command, args []string) error { return o.connection.OnlyProperties(args) },
		RunE: func(cmd *cobra.Command, args []string) error {
			plan, err := o.plan(cmd, args)
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
	o.connection.Register(fs, "producer.config", "producer-props")
	fs.StringSliceVar(&o.topics, "topic", nil, "topic to produce to; several (with commas, or repeated) are taken in turn")
	fs.Int64Var(&o.records, "num-records", -1, "how many records (default with --payload-order sequence: all of the file)")
	fs.Float64Var(&o.throughput, "throughput", -1, "records per second over all producers; -1 is no limit")
	o.recordSize = 0
	fs.Var(&o.recordSize, "record-size", "bytes of random letters in each record")
	fs.StringVar(&o.payloadFile, "payload-file", "", "take the records from this file; - is standard input, in sequence only")
	fs.StringVar(&o.delimiter, "payload-delimiter", `\n`, "what ends a record in the payload file")
	fs.StringVar(&o.order, "payload-order", "random", "random: pick a record of the file each time, as Kafka's tool does; sequence: each one in order")
	fs.BoolVar(&o.monotonic, "payload-monotonic", false, "the records are 0, 1, 2 …")
	fs.Int64Var(&o.warmup, "warmup-records", 0, "this many records first, left out of a second summary")
	o.interval = 5000 * cli.Millis(1e6)
	fs.Var(&o.interval, "reporting-interval", "how often to print a line")
	fs.BoolVar(&o.metrics, "print-metrics", false, "print the client's counters at the end")

	fs.IntVar(&o.producers, "producers", 1, "how many clients send side by side")
	fs.Int32Var(&o.partition, "partition", -1, "send everything to this partition")
	fs.StringVar(&o.acks, "acks", "", "all, 1 or 0 (default all)")
	fs.StringVar(&o.compression, "compression", "", "none, gzip, snappy, lz4 or zstd (default none)")
	fs.BoolVar(&o.idempotence, "idempotence", true, "no duplicates when a request is repeated; needs acks=all")
	fs.Var(&o.batchSize, "batch-size", "bytes of a batch that is sent without lingering (default 16384)")
	fs.Var(&o.linger, "linger-ms", "how long a batch may wait for more records (default 5ms)")
	fs.StringVar(&o.jsonFile, "json", "", "write the results to this file as JSON; - is standard output")

	fs.StringVar(&o.transactionalID, "transactional-id", "", "not supported")
	fs.Int64Var(&o.transactionDuration, "transaction-duration-ms", 0, "not supported")
	_ = fs.MarkHidden("transactional-id") // the names exist, see plan
	_ = fs.MarkHidden("transaction-duration-ms")
}

// plan checks the command line as a whole and resolves it into what run needs.
func (o *options) plan(cmd *cobra.Command, extra []string) (*plan, error) {
	given := cmd.Flags().Changed
	if err := o.check(given); err != nil {
		return nil, err
	}
	s, err := o.connection.Settings(client.ForProducer, extra, cmd.ErrOrStderr())
	if err != nil {
		return nil, err
	}
	if s.TransactionalID != "" {
		return nil, errTransactions
	}
	for _, f := range []struct{ flag, property, value string }{
		{"acks", "acks", o.acks},
		{"compression", "compression.type", o.compression},
		{"idempotence", "enable.idempotence", strconv.FormatBool(o.idempotence)},
		{"batch-size", "batch.size", strconv.FormatInt(int64(o.batchSize), 10)},
		{"linger-ms", "linger.ms", strconv.FormatInt(o.linger.Duration().Milliseconds(), 10)},
	} {
		if !given(f.flag) {
			continue
		}
		if _, err := s.Set(client.ForProducer, f.property, f.value); err != nil {
			return nil, cli.Usagef("--%s: %w", f.flag, err)
		}
	}
	if s.ClientID == client.NewSettings().ClientID {
		s.ClientID = "perf-producer-client" // Kafka's tool's own
	}
	s.Partition = o.partition

	p := &plan{
		settings:   s,
		topics:     o.topics,
		records:    o.records,
		throughput: o.throughput,
		warmup:     o.warmup,
		producers:  o.producers,
		interval:   o.interval.Duration(),
		metrics:    o.metrics,
		jsonFile:   o.jsonFile,
	}
	p.payload, err = o.payload(p)
	return p, err
}

var errTransactions = cli.Usagef("transactions are not supported by this tool; leave out --transactional-id, --transaction-duration-ms and transactional.id")

func (o *options) check(given func(string) bool) error {
	kinds := 0
	for _, flag := range []string{"record-size", "payload-file", "payload-monotonic"} {
		if given(flag) {
			kinds++
		}
	}
	sequence := o.order == "sequence"
	switch {
	case given("transactional-id") || given("transaction-duration-ms"):
		return errTransactions
	case len(o.topics) == 0:
		return cli.Usagef("--topic is missing")
	case kinds != 1:
		return cli.Usagef("give exactly one of --record-size, --payload-file and --payload-monotonic")
	case given("record-size") && o.recordSize < 1:
		return cli.Usagef("--record-size must be 1 or more")
	case o.order != "random" && !sequence:
		return cli.Usagef("--payload-order must be random or sequence")
	case sequence && o.payloadFile == "":
		return cli.Usagef("--payload-order sequence needs --payload-file")
	case sequence && o.producers > 1:
		return cli.Usagef("--payload-order sequence keeps the order of the file, which several --producers would not")
	case o.payloadFile == "-" && !sequence:
		return cli.Usagef("standard input can only be sent with --payload-order sequence")
	case !sequence && (!given("num-records") || o.records < 1):
		return cli.Usagef("--num-records must be given, 1 or more")
	case given("num-records") && o.records < 1:
		return cli.Usagef("--num-records must be 1 or more")
	case o.throughput == 0:
		return cli.Usagef("--throughput 0 would never send anything; -1 is no limit")
	case o.producers < 1 || o.producers > maxProducers:
		return cli.Usagef("--producers must be from 1 to %d", maxProducers)
	case o.warmup < 0 || (o.records >= 0 && o.warmup >= o.records):
		return cli.Usagef("--warmup-records must be fewer than --num-records")
	case o.interval.Duration() <= 0:
		return cli.Usagef("--reporting-interval must be more than 0")
	}
	return nil
}

// maxProducers bounds clients, each with its own connections and buffers.
const maxProducers = 1000
