package main

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"millrace/tools/internal/cli"
	"millrace/tools/internal/client"
)

// consumeOptions is the command line of 'millrace consume' as it was given.
type consumeOptions struct {
	connection client.Flags

	topic         string
	fromBeginning bool
	offset        string
	partitions    []int32
	toEnd         bool
	maxMessages   int64
	group         string
	match         string
	matchKey      string
	timeout       cli.Millis
	format        string
	delimiter     string
	exact         bool
	asJSON        bool
}

const consumeLong = `Read a topic and write every record's value and a newline to standard output.

Reading begins at the end of the topic, with what comes next, unless
--from-beginning or --offset say otherwise. It goes on until interrupted, unless
--to-end, --max-messages or --timeout end it. Without --group no consumer group is
used and nothing is committed.

With --group it reads as a member of that group, beginning at the group's offsets;
--from-beginning and --offset count for partitions that have none. What was written
is committed. --to-end ends it when every partition that is this member's has been
read to where it ended at the start.

--match and --match-key write only the records whose value, or key, has a match of
the regular expression. --max-messages counts what is written.

--format takes these, and \n \t \\ \xNN:
  %v value      %k key        %t topic      %p partition   %o offset
  %h headers    %d timestamp in ms          %V %K sizes of value and key
  %v{base64} %k{hex} encode; %d{go#RFC3339#} and %h{%k=%v } shape

--exact (or --no-newline) writes nothing between values. Together with
'millrace produce --exact' any file comes back byte-identical.

--json writes one object a line; bytes that are no UTF-8 text come as key_base64
and value_base64, a null key or value as null.`

func newConsume() *cobra.Command {
	o := &consumeOptions{}
	cmd := &cobra.Command{
		Use:   "consume TOPIC",
		Short: "Write the records of a topic to standard output",
		Long:  consumeLong,
		Example: `  millrace consume logs                                   # follow
  millrace consume logs --from-beginning --to-end         # all that is there, then stop
  millrace consume logs --offset -10 --to-end             # the last 10 of each partition
  millrace consume logs --offset @2026-01-31T12:00:00Z    # since then
  millrace consume logs --group nightly --from-beginning --to-end   # what is new since the last run
  millrace consume logs --match 'ERROR|panic'             # follow, filtered
  millrace consume logs -p 0 --offset 1234 --max-messages 1
  millrace consume logs --from-beginning --format '%p:%o %k=%v\n'
  millrace consume logs --from-beginning --to-end --json | jq .value`,
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

func (o *consumeOptions) register(fs *pflag.FlagSet) {
	fs.SortFlags = false
	fs.StringVarP(&o.topic, "topic", "t", "", "the topic, if it is not given as an argument")
	fs.BoolVar(&o.fromBeginning, "from-beginning", false, "begin at the first record that is still there")
	fs.StringVarP(&o.offset, "offset", "o", "", "begin at: an offset; -N for N before the end; earliest; latest; @TIME (RFC 3339 or ms)")
	fs.Int32SliceVarP(&o.partitions, "partition", "p", nil, "only these partitions (default: all)")
	fs.BoolVarP(&o.toEnd, "to-end", "e", false, "stop at what is the end when reading begins")
	fs.Int64VarP(&o.maxMessages, "max-messages", "n", 0, "stop after this many records")
	fs.StringVarP(&o.group, "group", "g", "", "read as a member of this group, and commit")
	fs.StringVar(&o.match, "match", "", "write only records whose value matches this regular expression")
	fs.StringVar(&o.matchKey, "match-key", "", "write only records whose key matches this regular expression")
	fs.Var(&o.timeout, "timeout", "stop with exit status 4 when no record came for so long (default: none; 30s with --to-end)")
	fs.StringVarP(&o.format, "format", "F", "", "how a record is written, see above")
	fs.StringVarP(&o.delimiter, "delimiter", "d", `\n`, "what is written after each value")
	fs.BoolVar(&o.exact, "exact", false, "write values and nothing else")
	fs.BoolVar(&o.exact, "no-newline", false, "the same as --exact")
	fs.BoolVar(&o.asJSON, "json", false, "write one JSON object a line")
	o.connection.Register(fs, "", "")
}

// toEndTimeout is the limit on silence with --to-end: records up to the end exist,
// so silence means a broker that does not answer.
const toEndTimeout = 30 * time.Second

func (o *consumeOptions) run(cmd *cobra.Command, topic string) error {
	given := cmd.Flags().Changed
	write, err := o.writer(given)
	if err != nil {
		return err
	}
	start, err := o.start()
	if err != nil {
		return err
	}
	if given("max-messages") && o.maxMessages < 1 {
		return cli.Usagef("--max-messages must be 1 or more")
	}
	timeout := o.timeout.Duration()
	if o.toEnd && !given("timeout") {
		timeout = toEndTimeout
	}
	want, err := o.filter()
	if err != nil {
		return err
	}
	if o.group != "" && given("partition") {
		return cli.Usagef("--group and --partition exclude each other: a group hands out partitions by itself")
	}
	s, err := o.connection.Settings(client.ForConsumer, nil, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	if o.group != "" {
		return o.runGroup(cmd, s, topic, start, &groupDrain{topic: topic, group: o.group, write: write, want: want, toEnd: o.toEnd, most: o.maxMessages, timeout: timeout})
	}
	spans, err := o.spans(cmd.Context(), s, topic, start)
	if err != nil {
		return err
	}
	offsets := map[int32]kgo.Offset{}
	for p, span := range spans {
		if !o.toEnd || span.from < span.end {
			offsets[p] = kgo.NewOffset().At(span.from)
		}
	}
	if len(offsets) == 0 {
		return nil // --to-end, and there is nothing
	}
	cl, err := kgo.NewClient(append(s.Consumer(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: offsets}),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()), // an offset that is gone is an error, not another offset
		kgo.KeepControlRecords(),                    // they move the position; they are not written
	)...)
	if err != nil {
		return cli.Usagef("%w", err)
	}
	defer cl.Close()
	d := &drain{client: cl, topic: topic, write: write, want: want, spans: spans, toEnd: o.toEnd, most: o.maxMessages, timeout: timeout}
	return d.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
}

// filter resolves --match and --match-key.
func (o *consumeOptions) filter() (func(*kgo.Record) bool, error) {
	value, err := regexp.Compile(o.match)
	if err != nil {
		return nil, cli.Usagef("--match: %w", err)
	}
	key, err := regexp.Compile(o.matchKey)
	if err != nil {
		return nil, cli.Usagef("--match-key: %w", err)
	}
	return func(r *kgo.Record) bool {
		return (o.match == "" || value.Match(r.Value)) && (o.matchKey == "" || r.Key != nil && key.Match(r.Key))
	}, nil
}

// startAt is where reading begins, before any broker was asked.
type startAt struct {
	kind byte // 'e' earliest, 'l' latest, 'o' offset, 'n' back from the end, 't' time
	n    int64
}

func (o *consumeOptions) start() (startAt, error) {
	text := o.offset
	if o.fromBeginning {
		if text != "" {
			return startAt{}, cli.Usagef("--from-beginning and --offset exclude each other")
		}
		text = "earliest"
	}
	switch {
	case text == "" || text == "latest" || text == "end":
		return startAt{kind: 'l'}, nil
	case text == "earliest" || text == "beginning":
		return startAt{kind: 'e'}, nil
	case strings.HasPrefix(text, "@"):
		if ms, err := strconv.ParseInt(text[1:], 10, 64); err == nil {
			return startAt{'t', ms}, nil
		}
		if t, err := time.Parse(time.RFC3339, text[1:]); err == nil {
			return startAt{'t', t.UnixMilli()}, nil
		}
	default:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			if n < 0 {
				return startAt{'n', -n}, nil
			}
			return startAt{'o', n}, nil
		}
	}
	return startAt{}, cli.Usagef("--offset %q is none of: an offset, -N, earliest, latest, @TIME", text)
}

