package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"millrace/tools/internal/client"
	"millrace/tools/internal/script"
)

// resetTo says where a group's offsets are to go. Exactly one way is given.
type resetTo struct {
	kind   byte  // 'e' earliest, 'l' latest, 'o' offset, 's' shift, 't' time, 'c' current, 'f' file
	n      int64 // the offset, the shift, or the time in ms
	groups map[string]map[topicPartition]int64
}

// fileResets reads the CSV that --export writes: topic,partition,offset for one group,
// or group,topic,partition,offset.
func fileResets(file string, groups []string) (map[string]map[topicPartition]int64, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.FieldsPerRecord, r.TrimLeadingSpace = -1, true
	rows, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	out := map[string]map[topicPartition]int64{}
	for i, row := range rows {
		group := ""
		switch {
		case len(row) == 3 && len(groups) == 1:
			group = groups[0]
		case len(row) == 4:
			group, row = row[0], row[1:]
		default:
			return nil, fmt.Errorf("%s: line %d is not of the form [group,]topic,partition,offset", file, i+1)
		}
		p, perr := strconv.ParseInt(strings.TrimSpace(row[1]), 10, 32)
		at, oerr := strconv.ParseInt(strings.TrimSpace(row[2]), 10, 64)
		if perr != nil || oerr != nil {
			return nil, fmt.Errorf("%s: line %d: partition and offset must be numbers", file, i+1)
		}
		if out[group] == nil {
			out[group] = map[topicPartition]int64{}
		}
		out[group][topicPartition{row[0], int32(p)}] = at
	}
	return out, nil
}

