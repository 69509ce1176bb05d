package sweep

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/wire"
)

func metadata(change func(r *kmsg.MetadataResponse)) kmsg.Response {
	r := kmsg.NewPtrMetadataResponse()
	r.SetVersion(13)
	r.Brokers = []kmsg.MetadataResponseBroker{{NodeID: 1, Host: "a", Port: 1}}
	for _, name := range []string{"x", "y"} {
		t := kmsg.NewMetadataResponseTopic()
		t.Topic, t.TopicID = ptr(name), [16]byte{1, name[0]}
		t.Partitions = []kmsg.MetadataResponseTopicPartition{{Partition: 0, Leader: 1, Replicas: []int32{1}, ISR: []int32{1}}}
		r.Topics = append(r.Topics, t)
	}
	change(r)
	return r
}

// Claim: a difference in any value, code, element or message is found where it is; what is each broker's own, and order, are not
// differences.
// Method: one change to a Metadata answer at a time, compared with the answer as it was.
func TestDifferencesAreFoundWhereTheyAre(t *testing.T) {
	type r = *kmsg.MetadataResponse
	for name, try := range map[string]struct {
		change func(r r)
		want   string // path, and values; "" none
		codes  string // the same where only codes count
	}{
		"nothing":      {change: func(r r) {}},
		"an address":   {change: func(r r) { r.Brokers[0].Host, r.Brokers[0].Port = "b", 9 }},
		"no address":   {change: func(r r) { r.Brokers[0].Port = 0 }, want: "Brokers[1].Port: some/none"},
		"a throttle":   {change: func(r r) { r.ThrottleMillis = 5 }},
		"the order":    {change: func(r r) { slices.Reverse(r.Topics) }},
		"an id":        {change: func(r r) { r.Topics[0].TopicID = [16]byte{7} }},
		"no id":        {change: func(r r) { r.Topics[0].TopicID = [16]byte{} }, want: "Topics[x].TopicID: an id/none"},
		"a code":       {change: func(r r) { r.Topics[1].ErrorCode = 3 }, want: "Topics[y].ErrorCode: 0/3", codes: "Topics[y].ErrorCode: 0/3"},
		"a deep code":  {change: func(r r) { r.Topics[1].Partitions[0].ErrorCode = 5 }, want: "Topics[y].Partitions[0].ErrorCode: 0/5", codes: "Topics[y].Partitions[0].ErrorCode: 0/5"},
		"a leader":     {change: func(r r) { r.Topics[0].Partitions[0].Leader = 2 }, want: "Topics[x].Partitions[0].Leader: 1/2"},
		"null":         {change: func(r r) { r.ClusterID = ptr("c") }, want: "ClusterID: null/some"},
		"a replica":    {change: func(r r) { r.Topics[0].Partitions[0].ISR = nil }, want: "Topics[x].Partitions[0].ISR: [1]/null"},
		"one too few":  {change: func(r r) { r.Topics = r.Topics[:1] }, want: "Topics.length: 2/1 Topics[y]: present/absent", codes: ""},
		"one too many": {change: func(r r) { r.Topics = append(r.Topics, r.Topics[1]) }, want: "Topics.length: 2/3 Topics[y#2]: absent/present", codes: ""},
	} {
		ours, kafka := flatten(metadata(func(r) {}), nil), flatten(metadata(try.change), nil)
		if got := lines(differences(ours, kafka, false)); got != try.want {
			t.Errorf("%s: %q, want %q", name, got, try.want)
		}
		if try.want == "" || try.codes != "" {
			if got := lines(differences(ours, kafka, true)); got != try.codes {
				t.Errorf("%s, codes alone: %q, want %q", name, got, try.codes)
			}
		}
	}
}

func lines(all []difference) string {
	var s []string
	for _, d := range all {
		s = append(s, d.path+": "+d.ours+"/"+d.kafka)
	}
	return strings.Join(s, " ")
}

// Claim: a message that Kafka has must be there, in whatever words; one that only we have is no difference.
func TestMessagesMustBeThere(t *testing.T) {
	answer := func(message *string) map[string]string {
		r := kmsg.NewPtrElectLeadersResponse()
		p := kmsg.NewElectLeadersResponseTopicPartition()
		p.ErrorMessage = message
		r.Topics = []kmsg.ElectLeadersResponseTopic{{Topic: "t", Partitions: []kmsg.ElectLeadersResponseTopicPartition{p}}}
		return flatten(r, nil)
	}
	for _, try := range []struct {
		ours, kafka *string
		differs     bool
	}{{nil, nil, false}, {ptr("a"), ptr("b"), false}, {ptr("a"), nil, false}, {nil, ptr("b"), true}, {ptr(""), ptr("b"), true}, {nil, ptr(""), false}} {
		if got := differences(answer(try.ours), answer(try.kafka), false); (len(got) > 0) != try.differs {
			t.Errorf("%v beside %v: %v", try.ours, try.kafka, got)
		}
	}
}

