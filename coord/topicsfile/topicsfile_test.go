package topicsfile

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"millrace/coord"
	"millrace/engine/vfs"
)

const whole = `{"cluster_id":"c","next_producer_id":7000,"topics":[{"name":"a","id":"AQAAAAAAAAAAAAAAAAAAAA","leader_epochs":[3,5],"config":{"retention.ms":"1"}},{"name":"b","id":"AgAAAAAAAAAAAAAAAAAAAA","leader_epochs":[0]}],` +
	`"deleting":[{"name":"gone","id":"AwAAAAAAAAAAAAAAAAAAAA"}],"broker_configs":{"default":{"k":"1"},"2":{"k":"2"}},"group_configs":{"g":{"k":"3"}},"client_metrics":{"m":{"k":"4"}},` +
	`"client_quotas":[{"user":"u","client_id":"","values":{"q":5}}]}`

// fileOf is a file with this state.
func fileOf(t *testing.T, state string) (path string, text []byte) {
	t.Helper()
	sum, err := checksum([]byte(state))
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), Name)
	text = []byte("{\n \"format\": \"" + format + "\",\n \"version\": 1,\n \"crc32c\": \"" + sum + "\",\n \"state\": " + state + "\n}\n")
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return path, text
}

// Claim: all that an earlier build has kept is read.
func TestRead(t *testing.T) {
	path, _ := fileOf(t, whole)
	f, err := Read(vfs.OS(), path)
	if err != nil {
		t.Fatal(err)
	}
	part := coord.QuotaPart{Given: true}
	user := coord.QuotaEntity{User: coord.QuotaPart{Given: true, Name: "u"}, Client: part}
	if f.ClusterID != "c" || f.NextProducerID != 7000 || len(f.Topics) != 2 || f.Topics[0].ID != (coord.ID{1}) || f.Topics[0].Epochs[1] != 5 || f.Topics[0].Config["retention.ms"] != "1" ||
		len(f.Deleting) != 1 || f.Deleting[0].ID != (coord.ID{3}) || f.Defaults["k"] != "1" || f.Brokers[2]["k"] != "2" || f.Groups["g"]["k"] != "3" || f.ClientMetrics["m"]["k"] != "4" || f.Quotas[user]["q"] != 5 {
		t.Errorf("%+v", f)
	}
	if f, err := Read(vfs.OS(), filepath.Join(t.TempDir(), Name)); f != nil || err != nil {
		t.Errorf("no file: %+v, %v", f, err)
	}
}

// Claim: a file that is damaged anywhere, empty, or of another version, stops the start with an error that names it; it is never an empty cluster.
// Method: flip every byte, cut at every length.
func TestADamagedFileStopsTheStart(t *testing.T) {
	path, good := fileOf(t, whole)
	try := func(what string, content []byte) {
		t.Helper()
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
		f, err := Read(vfs.OS(), path)
		var damaged *FileError
		switch {
		case err == nil && f != nil && len(f.Topics) == 2: // white space, or a letter's other case in a key
		case !errors.As(err, &damaged) || !strings.Contains(err.Error(), path):
			t.Errorf("%s: %v", what, err)
		}
	}
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 0x20
		try("flipped", bad)
		bad[i] ^= 0x21
		try("flipped", bad)
		if i < len(good)-2 { // the last are a bracket and a line feed
			try("cut", good[:i])
		}
	}
	try("version 2", bytes.Replace(good, []byte(`"version": 1`), []byte(`"version": 2`), 1))
}

// Claim: a state that somebody wrote wrongly stops the start.
// Method: each rule broken.
func TestAWrongStateStopsTheStart(t *testing.T) {
	for _, state := range []string{
		strings.Replace(whole, `"cluster_id":"c"`, `"cluster_id":""`, 1),
		strings.Replace(whole, "7000", "-1", 1),
		strings.Replace(whole, `"name":"b"`, `"name":"a"`, 1),
		strings.Replace(whole, `"name":"b"`, `"name":"A"`, 1),
		strings.Replace(whole, `"name":"b"`, `"name":"b/c"`, 1),
		strings.Replace(whole, "AgAAAAAAAAAAAAAAAAAAAA", "AQAAAAAAAAAAAAAAAAAAAA", 1),
		strings.Replace(whole, "AgAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAA", 1),
		strings.Replace(whole, "[0]", "[]", 1),
		strings.Replace(whole, `"2":{`, `"02":{`, 1),
		strings.Replace(whole, `"2":{`, `"x":{`, 1),
		strings.Replace(whole, `{"g":`, `{"":`, 1),
		strings.Replace(whole, `{"q":5}`, `{"q":0}`, 1),
		strings.Replace(whole, `{"q":5}`, `{}`, 1),
		strings.Replace(whole, `"user":"u","client_id":"",`, "", 1),
	} {
		if state == whole {
			t.Fatal("nothing is wrong in it")
		}
		path, _ := fileOf(t, state)
		var damaged *FileError
		if _, err := Read(vfs.OS(), path); !errors.As(err, &damaged) {
			t.Errorf("%v: %s", err, state)
		}
	}
}