var dateTime = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?$`)

// parseDateTime reads Kafka's form of a time; without a zone it is UTC.
func parseDateTime(text string) (time.Time, error) {
	if dateTime.MatchString(text) {
		plain := text
		if !strings.HasSuffix(plain, "Z") && !regexp.MustCompile(`T.*[+-]`).MatchString(plain) {
			plain += "Z"
		}
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999Z0700", "2006-01-02T15:04Z07:00", "2006-01-02T15:04Z0700"} {
			if t, err := time.Parse(layout, plain); err == nil {
				return t, nil
			}
		}
	}
	if !strings.Contains(text, "T") {
		return time.Time{}, errors.New("java.text.ParseException: Error parsing timestamp. It does not contain a 'T' according to ISO8601 format") //nolint:staticcheck // Kafka's words
	}
	return time.Time{}, fmt.Errorf("java.text.ParseException: Unparseable date: %q", text) //nolint:staticcheck // Kafka's words
}

var isoDuration = regexp.MustCompile(`(?i)^([-+]?)P(?:([-+]?\d+)D)?(T(?:([-+]?\d+)H)?(?:([-+]?\d+)M)?(?:([-+]?\d+)(?:[.,](\d{0,9}))?S)?)?$`)

// parseISODuration reads PnDTnHnMn.nS as java.time.Duration does; there are no months.
func parseISODuration(text string) (time.Duration, error) {
	m := isoDuration.FindStringSubmatch(text)
	if m == nil || m[2]+m[4]+m[5]+m[6] == "" || len(m[3]) == 1 {
		return 0, errors.New("Text cannot be parsed to a Duration") //nolint:staticcheck // Kafka's words
	}
	var total time.Duration
	for i, unit := range map[int]time.Duration{2: 24 * time.Hour, 4: time.Hour, 5: time.Minute, 6: time.Second} {
		n, _ := strconv.ParseInt(m[i], 10, 64)
		total += time.Duration(n) * unit
	}
	if m[7] != "" {
		nanos, _ := strconv.ParseInt((m[7] + "000000000")[:9], 10, 64)
		if strings.HasPrefix(m[6], "-") {
			nanos = -nanos
		}
		total += time.Duration(nanos)
	}
	if m[1] == "-" {
		total = -total
	}
	return total, nil
}

// parseTopicScope reads topic or topic:0,1,2; numbers is nil for all partitions.
func parseTopicScope(arg string) (topic string, numbers []int32, err error) {
	topic, list, some := strings.Cut(arg, ":")
	if !some {
		return topic, nil, nil
	}
	if topic == "" || list == "" || strings.Contains(list, ":") {
		return "", nil, script.Usagef("Invalid topic arg '%s', expected topic name and partitions", arg)
	}
	for _, part := range strings.Split(list, ",") {
		n, err := strconv.ParseInt(part, 10, 32)
		if err != nil {
			return "", nil, script.Usagef("Invalid partition '%s' specified in topic arg '%s''", part, arg)
		}
		numbers = append(numbers, int32(n))
	}
	return topic, numbers, nil
}

// scopePartitions turns --topic arguments into partitions that exist.
func scopePartitions(ctx context.Context, cl *client.Admin, args []string) ([]topicPartition, error) {
	var out, missing []topicPartition
	for _, arg := range args {
		topic, numbers, err := parseTopicScope(arg)
		if err != nil {
			return nil, err
		}
		topics, err := cl.ListTopicsWithInternal(ctx, topic)
		if err != nil {
			return nil, err
		}
		t := topics[topic]
		if t.Err != nil {
			if numbers == nil {
				return nil, refusedBy(kerr.UnknownTopicOrPartition, "")
			}
			t.Partitions = nil
		}
		if numbers == nil {
			numbers = t.Partitions.Numbers()
		}
		for _, n := range numbers {
			tp := topicPartition{topic, n}
			if _, ok := t.Partitions[n]; !ok {
				missing = append(missing, tp)
			}
			out = append(out, tp)
		}
	}
	if len(missing) > 0 {
		var names []string
		for _, tp := range missing {
			names = append(names, tp.dashed())
		}
		return nil, fmt.Errorf("The partitions \"%s\" do not exist", strings.Join(names, ",")) //nolint:staticcheck // Kafka's words
	}
	slices.SortFunc(out, compareTopicPartition)
	return slices.Compact(out), nil
}

// plan works out where each partition goes. What lies outside the log is put to its
// nearest end, and warned about on warn (F111).
func (to resetTo) plan(ctx context.Context, cl *client.Admin, group string, where []topicPartition, warn io.Writer) (map[topicPartition]int64, error) {
	want := map[topicPartition]int64{}
	var commits map[topicPartition]kadm.Offset
	var err error
	if to.kind == 's' || to.kind == 'c' {
		if commits, err = committedOffsets(ctx, cl, group); err != nil {
			return nil, err
		}
	}
	if to.kind == 'f' {
		want = to.groups[group]
		where = sortedPartitions(want)
	}
	starts, ends, err := bounds(ctx, cl, where)
	if err != nil {
		return nil, err
	}
	var since map[topicPartition]listedAt
	if to.kind == 't' {
		if since, err = listOffsets(ctx, cl, where, to.n); err != nil {
			return nil, err
		}
	}
	for _, tp := range where {
		commit, has := commits[tp]
		switch {
		case to.kind == 'e':
			want[tp] = starts[tp].offset
		case to.kind == 'l':
			want[tp] = ends[tp].offset
		case to.kind == 'o':
			want[tp] = to.n
		case to.kind == 't' && since[tp].err == nil && since[tp].offset >= 0:
			want[tp] = since[tp].offset
		case to.kind == 't':
			fmt.Fprintf(warn, "\nWarn: Partition %d from topic %s is empty. Falling back to latest known offset.\n", tp.Partition, tp.Topic)
			want[tp] = ends[tp].offset
		case to.kind == 's' && !has:
			return nil, script.Usagef("Cannot shift offset for partition %s since there is no current committed offset", tp.dashed())
		case to.kind == 's':
			want[tp] = commit.At + to.n
		case to.kind == 'c' && has:
			want[tp] = commit.At
		case to.kind == 'c':
			want[tp] = ends[tp].offset
		}
		want[tp] = clamp(tp, want[tp], starts[tp].offset, ends[tp].offset, warn)
	}
	return want, nil
}

func clamp(tp topicPartition, at, start, end int64, warn io.Writer) int64 {
	switch {
	case at > end:
		fmt.Fprintf(warn, "WARN New offset (%d) is higher than latest offset for topic partition %s. Value will be set to %d.\n", at, tp.dashed(), end)
		return end
	case at < start:
		fmt.Fprintf(warn, "WARN New offset (%d) is lower than earliest offset for topic partition %s. Value will be set to %d.\n", at, tp.dashed(), start)
		return start
	}
	return at
}

func bounds(ctx context.Context, cl *client.Admin, where []topicPartition) (starts, ends map[topicPartition]listedAt, err error) {
	if starts, err = listOffsets(ctx, cl, where, atEarliest); err != nil {
		return nil, nil, err
	}
	if ends, err = listOffsets(ctx, cl, where, atLatest); err != nil {
		return nil, nil, err
	}
	for _, tp := range where {
		for _, at := range []listedAt{starts[tp], ends[tp]} {
			if at.err != nil {
				return nil, nil, fmt.Errorf("%s: %w", tp.dashed(), at.err)
			}
		}
	}
	return starts, ends, nil
}

// commitOffsets writes offsets for a group without members.
func commitOffsets(ctx context.Context, cl *client.Admin, group string, at map[topicPartition]int64) error {
	if len(at) == 0 {
		return nil
	}
	offsets := kadm.Offsets{}
	for tp, offset := range at {
		offsets.AddOffset(tp.Topic, tp.Partition, offset, -1)
	}
	return cl.CommitAllOffsets(ctx, group, offsets)
}
