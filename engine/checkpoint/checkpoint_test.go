package checkpoint

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"millrace/engine/vfs"
)

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func requireContent(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Fatalf("%s:\n got %q, %v\nwant %q", path, got, err, want)
	}
}

// Claim: checkpoint files have Kafka's bytes and read back as they were.
// Method: one file written out by hand.
func TestOffsetsAreKafkas(t *testing.T) {
	path := filepath.Join(t.TempDir(), RecoveryPoints)
	o := Offsets{{"topic.b", 0}: 9, {"a", 10}: 1 << 40, {"a", 2}: 0}
	if err := o.Write(vfs.OS(), path); err != nil {
		t.Fatal(err)
	}
	requireContent(t, path, "0\n3\na 2 0\na 10 1099511627776\ntopic.b 0 9\n")
	if again, err := ReadOffsets(vfs.OS(), path); err != nil || !maps.Equal(again, o) {
		t.Fatal(again, err)
	}
	if none, err := ReadOffsets(vfs.OS(), path+".not"); err != nil || none == nil || len(none) != 0 {
		t.Fatal(none, err)
	}
}

// Claim: a file that makes no sense is an error that names file, line and value, and what came before it is read.
// Method: each kind of nonsense.
func TestNonsenseIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), LogStarts)
	for content, want := range map[string]string{
		"":                          "line 1",
		"1\n0\n":                    `line 1: "1" is not version 0`,
		"0\n":                       "line 2",
		"0\nmany\n":                 `line 2: "many" is not a count`,
		"0\n-1\n":                   `line 2: "-1"`,
		"0\n2\na 0 5\n":             "ends after 1 of 2",
		"0\n1\na 0 5\nb 0 5\n":      `line 4: "b 0 5" is not the end`,
		"0\n2\na 0 5\nb 0\n":        `line 4: "b 0" is not an entry`,
		"0\n2\na 0 5\nb x 1\n":      `line 4: "b x 1"`,
		"0\n2\na 0 5\nb 1 -7\n":     `line 4: "b 1 -7"`,
		"0\n2\na 0 5\nb -1 7\n":     `line 4: "b -1 7"`,
		"0\n2\na 0 5\n\x00\x00\x00": `line 4`,
	} {
		put(t, path, content)
		got, err := ReadOffsets(vfs.OS(), path)
		var format *FormatError
		if !errors.As(err, &format) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v, want %s", content, err, want)
		}
		if strings.Contains(content, "a 0 5") && got[TopicPartition{"a", 0}] != 5 {
			t.Errorf("%q: the good line was lost", content)
		}
	}
	put(t, path, "0\r\n1\r\n\na   0\t5\r\n\n") // an editor was here
	if got, err := ReadOffsets(vfs.OS(), path); err != nil || got[TopicPartition{"a", 0}] != 5 {
		t.Fatal(got, err)
	}
}

// Claim: partition.metadata has Kafka's bytes; what is not one is named.
// Method: written and read back; three kinds of nonsense.
func TestTopicID(t *testing.T) {
	dir := t.TempDir()
	if _, ok, err := ReadTopicID(vfs.OS(), dir); ok || err != nil {
		t.Fatal(ok, err)
	}
	id := [16]byte{0xfb, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0xff}
	for _, unsynced := range []bool{false, true} {
		if err := WriteTopicID(vfs.OS(), dir, id, unsynced); err != nil {
			t.Fatal(err)
		}
		requireContent(t, filepath.Join(dir, PartitionMetadataName), "version: 0\ntopic_id: -wECAwQFBgcICQoLDA0O_w")
	}
	if got, ok, err := ReadTopicID(vfs.OS(), dir); got != id || !ok || err != nil {
		t.Fatal(got, ok, err)
	}
	for _, content := range []string{"", "version: 7\ntopic_id: -wECAwQFBgcICQoLDA0O_w", "version: 0\ntopic_id: short", "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", "version: 0\n"} {
		put(t, filepath.Join(dir, PartitionMetadataName), content)
		if _, ok, err := ReadTopicID(vfs.OS(), dir); ok || err == nil {
			t.Errorf("%q was taken", content)
		}
	}
}

