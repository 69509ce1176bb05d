package znode

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

// node reads a node's data and writes it again; known is false for paths that hold nothing of ours.
func node(path string, data []byte) (out []byte, known bool, err error) {
	has := func(prefix string) bool { return strings.HasPrefix(path, prefix+"/") }
	switch {
	case has(BrokerIDs):
		b, err := DecodeBroker(data)
		return b.Encode(), true, err
	case has(Topics) && strings.HasSuffix(path, "/state"):
		s, err := DecodeState(data)
		return s.Encode(), true, err
	case has(Topics):
		t, err := DecodeTopic(data)
		return t.Encode(), true, err
	case has(ConfigChanges):
		entity, err := DecodeChange(data)
		return EncodeChange(entity), true, err
	case has("/config"):
		config, err := DecodeConfig(data)
		return EncodeConfig(config), true, err
	case path == ControllerPath:
		c, err := DecodeController(data)
		return c.Encode(), true, err
	case path == ControllerEpochPath:
		_, err := Number(path, data)
		return data, true, err
	case path == ClusterIDPath:
		id, err := DecodeClusterID(data)
		return EncodeClusterID(id), true, err
	case path == FeaturePath:
		f, err := DecodeFeature(data)
		return f.Encode(), true, err
	case path == ProducerIDBlock:
		b, err := DecodeProducerBlock(data)
		return b.Encode(), true, err
	case path == ReassignPartitions, path == PreferredElection, has(ISRChanges):
		list, err := DecodePartitions(data)
		return EncodePartitions(list), true, err
	case has(LogDirEvents):
		e, err := DecodeLogDirEvent(data)
		return e.Encode(), true, err
	case has(ACLChanges), has(ACLExtendedChanges):
		c, err := DecodeACLChange(data)
		return c.Encode(), true, err
	case has(ACLLiteral), has(ACLExtended):
		list, err := DecodeACLs(data)
		return EncodeACLs(list), true, err
	}
	return nil, false, nil
}

var dumped = regexp.MustCompile(`^(?:[-+] |Created |DataChanged )?(/\S*)(?: ephemeral)? v\d+(?: c\S+)? = (.*)$`)

// Claim: what Kafka 3.9 has written is read, and written again byte for byte. Only within a node of settings the order of keys is ours.
// Method: every line with data of a real dump: trees and changes.
func TestKafkasNodesAreWrittenAsKafkaDoes(t *testing.T) {
	file, err := os.ReadFile("testdata/kafka-3.9.2.txt")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, line := range strings.Split(string(file), "\n") {
		m := dumped.FindStringSubmatch(line)
		if m == nil || m[2] == "null" || m[2] == "(empty)" {
			continue
		}
		path, data := m[1], []byte(m[2])
		got, known, err := node(path, data)
		if !known || err != nil {
			t.Errorf("%s: known %v, %v", path, known, err)
			continue
		}
		kinds[strings.SplitN(path, "/", 4)[1]]++
		if strings.HasPrefix(path, "/config/") {
			got, data = sorted(t, got), sorted(t, data)
		}
		if !bytes.Equal(got, data) {
			t.Errorf("%s\nkafka %s\nours  %s", path, data, got)
		}
	}
	for _, kind := range []string{"brokers", "config", "controller", "controller_epoch", "cluster", "feature", "latest_producer_id_block", "admin", "kafka-acl", "kafka-acl-changes", "kafka-acl-extended", "kafka-acl-extended-changes"} {
		if kinds[kind] == 0 {
			t.Errorf("the dump has no node of /%s", kind)
		}
	}
}

func sorted(t *testing.T, data []byte) []byte {
	t.Helper()
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	out, _ := json.Marshal(v)
	return out
}

