package znode

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// encode is JSON as Kafka writes it: no spaces, no escapes for HTML.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("znode: %T cannot be written: %v", v, err)) // our own types have no such values
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// decode reads a node's JSON into v. required are the keys that must be there.
func decode(what string, data []byte, v any, required ...string) error {
	if len(data) == 0 {
		return fmt.Errorf("%s: no data", what)
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(data, &keys); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	for _, key := range required {
		if raw, ok := keys[key]; !ok || string(raw) == "null" {
			return fmt.Errorf("%s: %q is missing", what, key)
		}
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func checkVersion(what string, got, least, most int) error {
	if got < least || got > most {
		return fmt.Errorf("%s: version is %d, known are %d to %d", what, got, least, most)
	}
	return nil
}

// replicaMap is replicas by partition, written by ascending number.
type replicaMap map[int32][]int32

func (m replicaMap) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, p := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"%d":%s`, p, ints(m[p]))
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func (m *replicaMap) UnmarshalJSON(data []byte) error {
	var raw map[string][]int32
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	*m = make(replicaMap, len(raw))
	for key, replicas := range raw {
		p, err := strconv.ParseInt(key, 10, 32)
		if err != nil || p < 0 {
			return fmt.Errorf("%q is no partition", key)
		}
		(*m)[int32(p)] = replicas
	}
	return nil
}

// ints writes a list of numbers; nil is an empty one.
func ints(list []int32) []byte {
	b := []byte{'['}
	for i, n := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(n), 10)
	}
	return append(b, ']')
}

// intList is a list that is never null.
type intList []int32

func (l intList) MarshalJSON() ([]byte, error) { return ints(l), nil }

var errNotText = errors.New("is not a number")

// Number reads a node that is a decimal text, as /controller_epoch.
func Number(what string, data []byte) (int32, error) {
	n, err := strconv.ParseInt(string(data), 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%s: %q %w", what, data, errNotText)
	}
	return int32(n), nil
}