// Claim: meta.properties is written as Kafka 3.9 does with ZooKeeper, both versions are read, and a version-1 file survives a rewrite.
// Method: golden text; a KRaft file with comments and escapes.
func TestMetaProperties(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, MetaName)
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	m := Meta{BrokerID: 3, ClusterID: "abc_-Def0123456789abcd"}
	if err := m.Write(vfs.OS(), dir, now); err != nil {
		t.Fatal(err)
	}
	requireContent(t, path, "#\n#Wed Mar 04 05:06:07 UTC 2026\nbroker.id=3\ncluster.id=abc_-Def0123456789abcd\nversion=0\n")
	if again, ok, err := ReadMeta(vfs.OS(), dir); again != m || !ok || err != nil {
		t.Fatal(again, ok, err)
	}
	put(t, path, "! a comment\n#another\n\nnode.id = 12\nversion: 1\r\ncluster.id=a\\=b\ndirectory.id=AAAAAAAAAAAAAAAAAAAAEQ\nsomething.else=1\n")
	m, ok, err := ReadMeta(vfs.OS(), dir)
	if want := (Meta{Version: 1, BrokerID: 12, ClusterID: "a=b", DirectoryID: "AAAAAAAAAAAAAAAAAAAAEQ"}); m != want || !ok || err != nil {
		t.Fatal(m, ok, err)
	}
	m.Write(vfs.OS(), dir, now)
	requireContent(t, path, "#\n#Wed Mar 04 05:06:07 UTC 2026\ncluster.id=a\\=b\ndirectory.id=AAAAAAAAAAAAAAAAAAAAEQ\nnode.id=12\nversion=1\n")
	for _, content := range []string{"version=2\n", "version=x\n", "broker.id=-3\n", "broker.id=many\n", "directory.id=1\n"} {
		put(t, path, content)
		if _, ok, err := ReadMeta(vfs.OS(), dir); ok || err == nil || !strings.Contains(err.Error(), "line 1") {
			t.Errorf("%q: %v", content, err)
		}
	}
}

// Claim: directories of different brokers or clusters are refused, and the error names both sides.
// Method: agreeing, silent and conflicting directories.
func TestDirectoriesMustAgree(t *testing.T) {
	metas := map[string]Meta{"/a": {BrokerID: 1, ClusterID: "C"}, "/b": {BrokerID: -1, ClusterID: "C"}, "/c": {BrokerID: 2, ClusterID: "C"}, "/d": {BrokerID: 1, ClusterID: "D"}}
	if id, cluster, err := Agree(metas, []string{"/new", "/a", "/b"}, -1, ""); id != 1 || cluster != "C" || err != nil {
		t.Fatal(id, cluster, err)
	}
	for _, c := range []struct {
		dirs    []string
		id      int32
		cluster string
		want    []string
	}{
		{[]string{"/a", "/c"}, -1, "", []string{"/c", "/a", "broker.id 2", "says 1"}},
		{[]string{"/a"}, 7, "", []string{"/a", "the configuration", "broker.id 1", "says 7"}},
		{[]string{"/a", "/d"}, 1, "", []string{"/d", "/a", "cluster.id D", "says C"}},
		{[]string{"/a"}, 1, "E", []string{"/a", "the configuration", "cluster.id C", "says E"}},
	} {
		_, _, err := Agree(metas, c.dirs, c.id, c.cluster)
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v: %v does not say %q", c.dirs, err, want)
			}
		}
	}
}

// Claim: the marker has Kafka's content, is taken once, and Kafka's old empty one counts too.
// Method: mark, take, take again.
func TestCleanMarker(t *testing.T) {
	dir := t.TempDir()
	if err := MarkClean(vfs.OS(), dir, -1); err != nil {
		t.Fatal(err)
	}
	requireContent(t, filepath.Join(dir, CleanName), `{"version":0,"brokerEpoch":-1}`)
	for _, want := range []bool{true, false} {
		if clean, err := TakeClean(vfs.OS(), dir); clean != want || err != nil {
			t.Fatal(clean, err)
		}
	}
	put(t, filepath.Join(dir, CleanName), "")
	if clean, err := TakeClean(vfs.OS(), dir); !clean || err != nil {
		t.Fatal(clean, err)
	}
}
