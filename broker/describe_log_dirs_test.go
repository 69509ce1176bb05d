package broker

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/engine/batch"
	"millrace/wire"
)

func itoa(n int32) string { return strconv.Itoa(int(n)) }

// told is an answer as text: directory, then topic-partition=size.
func told(r *kmsg.DescribeLogDirsResponse) (out []string) {
	for _, d := range r.Dirs {
		line := filepath.Base(d.Dir) + ":"
		for _, topic := range d.Topics {
			for _, p := range topic.Partitions {
				line += fmt.Sprintf(" %s-%d=%d", topic.Topic, p.Partition, p.Size)
				if p.OffsetLag != 0 || p.IsFuture {
					line += "?"
				}
			}
		}
		out = append(out, line)
	}
	return out
}

// Claim: in every version all directories are told, with what was asked for in them:
// null asks for everything, an empty list for nothing; from version 4 on with the
// space of their file systems.
// Method: two directories, three partitions, one batch.
func TestDescribeLogDirs(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	b := startBroker(t, "log.dirs="+first+","+second)
	c := dialAdmin(t, b.Broker, "")
	c.createTopic("a", 2)
	c.createTopic("b", 1)
	record := values(batch.None, "v")
	b.mustProduce("a", 1, record)
	size := len(record)
	for version := int16(0); version <= 5; version++ {
		for _, try := range []struct {
			topics []kmsg.DescribeLogDirsRequestTopic
			want   []string
		}{
			{nil, []string{"first: a-0=0 b-0=0", fmt.Sprintf("second: a-1=%d", size)}},
			{[]kmsg.DescribeLogDirsRequestTopic{}, []string{"first:", "second:"}},
			{[]kmsg.DescribeLogDirsRequestTopic{{Topic: "a", Partitions: []int32{1, 7}}, {Topic: "none", Partitions: []int32{0}}}, []string{"first:", fmt.Sprintf("second: a-1=%d", size)}},
		} {
			req := kmsg.NewPtrDescribeLogDirsRequest()
			req.Version, req.Topics = version, try.topics
			r := ask[*kmsg.DescribeLogDirsResponse](c, req)
			if got := told(r); r.ErrorCode != 0 || !slices.Equal(got, try.want) {
				t.Errorf("v%d: %q, want %q", version, got, try.want)
			}
			for _, d := range r.Dirs {
				known := d.UsableBytes > 0 && d.TotalBytes >= d.UsableBytes
				if d.ErrorCode != 0 || !filepath.IsAbs(d.Dir) || known != (version >= 4) || d.IsCordoned {
					t.Errorf("v%d: %+v", version, d)
				}
			}
		}
	}
}

// Claim: a directory that is offline is told as such, with nothing in it; the others
// are told as ever.
// Method: a file in the place of one of two directories.
func TestDescribeOfflineLogDirs(t *testing.T) {
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good"), filepath.Join(dir, "bad")
	if err := os.WriteFile(bad, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b := startBroker(t, "log.dirs="+good+","+bad)
	c := dialAdmin(t, b.Broker, "")
	c.createTopic("a", 1)
	req := kmsg.NewPtrDescribeLogDirsRequest()
	req.Version = 5
	r := ask[*kmsg.DescribeLogDirsResponse](c, req)
	if len(r.Dirs) != 2 || r.Dirs[0].ErrorCode != 0 || len(r.Dirs[0].Topics) != 1 || r.Dirs[1].ErrorCode != wire.ErrKafkaStorageError || r.Dirs[1].TotalBytes != -1 || len(r.Dirs[1].Topics) != 0 {
		t.Errorf("%+v", r)
	}
}
