package record

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What Apache Kafka 4.3.1's own classes make of one commit and one group, in
// every version of the values.
var kafka = map[string]string{
	"commit key": "000100016700066f726465727300000007",
	"group key":  "0002000167",
	"commit 0":   "000000000000075bcd1500046d6574610000018bcfe56800",
	"commit 1":   "000100000000075bcd1500046d6574610000018bcfe568000000018bcfe57b88",
	"commit 2":   "000200000000075bcd1500046d6574610000018bcfe56800",
	"commit 3":   "000300000000075bcd150000000900046d6574610000018bcfe56800",
	"commit 4":   "000400000000075bcd1500000009056d6574610000018bcfe568000100100102030405060708090a0b0c0d0e0f10",
	"group 0":    "00000008636f6e73756d657200000005000572616e676500056170702d310000000100056170702d31000361707000092f31302e302e302e31000027100000000201020000000103",
	"group 1":    "00010008636f6e73756d657200000005000572616e676500056170702d310000000100056170702d31000361707000092f31302e302e302e3100007530000027100000000201020000000103",
	"group 2":    "00020008636f6e73756d657200000005000572616e676500056170702d310000018bcfe568000000000100056170702d31000361707000092f31302e302e302e3100007530000027100000000201020000000103",
	"group 3":    "00030008636f6e73756d657200000005000572616e676500056170702d310000018bcfe568000000000100056170702d31000169000361707000092f31302e302e302e3100007530000027100000000201020000000103",
	"group 4":    "000409636f6e73756d6572000000050672616e6765066170702d310000018bcfe5680002066170702d310269046170700a2f31302e302e302e31000075300000271003010202030000",
	"empty 3":    "00030008636f6e73756d657200000006ffffffff0000018bcfe5680000000000",
}

func golden(t *testing.T, name string) []byte {
	t.Helper()
	b, err := hex.DecodeString(kafka[name])
	if err != nil || len(b) == 0 {
		t.Fatalf("%s: %v", name, err)
	}
	return b
}

func testCommit() Commit {
	return Commit{Offset: 123456789, LeaderEpoch: 9, Metadata: "meta", At: 1700000000000, Expires: None, TopicID: [16]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}}
}

func testGroup() Group {
	instance := "i"
	return Group{ProtocolType: "consumer", Generation: 5, Protocol: "range", Leader: "app-1", Since: 1700000000000, Members: []Member{{
		ID: "app-1", Instance: &instance, ClientID: "app", ClientHost: "/10.0.0.1", RebalanceMs: 30000, SessionMs: 10000, Subscription: []byte{1, 2}, Assignment: []byte{3},
	}}}
}

// Claim: what we write is byte for byte what Kafka 4.3 writes, in the versions
// that it chooses.
// Method: golden bytes.
func TestRecordsAreKafkas(t *testing.T) {
	commit, group := testCommit(), testGroup()
	expiring := commit
	expiring.Expires = 1700000005000
	for name, r := range map[string]Record{"commit 4": OfCommitted("g", "orders", 7, &commit), "commit 1": OfCommitted("g", "orders", 7, &expiring), "group 3": OfState("g", &group)} {
		key := golden(t, name[:len(name)-1]+"key")
		if !bytes.Equal(r.Key, key) || !bytes.Equal(r.Value, golden(t, name)) {
			t.Errorf("%s: %x = %x", name, r.Key, r.Value)
		}
	}
	empty := Group{ProtocolType: "consumer", Generation: 6, Since: 1700000000000}
	if r := OfState("g", &empty); !bytes.Equal(r.Value, golden(t, "empty 3")) {
		t.Errorf("empty group: %x", r.Value)
	}
	for name, r := range map[string]Record{"commit key": CommitEnd("g", "orders", 7), "group key": StateEnd("g")} {
		if !bytes.Equal(r.Key, golden(t, name)) || r.Value != nil {
			t.Errorf("end of %s: %x = %x", name, r.Key, r.Value)
		}
	}
}

// Claim: every version that Kafka ever wrote is read, with what that version
// does not tell filled in as Kafka fills it.
// Method: golden bytes.
func TestAllVersionsAreRead(t *testing.T) {
	for version, name := range []string{"commit 0", "commit 1", "commit 2", "commit 3", "commit 4"} {
		want := testCommit()
		if version < 4 {
			want.TopicID = [16]byte{}
		}
		if version < 3 {
			want.LeaderEpoch = -1
		}
		if version == 1 {
			want.Expires = 1700000005000
		}
		got, err := ParseCommit(golden(t, name))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
	for version, name := range []string{"group 0", "group 1", "group 2", "group 3", "group 4"} {
		want := testGroup()
		if version < 3 {
			want.Members[0].Instance = nil
		}
		if version < 2 {
			want.Since = None
		}
		if version < 1 {
			want.Members[0].RebalanceMs = want.Members[0].SessionMs
		}
		got, err := ParseGroup(golden(t, name))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
	for name, want := range map[string]Key{"commit key": {Kind: OfCommit, Group: "g", Topic: "orders", Partition: 7}, "group key": {Kind: OfGroup, Group: "g"}} {
		if got, err := ParseKey(golden(t, name)); err != nil || got != want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	old := golden(t, "commit key")
	old[1] = 0
	if got, err := ParseKey(old); err != nil || got != (Key{Kind: OfCommit, Group: "g", Topic: "orders", Partition: 7}) {
		t.Errorf("key version 0: %+v, %v", got, err)
	}
}

// Claim: bytes that are cut off, or of an unknown version, are errors; never a
// panic, never half a value; keys of other protocols are no errors.
// Method: every prefix of every golden value; other versions.
func TestBrokenRecords(t *testing.T) {
	for name := range kafka {
		whole := golden(t, name)
		for n := range len(whole) {
			cut := whole[:n]
			var err error
			switch name[:3] {
			case "com":
				if name == "commit key" {
					_, err = ParseKey(cut)
				} else {
					_, err = ParseCommit(cut)
				}
			default:
				if name == "group key" {
					_, err = ParseKey(cut)
				} else {
					_, err = ParseGroup(cut)
				}
			}
			if err == nil {
				t.Errorf("%s cut to %d bytes is no error", name, n)
			}
		}
	}
	if _, err := ParseCommit([]byte{0, 5}); err == nil {
		t.Error("a commit of version 5 is no error")
	}
	if _, err := ParseGroup([]byte{0xff, 0xff}); err == nil {
		t.Error("a group of version -1 is no error")
	}
	if k, err := ParseKey([]byte{0, 17, 1, 2, 3}); err != nil || k.Kind != Other {
		t.Errorf("a key of another protocol: %+v, %v", k, err)
	}
}