// span is the part of a partition to read: from the first offset to before end,
// which is where the partition ended when reading began.
type span struct{ from, end int64 }

// spans asks the broker where each partition to read begins and ends.
func (o *consumeOptions) spans(ctx context.Context, s *client.Settings, topic string, start startAt) (map[int32]span, error) {
	cl, err := s.Connect(ctx, s.Common())
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	limited, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	t, err := client.RequireTopic(limited, cl, topic)
	if err != nil {
		return nil, err
	}
	partitions := o.partitions
	if len(partitions) == 0 {
		partitions = t.Partitions
	}
	for _, p := range partitions {
		if err := t.RequirePartition(p); err != nil {
			return nil, err
		}
	}
	return start.resolve(limited, kadm.NewClient(cl), topic, partitions, s.ReadCommitted)
}

func (a startAt) resolve(ctx context.Context, cl *kadm.Client, topic string, partitions []int32, committed bool) (map[int32]span, error) {
	first, err := cl.ListStartOffsets(ctx, topic)
	if err != nil {
		return nil, err
	}
	list := cl.ListEndOffsets
	if committed {
		list = cl.ListCommittedOffsets
	}
	last, err := list(ctx, topic)
	if err != nil {
		return nil, err
	}
	var since kadm.ListedOffsets
	if a.kind == 't' {
		if since, err = cl.ListOffsetsAfterMilli(ctx, a.n, topic); err != nil {
			return nil, err
		}
	}
	spans := map[int32]span{}
	for _, p := range partitions {
		begin, _ := first.Lookup(topic, p)
		end, _ := last.Lookup(topic, p)
		if begin.Err != nil {
			return nil, begin.Err
		}
		if end.Err != nil {
			return nil, end.Err
		}
		from := a.from(begin.Offset, end.Offset)
		if o, ok := since.Lookup(topic, p); ok && o.Err == nil {
			from = o.Offset
		}
		if from < begin.Offset || from > end.Offset {
			return nil, cli.NotFoundf("partition %d has no offset %d; it has %d to %d", p, from, begin.Offset, end.Offset)
		}
		spans[p] = span{from, end.Offset}
	}
	return spans, nil
}

func (a startAt) from(begin, end int64) int64 {
	switch a.kind {
	case 'e':
		return begin
	case 'o':
		return a.n
	case 'n':
		return max(begin, end-a.n)
	}
	return end
}