// Claim: older versions of nodes, and fields nobody knows, are read; what is missing or of the wrong kind is refused with a text that names it.
// Method: a table.
func TestOldUnknownAndWrongNodes(t *testing.T) {
	for _, c := range []struct{ path, data, want string }{ // want: what is written again, or a part of the error after "!"
		{"/brokers/topics/t", `{"version":1,"partitions":{"1":[2],"0":[1,2]}}`, `{"partitions":{"0":[1,2],"1":[2]},"adding_replicas":{},"removing_replicas":{},"version":3}`},
		{"/brokers/topics/t", `{"version":3,"partitions":{"0":[1]},"topic_id":"x"}`, `!id "x" is malformed`},
		{"/brokers/topics/t", `{"version":3,"partitions":{"1":[1]}}`, `!partition 0 of 1 has no replicas`},
		{"/brokers/topics/t", `{"version":3,"partitions":{"-1":[1]}}`, `!"-1" is no partition`},
		{"/brokers/topics/t", `{"version":4,"partitions":{"0":[1]}}`, `!version is 4`},
		{"/brokers/topics/t", `{"version":3}`, `!"partitions" is missing`},
		{"/brokers/topics/t", ``, `!no data`},
		{"/brokers/topics/t/partitions/0/state", `{"controller_epoch":9,"leader":-1,"version":1,"leader_epoch":3,"isr":[],"new":{"a":1},"leader_recovery_state":1}`, `{"controller_epoch":9,"leader":-1,"version":1,"leader_epoch":3,"isr":[],"leader_recovery_state":1}`},
		{"/brokers/topics/t/partitions/0/state", `{"controller_epoch":9,"leader":"1","leader_epoch":3,"isr":[]}`, `!cannot unmarshal string`},
		{"/brokers/topics/t/partitions/0/state", `{"controller_epoch":9,"leader":1,"leader_epoch":3}`, `!"isr" is missing`},
		{"/brokers/topics/t/partitions/0/state", `{"controller_epoch":9,"leader":1,"leader_epoch":99999999999,"isr":[]}`, `!cannot unmarshal number`},
		{"/brokers/ids/1", `{"version":1,"host":"h","port":9092,"jmx_port":-1}`, `{"features":{},"endpoints":["PLAINTEXT://h:9092"],"jmx_port":-1,"port":9092,"host":"h","version":5,"timestamp":"0"}`},
		{"/brokers/ids/1", `{"version":2,"endpoints":["SSL://[::1]:9093"],"host":null,"port":-1,"timestamp":"7"}`, `{"features":{},"endpoints":["SSL://[::1]:9093"],"jmx_port":0,"port":-1,"host":null,"version":5,"timestamp":"7"}`},
		{"/brokers/ids/1", `{"version":5,"endpoints":["nothing"]}`, `!is not NAME://host:port`},
		{"/brokers/ids/1", `{"version":5,"endpoints":["A://h:70000"]}`, `!port "70000"`},
		{"/controller", `{"version":1,"brokerid":4,"timestamp":"5"}`, `{"version":2,"brokerid":4,"timestamp":"5","kraftControllerEpoch":-1}`},
		{"/config/topics/t", `{"version":1,"config":{"<a&b>":"\"é"}}`, `{"version":1,"config":{"<a&b>":"\"é"}}`},
		{"/config/topics/t", `{"version":1}`, `!"config" is missing`},
		{"/config/changes/config_change_0000000000", `{"version":1,"entity_type":"topics","entity_name":"t"}`, `{"version":2,"entity_path":"topics/t"}`},
		{"/config/changes/config_change_0000000000", `{"version":2,"entity_path":"topics"}`, `!is not type/name`},
		{"/latest_producer_id_block", `{"version":1,"broker":0,"block_start":"9","block_end":"8"}`, `!"9" to "8"`},
		{"/log_dir_event_notification/log_dir_event_0000000000", `{"version":1,"broker":3,"event":1}`, `{"version":1,"broker":3,"event":1}`},
		{"/isr_change_notification/isr_change_0000000000", `{"version":1,"partitions":[{"topic":"t","partition":0}]}`, `{"version":1,"partitions":[{"topic":"t","partition":0}]}`},
		{"/feature", `{"version":1,"status":1,"features":{"x":{"min_version_level":1,"max_version_level":2}}}`, `{"features":{"x":{"max_version_level":2}},"version":2,"status":1}`},
		{"/cluster/id", `{"version":"1","id":""}`, `!is empty`},
		{"/controller_epoch", `x`, `!"x" is not a number`},
	} {
		out, _, err := node(c.path, []byte(c.data))
		if wrong, isWrong := strings.CutPrefix(c.want, "!"); isWrong {
			if err == nil || !strings.Contains(err.Error(), wrong) {
				t.Errorf("%s %s: %v, want %s", c.path, c.data, err, wrong)
			}
		} else if err != nil || string(out) != c.want {
			t.Errorf("%s %s\n%s (%v), want\n%s", c.path, c.data, out, err, c.want)
		}
	}
}

// Claim: names of users and clients become parts of paths and come back, as Kafka writes them.
func TestNamesInPaths(t *testing.T) {
	for name, want := range map[string]string{"a b": "a%20b", "u*": "u%2A", "<default>": "%3Cdefault%3E", "x/y+z~": "x%2Fy%2Bz%7E", "ü": "%C3%BC", "A-z_0.9": "A-z_0.9"} {
		back, err := Desanitize(Sanitize(name))
		if Sanitize(name) != want || err != nil || back != name {
			t.Errorf("%q: %s, want %s; back %q, %v", name, Sanitize(name), want, back, err)
		}
	}
}

// FuzzNodes: no node of a damaged tree makes us panic, and what is read can be written.
func FuzzNodes(f *testing.F) {
	for _, path := range []string{"/brokers/ids/1", "/brokers/topics/t", "/brokers/topics/t/partitions/0/state", "/config/topics/t", "/config/changes/c", "/controller", "/feature", "/cluster/id", "/latest_producer_id_block", "/admin/reassign_partitions", "/kafka-acl/Topic/t", "/kafka-acl-changes/c"} {
		f.Add(path, []byte(`{"version":1,"partitions":{"0":[1]},"config":{},"endpoints":["A://b:1"]}`))
	}
	f.Fuzz(func(t *testing.T, path string, data []byte) {
		if out, known, err := node(path, data); known && err == nil {
			if _, _, err := node(path, out); err != nil && !bytes.Contains(data, []byte("topic_id")) {
				t.Errorf("%s: %s was read, but not what it was written as: %s: %v", path, data, out, err)
			}
		}
	})
}