// Claim: strict decoding takes the bytes of an answer and nothing else: not one byte more or less, no tagged field that the
// version lacks, no null where none may be, no missing tags in the header.
func TestStrictDecoding(t *testing.T) {
	req := kmsg.NewPtrMetadataRequest()
	req.SetVersion(9)
	answer := metadata(func(r *kmsg.MetadataResponse) { r.SetVersion(9) })
	good := answer.AppendTo(nil)
	if _, err := strictly(req, good); err != nil {
		t.Fatal(err)
	}
	tagged := metadata(func(r *kmsg.MetadataResponse) { r.SetVersion(9); r.UnknownTags.Set(9, []byte("?")) })
	null := slices.Clone(good)
	if null[4] != 2 { // one broker: the count of a compact array
		t.Fatalf("the fifth byte is %d", null[4])
	}
	null = append(append(slices.Clone(good[:4]), 0), good[len(good)-len(good)+5:]...)
	for name, bad := range map[string][]byte{"a byte more": append(slices.Clone(good), 0), "a byte less": good[:len(good)-1], "a tagged field": tagged.AppendTo(nil), "null brokers": null} {
		if _, err := strictly(req, bad); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	frame := func(b ...byte) []byte { return append(binary.BigEndian.AppendUint32(nil, 1), b...) }
	if b, err := headerOff(frame(0, 7), req); err != nil || len(b) != 1 {
		t.Errorf("a flexible header: % x, %v", b, err)
	}
	for name, bad := range map[string][]byte{"a header without tags": frame(), "a header with a tag": frame(1, 0, 0)} {
		if _, err := headerOff(bad, req); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

// Claim: an intended difference is let through only as it is described, and one that no longer occurs is told.
func TestIntendedDifferencesAreExactAndNeeded(t *testing.T) {
	before := intended
	defer func() { intended = before }()
	intended = compile([]Intended{{API: wire.KeyMetadata, Step: "s: one", Path: `Topics\[.*\]\.ErrorCode`, Ours: "3", Kafka: "17", Why: "w"}})
	asked := outcome{story: "s", step: "one", key: wire.KeyMetadata}
	j := newJudge()
	if j.stale(); len(j.found) != 1 {
		t.Errorf("an entry that nothing needed: %v", j.found)
	}
	for want, d := range map[difference]bool{{"Topics[a].ErrorCode", "3", "17"}: true, {"Topics[a].ErrorCode", "3", "5"}: false, {"ErrorCode", "3", "17"}: false} {
		if got := newJudge().excused(asked, want); got != d {
			t.Errorf("%v: excused %t", want, got)
		}
	}
	asked.step = "two"
	if newJudge().excused(asked, difference{"Topics[a].ErrorCode", "3", "17"}) {
		t.Error("another step was excused")
	}
}

// Claim: every advertised version needs an answer, and every API of Kafka's is either served or listed.
func TestCoverage(t *testing.T) {
	before := NotBuilt
	defer func() { NotBuilt = before }()
	NotBuilt = map[int16]string{30: "why", 31: "why"}
	told := []outcome{{key: 3, version: 0, resp: kmsg.NewPtrMetadataResponse()}, {key: 3, version: 1, resp: kmsg.NewPtrMetadataResponse()}}
	j := newJudge()
	j.coverage(map[int16]span{3: {0, 2}, 30: {0, 0}}, map[int16]span{3: {0, 3}, 29: {1, 3}, 30: {0, 0}}, told)
	slices.Sort(j.found)
	for _, want := range []string{"Metadata v2 is advertised", "API 30 (CreateAcls) v0 is advertised", "Metadata: Millrace's newest version is 2, Kafka's 3", "API 29 (DescribeAcls): Kafka advertises it, Millrace does not", "API 30 (CreateAcls): it is in the table of what is not built, and Millrace advertises it", "API 31 (DeleteAcls): it is in the table of what is not built, and Kafka does not"} {
		if !slices.ContainsFunc(j.found, func(s string) bool { return strings.HasPrefix(s, want) }) {
			t.Errorf("not told: %s in\n%s", want, strings.Join(j.found, "\n"))
		}
	}
	if len(j.found) != 6 {
		t.Errorf("%d lines:\n%s", len(j.found), strings.Join(j.found, "\n"))
	}
}

// Claim: the stories ask every API that is advertised.
func TestEveryAPIHasAStory(t *testing.T) {
	asked := map[int16]bool{}
	for _, s := range allStories() {
		for _, p := range s.steps {
			if p.build != nil {
				asked[keyOf(p)] = true
			}
		}
	}
	for _, a := range wire.APIs {
		if !asked[a.Key] {
			t.Errorf("no story asks %s", a.Name)
		}
	}
}
