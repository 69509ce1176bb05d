package sweep

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// naming are the fields that tell elements of an array apart: an array is compared by them, not by its order.
var naming = []string{"Topic", "TopicID", "ResourceType", "ResourceName", "Name", "Type", "EntityType", "EntityName", "Key", "ApiKey", "Partition", "Group", "NodeID", "InstanceID", "Component", "Entity", "Dir", "MemberAssignment"}

// ignored are fields that say nothing about compatibility.
var ignored = []string{"Version", "UnknownTags", "ThrottleMillis", "Documentation", "ConfigSynonyms"}

// presence are fields whose values are each broker's own: only whether there is one is compared.
var presence = []string{"Host", "Port", "ClusterID", "MemberID", "LeaderID", "SessionID", "ProducerID", "Dir", "TotalBytes", "UsableBytes", "Size", "ClientInstanceID", "LogAppendTime", "LastTimestamp", "IncarnationID",
	"MemberEpoch", "Epoch", "AssignmentEpoch", "FinalizedFeaturesEpoch"}

// messages are texts for people: where Kafka has one we have one too, in our own words.
var messages = []string{"ErrorMessage", "ErrMessage"}

// flatten turns an answer into lines "Topics[t].Partitions[0].ErrorCode" → value.
func flatten(r kmsg.Response, names map[[16]byte]string) map[string]string {
	flat := map[string]string{}
	f := flattener{flat, names}
	f.value("", "", reflect.ValueOf(r).Elem())
	return flat
}

type flattener struct {
	flat  map[string]string
	names map[[16]byte]string // topics by id
}

func (f flattener) value(path, field string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			name := v.Type().Field(i).Name
			if slices.Contains(ignored, name) || !v.Type().Field(i).IsExported() {
				continue
			}
			f.value(strings.TrimPrefix(path+"."+name, "."), name, v.Field(i))
		}
	case reflect.Slice:
		f.slice(path, field, v)
	case reflect.Pointer:
		if v.IsNil() {
			f.flat[path] = "null"
			return
		}
		f.value(path, field, v.Elem())
	default:
		f.flat[path] = f.scalar(field, v)
	}
}

func (f flattener) slice(path, field string, v reflect.Value) {
	switch elem := v.Type().Elem().Kind(); {
	case elem != reflect.Struct && v.IsNil():
		f.flat[path] = "null"
	case elem == reflect.Uint8:
		f.flat[path] = fmt.Sprintf("%x", v.Bytes())
	case elem != reflect.Struct:
		f.flat[path] = fmt.Sprint(v.Interface())
	default:
		f.flat[path+".length"] = fmt.Sprint(v.Len())
		if v.IsNil() {
			f.flat[path+".length"] = "none"
		}
		seen := map[string]int{}
		for i := range v.Len() {
			name := f.name(v.Index(i))
			if seen[name]++; seen[name] > 1 {
				name = fmt.Sprintf("%s#%d", name, seen[name])
			}
			f.flat[path+"["+name+"]"] = "present"
			f.value(path+"["+name+"]", field, v.Index(i))
		}
	}
}

// name is what an element is known by; "" if it has no telling field.
func (f flattener) name(v reflect.Value) string {
	var parts []string
	for _, n := range naming {
		if n == "TopicID" && len(parts) > 0 {
			continue // named already; older versions have no id
		}
		field := v.FieldByName(n)
		if field.IsValid() {
			if field.Kind() == reflect.Pointer && !field.IsNil() {
				field = field.Elem()
			}
			switch field.Kind() {
			case reflect.Struct, reflect.Pointer:
			case reflect.Slice:
				if field.Type().Elem().Kind() == reflect.Uint8 {
					parts = append(parts, string(field.Bytes()))
					continue
				}
				var inner []string
				for i := range field.Len() {
					inner = append(inner, f.name(field.Index(i)))
				}
				slices.Sort(inner)
				parts = append(parts, inner...)
			default:
				if s := f.scalar(n, field); s != "" && s != "none" {
					parts = append(parts, s)
				}
			}
		}
	}
	return strings.Join(slices.Compact(parts), ",")
}

func (f flattener) scalar(field string, v reflect.Value) string {
	if v.Kind() == reflect.Array {
		id, _ := v.Interface().([16]byte)
		switch {
		case id == [16]byte{}:
			return "none"
		case f.names[id] != "":
			return f.names[id]
		}
		return "an id"
	}
	if !slices.Contains(presence, field) {
		return fmt.Sprint(v.Interface())
	}
	switch {
	case v.Kind() == reflect.String && v.Len() == 0, v.CanInt() && v.Int() == 0:
		return "none"
	case v.CanInt() && v.Int() < 0:
		return fmt.Sprint(v.Int())
	}
	return "some"
}

// codes are all error codes of an answer.
func codes(r kmsg.Response) []int64 {
	var all []int64
	var walk func(name string, v reflect.Value)
	walk = func(name string, v reflect.Value) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				if v.Type().Field(i).IsExported() {
					walk(v.Type().Field(i).Name, v.Field(i))
				}
			}
		case reflect.Slice:
			if v.Type().Elem().Kind() == reflect.Struct {
				for i := range v.Len() {
					walk(name, v.Index(i))
				}
			}
		case reflect.Int16:
			if isCode(name) {
				all = append(all, v.Int())
			}
		}
	}
	walk("", reflect.ValueOf(r).Elem())
	return all
}

func isCode(name string) bool { return name == "ErrorCode" }

// difference is one line of two answers that is not the same.
type difference struct{ path, ours, kafka string }

// differences compares two flattened answers; with codesOnly only error codes, and of them only what both versions can say.
func differences(ours, kafka map[string]string, codesOnly bool) []difference {
	var all []difference
	paths := slices.Collect(maps.Keys(ours))
	for p := range kafka {
		if _, ok := ours[p]; !ok {
			paths = append(paths, p)
		}
	}
	slices.Sort(paths)
	missing := "" // an element that one side lacks: it is told, its fields are not
	for _, p := range paths {
		if missing != "" && strings.HasPrefix(p, missing) {
			continue
		}
		field := p[strings.LastIndexByte(p, '.')+1:]
		a, inOurs := ours[p]
		b, inKafka := kafka[p]
		switch {
		case codesOnly && !isCode(field):
			continue
		case slices.Contains(messages, field) && (b == "null" || b == "" && inKafka):
			continue // Kafka has none and we may
		case slices.Contains(messages, field) && inOurs && inKafka && a != "null" && b != "null" && (a != "" || b == ""):
			continue
		}
		if !inOurs {
			a = "absent"
		}
		if !inKafka {
			b = "absent"
		}
		if strings.HasSuffix(p, "]") && (a == "absent" || b == "absent") {
			missing = p
		}
		if a != b {
			all = append(all, difference{p, a, b})
		}
	}
	return all
}
