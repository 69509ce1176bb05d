package embedded

import (
	"encoding/hex"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Claim: subscriptions of every version are read, also of ones to come, and
// with topics in order; cut off or of a version that cannot be, they are errors.
// Method: bytes written out by hand from Kafka's schema; every prefix.
func TestSubscriptions(t *testing.T) {
	const topics = "00000003" + "00017a" + "000161" + "00017a"
	const data = "00000001" + "ff"
	const owned = "00000001" + "000161" + "00000002" + "00000004" + "00000005"
	rack := "r"
	has := []Topic{{"a", []int32{4, 5}}}
	for hexed, want := range map[string]Subscription{
		"0000" + topics + data:                                              {Version: 0, Topics: []string{"a", "z"}},
		"0001" + topics + data + owned:                                      {Version: 1, Topics: []string{"a", "z"}, Owned: has},
		"0002" + topics + data + owned + "00000007":                         {Version: 2, Topics: []string{"a", "z"}, Owned: has},
		"0003" + topics + data + owned + "00000007" + "000172":              {Version: 3, Topics: []string{"a", "z"}, Owned: has, Rack: &rack},
		"0009" + topics + data + owned + "00000007" + "000172" + "cafebabe": {Version: 9, Topics: []string{"a", "z"}, Owned: has, Rack: &rack},
	} {
		b, _ := hex.DecodeString(hexed)
		got, err := ParseSubscription(b)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("version %d: %v\n%s", want.Version, err, diff)
		}
		for n := range b {
			if want.Version < 9 || n < len(b)-4 {
				if _, err := ParseSubscription(b[:n]); err == nil {
					t.Errorf("version %d cut to %d bytes is taken", want.Version, n)
				}
			}
		}
	}
	b, _ := hex.DecodeString("ffff" + topics + data)
	if _, err := ParseSubscription(b); err == nil {
		t.Error("version -1 is taken")
	}
}

// Claim: assignments come back as they were written, in the version that the
// member knows; no bytes are no partitions.
// Method: write and read; bytes by hand; every prefix.
func TestAssignments(t *testing.T) {
	topics := []Topic{{"a", []int32{4, 5}}, {"z", []int32{0}}}
	b := FormatAssignment(7, topics)
	const want = "0003" + "00000002" + "000161" + "00000002" + "00000004" + "00000005" + "00017a" + "00000001" + "00000000" + "ffffffff"
	if got := hex.EncodeToString(b); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	a, err := ParseAssignment(b)
	if diff := cmp.Diff(Assignment{Topics: topics}, a); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	for n := 1; n < len(b); n++ {
		if _, err := ParseAssignment(b[:n]); err == nil {
			t.Errorf("cut to %d bytes it is taken", n)
		}
	}
	if a, err := ParseAssignment(nil); err != nil || a.Topics != nil {
		t.Errorf("nothing: %+v, %v", a, err)
	}
}
