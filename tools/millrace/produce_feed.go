package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"millrace/tools/internal/cli"
	"millrace/tools/internal/client"
	"millrace/tools/internal/output"
	"millrace/tools/internal/payload"
)

// recordLimit is how large a record may be, and where the limit comes from.
type recordLimit struct {
	topic string
	batch int // bytes of a whole batch, the topic's max.message.bytes
}

// kafkaMaxMessageBytes is Kafka's default of max.message.bytes, for brokers that
// do not tell a topic's settings.
const kafkaMaxMessageBytes = 1048588

// batchOverhead is what a batch of one large record has beside key, value and
// headers: 61 bytes of header, 11 of varints, and 4 that franz-go counts as well.
const batchOverhead = 76

// record is what a batch leaves for one record's key and value, beside what all
// records carry.
func (l recordLimit) record(template kgo.Record) int {
	left := l.batch - batchOverhead - len(template.Key)
	for _, h := range template.Headers {
		left -= len(h.Key) + len(h.Value) + 10
	}
	return max(left, 1)
}

func (l recordLimit) explain(err error) error {
	return fmt.Errorf("%w: topic %q takes batches of at most %d bytes (max.message.bytes)", err, l.topic, l.batch)
}

// prepareProduce makes sure that topic and partition exist, and sets the batch
// size to the most that the topic takes: the fewest requests for a file.
func prepareProduce(ctx context.Context, s *client.Settings, topic string) (recordLimit, error) {
	cl, err := s.Connect(ctx, s.Common())
	if err != nil {
		return recordLimit{}, err
	}
	defer cl.Close()
	limited, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	t, err := client.RequireTopic(limited, cl, topic)
	if err != nil {
		return recordLimit{}, err
	}
	if s.Partition >= 0 {
		if err := t.RequirePartition(s.Partition); err != nil {
			return recordLimit{}, err
		}
	}
	limit := recordLimit{topic, kafkaMaxMessageBytes}
	if configs, err := kadm.NewClient(cl).DescribeTopicConfigs(limited, topic); err == nil {
		limit.batch = maxMessageBytes(configs, topic)
	}
	s.MaxRequestSize = limit.batch
	if s.BatchSize == client.NewSettings().BatchSize { // not set by a property
		s.BatchSize = limit.batch
	}
	return limit, nil
}

func maxMessageBytes(configs kadm.ResourceConfigs, topic string) int {
	rc, err := configs.On(topic, nil)
	if err != nil || rc.Err != nil {
		return kafkaMaxMessageBytes
	}
	for _, c := range rc.Configs {
		if c.Key == "max.message.bytes" && c.Value != nil {
			if n, err := strconv.Atoi(*c.Value); err == nil && n > 0 {
				return min(n, 1<<30) // franz-go's own bound
			}
		}
	}
	return kafkaMaxMessageBytes
}

// feeder reads records and hands them to the client.
type feeder struct {
	client    *kgo.Client
	reader    *payload.Reader
	template  kgo.Record
	separator []byte
	limit     recordLimit

	arena  []byte // values are cut from chunks, one allocation for hundreds of lines
	sent   atomic.Int64
	bytes  atomic.Int64
	failed atomic.Int64
	stop   context.CancelCauseFunc // with the first failure
}

// arenaChunk is the size of the chunks that values are copied into.
const arenaChunk = 64 << 10

// produced is what 'millrace produce --json' writes.
type produced struct {
	Topic   string  `json:"topic"`
	Records int64   `json:"records"` // acknowledged
	Bytes   int64   `json:"bytes"`   // of their keys and values
	Failed  int64   `json:"failed"`
	Seconds float64 `json:"seconds"`
}

func (f *feeder) run(cmd *cobra.Command, size int64, asJSON bool) error {
	began := time.Now()
	interrupt := cmd.Context()
	sending, stop := context.WithCancelCause(context.WithoutCancel(interrupt))
	defer stop(nil)
	defer context.AfterFunc(interrupt, func() { time.AfterFunc(graceLimit, func() { stop(errInterrupted) }) })()
	f.stop = stop

	progress := output.StartProgress(cmd.ErrOrStderr(), size, true, "sent")
	err := f.feed(interrupt, sending, progress)
	_ = f.client.Flush(sending) // fails only with sending, whose cause is looked at next
	progress.Stop()
	// What the broker said comes first; the reading side only ended because of it.
	if cause := context.Cause(sending); cause != nil {
		err = f.refused(cause)
	}
	result := produced{f.template.Topic, f.sent.Load(), f.bytes.Load(), f.failed.Load(), time.Since(began).Seconds()}
	if asJSON {
		if jsonErr := output.JSON(cmd.OutOrStdout(), result); jsonErr != nil {
			return jsonErr
		}
	} else if err == nil && output.IsTerminal(cmd.ErrOrStderr()) {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s records, %s, %.1f s\n", humanize.Comma(result.Records), humanize.IBytes(uint64(result.Bytes)), result.Seconds)
	}
	if err != nil {
		return fmt.Errorf("%w (%d records were acknowledged)", err, result.Records)
	}
	return nil
}

// graceLimit is how long records on their way are waited for after an interrupt.
const graceLimit = 5 * time.Second

var errInterrupted = errors.New("interrupted")

// feed sends until the input ends, a record fails, or an interrupt comes. A read
// that blocks, as on a terminal, notices none of them and is left behind.
func (f *feeder) feed(interrupt, sending context.Context, progress *output.Progress) error {
	lines := make(chan error, 1)
	go func() { lines <- f.lines(interrupt, sending, progress) }() // ends as feed does; a hanging read ends with the process
	select {
	case err := <-lines:
		return err
	case <-interrupt.Done():
		return errInterrupted
	case <-sending.Done():
		return context.Cause(sending)
	}
}

func (f *feeder) lines(interrupt, sending context.Context, progress *output.Progress) error {
	for interrupt.Err() == nil && sending.Err() == nil {
		line, err := f.reader.Next()
		var long *payload.TooLongError
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.As(err, &long):
			return f.limit.explain(err)
		case err != nil:
			return err
		}
		r := f.template
		r.Value = f.keep(line)
		if len(f.separator) > 0 {
			var ok bool
			if r.Key, r.Value, ok = bytes.Cut(r.Value, f.separator); !ok {
				return fmt.Errorf("record %d has no key separator %q", f.reader.Record(), f.separator)
			}
		}
		f.client.Produce(sending, &r, f.done)
		progress.Set(f.reader.Bytes())
	}
	return nil
}

// keep copies a line out of the reader's buffer.
func (f *feeder) keep(line []byte) []byte {
	if len(line) > cap(f.arena)-len(f.arena) {
		f.arena = make([]byte, 0, max(arenaChunk, len(line)))
	}
	from := len(f.arena)
	f.arena = append(f.arena, line...)
	return f.arena[from:len(f.arena):len(f.arena)]
}

// done is the promise of every record, on the client's own goroutine.
func (f *feeder) done(r *kgo.Record, err error) {
	if err != nil {
		f.failed.Add(1)
		f.stop(err)
		return
	}
	f.sent.Add(1)
	f.bytes.Add(int64(len(r.Key) + len(r.Value)))
}

// refused turns a failed record's error into one that says what to do.
func (f *feeder) refused(err error) error {
	switch {
	case errors.Is(err, errInterrupted):
		return err
	case errors.Is(err, kerr.MessageTooLarge):
		return f.limit.explain(err)
	case errors.Is(err, kgo.ErrRecordTimeout):
		return cli.Unreachablef("the broker did not store a record in time: %w", err)
	}
	return fmt.Errorf("a record could not be stored: %w", err)
}
