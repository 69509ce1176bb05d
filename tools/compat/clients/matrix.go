package clients

import (
	"fmt"
	"slices"
	"strings"

	"millrace/tools/compat/harness"
)

// matrix: a topic for each client and codec, read by every client.
func matrix(e *harness.Env) error {
	m, err := harness.StartMillrace(e, "group.initial.rebalance.delay.ms=0")
	if err != nil {
		return err
	}
	defer m.Kill()
	type topic struct {
		writer client
		codec  string
	}
	topics := map[string]topic{}
	var all []client
	for i, c := range list() {
		if c.noMatrix {
			continue
		}
		c.most = 50_000 // the largest values are each client's own check
		all = append(all, c)
		for _, codec := range c.codecs {
			name := fmt.Sprintf("w%d-%s", i, codec)
			topics[name] = topic{c, codec}
			if err := c.put(e, m.Addr, name, codec, false); err != nil {
				return fmt.Errorf("%s writing with %s: %w", c.title, codec, err)
			}
		}
	}
	e.Note("%d clients, %d topics", len(all), len(topics))
	for _, reader := range all {
		counts := map[string]int{}
		var unread []string
		for name, t := range topics {
			if t.codec == "snappy" && reader.bare && t.writer.framed {
				unread = append(unread, t.writer.title)
				continue
			}
			if slices.Contains(reader.codecs, t.codec) {
				records, _ := t.writer.sends()
				counts[name] = len(records)
			}
		}
		got, err := reader.get(e, m.Addr, counts)
		if err != nil {
			return fmt.Errorf("%s reading: %w", reader.title, err)
		}
		if len(unread) > 0 {
			slices.Sort(unread)
			e.Note("%s cannot read Snappy in the blocks of Java's library, as %s write it: left out", reader.title, strings.Join(unread, ", "))
		}
		for name := range counts {
			t := topics[name]
			records, _ := t.writer.sends()
			if err := reader.sameAs(t.writer, records, got[name]); err != nil {
				return fmt.Errorf("%s in with %s, %s out: %w", t.writer.title, t.codec, reader.title, err)
			}
		}
	}
	return m.Stop()
}
