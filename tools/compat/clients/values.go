package clients

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"millrace/tools/compat/harness"
)

// sends are the shapes that the client can write.
func (c client) sends() (records []record, alone int) {
	alone = single
	for i, r := range shapes() {
		if c.oldFormat && len(r.Headers) > 0 || c.without != nil && c.without(&r) {
			if i < single {
				alone--
			}
			continue
		}
		if c.most > 0 && len(r.Value) > c.most {
			r.Value = r.Value[:c.most]
		}
		records = append(records, r)
	}
	return records, alone
}

// expected are the lines for what writer sent, as reader tells of them: what either cannot say is left out on both sides.
func expected(writer, reader client, records []record) []line {
	var out []line
	for _, r := range records {
		out = append(out, writer.seenBy(reader, shown(r)))
	}
	return out
}

func (c client) seenBy(reader client, l line) line {
	if c.noTime {
		l.Time = 0
	}
	if reader.oldFormat {
		l.Headers = nil
	}
	if reader.blur != nil {
		reader.blur(&l)
	}
	return l
}

// put has the client write the shapes with a codec to a new topic.
func (c client) put(e *harness.Env, addr, topic, codec string, idempotent bool) error {
	records, alone := c.sends()
	file := filepath.Join(e.Dir, topic+".in")
	if err := writeRecords(file, records); err != nil {
		return err
	}
	if err := harness.CreateTopic(addr, topic, 1); err != nil {
		return err
	}
	_, err := c.run(e, "produce", addr, args{Topic: topic, Codec: codec, File: file, Single: alone, Idempotent: idempotent})
	return err
}

// get has the client read the topics and gives the lines of each.
func (c client) get(e *harness.Env, addr string, topics map[string]int) (map[string][]line, error) {
	lines, err := c.run(e, "consume", addr, args{Topics: topics})
	if err != nil {
		return nil, err
	}
	out := map[string][]line{}
	for _, l := range lines {
		switch l.Step {
		case "got":
			out[l.Topic] = append(out[l.Topic], l)
		case "version":
			e.Note("%s", l.Detail)
		}
	}
	return out, nil
}

// look reads a topic with franz-go and compares it with what the client sent: values, the batches' codec, the producer's id.
func (c client) look(addr, topic, codec string, idempotent bool) error {
	records, _ := c.sends()
	var got []line
	withCodec := 0
	err := harness.ReadAll(addr, topic, 0, func(r *kgo.Record) error {
		got = append(got, c.seenBy(client{}, shown(fromKgo(r))))
		if allCodecs[r.Attrs.CompressionType()] == codec {
			withCodec++
		}
		if idempotent != (r.ProducerID >= 0) {
			return fmt.Errorf("offset %d: producer id %d, idempotent %v", r.Offset, r.ProducerID, idempotent)
		}
		return nil
	})
	if err == nil && withCodec < len(got)/2 {
		err = fmt.Errorf("only %d of %d records are stored with codec %s", withCodec, len(got), codec)
	}
	if err != nil {
		return err
	}
	return firstDifference(expected(c, client{}, records), got)
}

// values: what the client writes with each codec is stored so, and comes back to it as it was.
func values(e *harness.Env, c client) error {
	m, err := harness.StartMillrace(e, "group.initial.rebalance.delay.ms=0")
	if err != nil {
		return err
	}
	defer m.Kill()
	type written struct {
		codec      string
		idempotent bool
	}
	topics := map[string]written{}
	for _, codec := range c.codecs {
		topics["plain-"+codec] = written{codec, false}
	}
	if c.idempotent {
		topics["idempotent"] = written{"gzip", true}
	}
	records, _ := c.sends()
	counts := map[string]int{}
	for topic, w := range topics {
		if err := c.put(e, m.Addr, topic, w.codec, w.idempotent); err != nil {
			return fmt.Errorf("%s: %w", topic, err)
		}
		if err := c.look(m.Addr, topic, w.codec, w.idempotent); err != nil {
			return fmt.Errorf("%s as franz-go sees it: %w", topic, err)
		}
		counts[topic] = len(records)
	}
	got, err := c.get(e, m.Addr, counts)
	if err != nil {
		return err
	}
	for topic := range topics {
		if err := c.sameAs(c, records, got[topic]); err != nil {
			return fmt.Errorf("%s: %w", topic, err)
		}
	}
	e.Note("%d records of every shape with each of %v%s", len(records), c.codecs, map[bool]string{true: ", idempotent too"}[c.idempotent])
	return m.Stop()
}

// sameAs compares what the client read with what writer sent.
func (c client) sameAs(writer client, records []record, got []line) error {
	for i := range got {
		got[i] = writer.seenBy(c, got[i])
	}
	return firstDifference(expected(writer, c, records), got)
}

// largest is the value that just fits into a batch of its own under the default max.message.bytes of 1,048,588: 61 bytes are the
// batch's header and 11 the record's (length 3, attributes, timestamp, offset, key length each 1, value length 3, headers 1).
const largest = 1_048_588 - 61 - 11

// limits: a value up to the limit is taken, one byte more is refused with the error that says why.
func limits(e *harness.Env, c client) error {
	m, err := harness.StartMillrace(e)
	if err != nil {
		return err
	}
	defer m.Kill()
	if err := harness.CreateTopic(m.Addr, "limit", 1); err != nil {
		return err
	}
	a := args{Topic: "limit", Fit: largest, Over: largest + 1, File: filepath.Join(e.Dir, "value")}
	if c.oldFormat {
		a.Fit, a.Over = 1_000_000, 1_048_588
	}
	lines, err := c.run(e, "limit", m.Addr, a)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(lines, func(l line) bool { return l.Step == "over" })
	switch {
	case i < 0:
		return errors.New("the program told nothing of the larger value")
	case lines[i].OK:
		return fmt.Errorf("a value of %d bytes was taken", a.Over)
	case !tooLarge.MatchString(lines[i].Detail):
		return fmt.Errorf("a value of %d bytes was refused with %q, which does not say that it is too large", a.Over, lines[i].Detail)
	}
	var sizes []int
	if err := harness.ReadAll(m.Addr, "limit", 0, func(r *kgo.Record) error { sizes = append(sizes, len(r.Value)); return nil }); err != nil {
		return err
	}
	if !slices.Equal(sizes, []int{a.Fit}) {
		return fmt.Errorf("values of %v bytes are stored, want %d", sizes, a.Fit)
	}
	e.Note("%d bytes taken; %d refused: %s", a.Fit, a.Over, lines[i].Detail)
	return m.Stop()
}

// admin calls f with franz-go's admin client.
func admin(addr string, f func(ctx context.Context, a *kadm.Client) error) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return f(ctx, kadm.NewClient(cl))
}
