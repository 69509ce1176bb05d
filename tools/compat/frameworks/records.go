package frameworks

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"millrace/tools/compat/harness"
)

// anyText tells lines that every language reads as the same one string.
func anyText(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\r") }

// asciiText is for programs that count characters where they should count bytes.
func asciiText(s string) bool {
	return anyText(s) && !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}

// textLines are n lines of real text that fit.
func textLines(e *harness.Env, n int, fits func(string) bool) ([]string, error) {
	file, err := harness.Corpus(e.Cache, 2)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var lines []string
	for sc := bufio.NewScanner(f); len(lines) < n && sc.Scan(); {
		if fits(sc.Text()) {
			lines = append(lines, sc.Text())
		}
	}
	if len(lines) < n {
		return nil, fmt.Errorf("%s has %d lines, want %d", file, len(lines), n)
	}
	return lines, nil
}

// withClient calls f with a client and an admin client of it that end with the call, and a context that ends after a step's time.
func withClient(addr string, f func(ctx context.Context, cl *kgo.Client, adm *kadm.Client) error, opts ...kgo.Opt) error {
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(addr)}, opts...)...)
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), step)
	defer cancel()
	return f(ctx, cl, kadm.NewClient(cl))
}

// send writes each line as a record to the topic, round robin over its partitions, and waits for the acks.
func send(addr, topic string, partitions int32, lines []string) error {
	return withClient(addr, func(ctx context.Context, cl *kgo.Client, _ *kadm.Client) error {
		records := make([]*kgo.Record, len(lines))
		for i, l := range lines {
			records[i] = &kgo.Record{Topic: topic, Partition: int32(i) % partitions, Value: []byte(l)}
		}
		return cl.ProduceSync(ctx, records...).FirstErr()
	}, kgo.RecordPartitioner(kgo.ManualPartitioner()))
}

// valueCounts counts each value that a topic holds.
func valueCounts(addr, topic string, partitions int32) (map[string]int, error) {
	got := map[string]int{}
	for p := range partitions {
		if err := harness.ReadAll(addr, topic, p, func(r *kgo.Record) error { got[string(r.Value)]++; return nil }); err != nil {
			return nil, err
		}
	}
	return got, nil
}

// sameCounts says the first value that was not got as often as wanted; with atLeast more is allowed, but nothing foreign. It
// returns how many came more often.
func sameCounts(want, got map[string]int, atLeast bool) (surplus int, err error) {
	for v, n := range want {
		if got[v] < n || got[v] > n && !atLeast {
			return 0, fmt.Errorf("%.60q is there %d times, want %d", v, got[v], n)
		}
		surplus += got[v] - n
	}
	for v := range got {
		if want[v] == 0 {
			return 0, fmt.Errorf("%.60q is there and was never sent", v)
		}
	}
	return surplus, nil
}

// committedToTheEnd says whether the group's committed offsets are the topic's ends.
func committedToTheEnd(addr, group, topic string) error {
	return withClient(addr, func(ctx context.Context, _ *kgo.Client, adm *kadm.Client) error {
		ends, err := adm.ListEndOffsets(ctx, topic)
		if err != nil {
			return err
		}
		offsets, err := adm.FetchOffsets(ctx, group)
		if err != nil {
			return err
		}
		n := 0
		ends.Each(func(end kadm.ListedOffset) {
			n++
			o, ok := offsets.Lookup(topic, end.Partition)
			if err == nil && (!ok || o.At != end.Offset) {
				err = fmt.Errorf("group %s has committed %d of %s-%d, whose end is %d", group, o.At, topic, end.Partition, end.Offset)
			}
		})
		if n == 0 && err == nil {
			err = fmt.Errorf("topic %s has no partitions", topic)
		}
		return err
	})
}
