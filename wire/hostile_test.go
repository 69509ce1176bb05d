package wire

import (
	"encoding/binary"
	"errors"
	"math"
	"runtime"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// parseBody runs the API's decoder, whichever it is.
func parseBody(key, version int16, body []byte) error {
	switch key {
	case KeyProduce:
		return new(ProduceRequest).Parse(body, version)
	case KeyFetch:
		return new(FetchRequest).Parse(body, version)
	}
	_, err := DecodeRequest(Header{Key: key, Version: version}, body)
	return err
}

// samples are well-formed bodies, one for each API and version.
func samples(yield func(v apiVersion, body []byte) bool) {
	for _, api := range APIs {
		for version := api.Min; version <= api.Max; version++ {
			if !yield(apiVersion{api, version}, sampleBody(api.Key, version)) {
				return
			}
		}
	}
}

type apiVersion struct {
	API
	version int16
}

func sampleBody(key, version int16) []byte {
	name := "orders"
	switch key {
	case KeyProduce:
		return sampleProduce(version, 2, 20)
	case KeyFetch:
		return sampleFetch(version, 2)
	}
	req := kmsg.RequestForKey(key)
	req.SetVersion(version)
	switch r := req.(type) {
	case *kmsg.MetadataRequest:
		r.Topics = []kmsg.MetadataRequestTopic{{Topic: &name}, {Topic: &name}}
	case *kmsg.ListOffsetsRequest:
		r.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: name, Partitions: make([]kmsg.ListOffsetsRequestTopicPartition, 2)}}
	case *kmsg.CreateTopicsRequest:
		r.Topics = []kmsg.CreateTopicsRequestTopic{{
			Topic: name, NumPartitions: -1, ReplicationFactor: -1,
			ReplicaAssignment: []kmsg.CreateTopicsRequestTopicReplicaAssignment{{Partition: 0, Replicas: []int32{0, 1}}},
			Configs:           []kmsg.CreateTopicsRequestTopicConfig{{Name: "a", Value: &name}},
		}}
	case *kmsg.DeleteTopicsRequest:
		r.TopicNames = []string{name, name}
		r.Topics = []kmsg.DeleteTopicsRequestTopic{{Topic: &name}}
	case *kmsg.DescribeConfigsRequest:
		r.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceName: name, ConfigNames: []string{"a", "b"}}}
	case *kmsg.InitProducerIDRequest:
		r.TransactionalID = &name
	case *kmsg.ApiVersionsRequest:
		r.ClientSoftwareName, r.ClientSoftwareVersion = "millrace-test", "1"
	default:
		sampleGroup(req)
		sampleAdmin(req)
	}
	return req.AppendTo(nil)
}

// Claim: every API's sample decodes in every version that the table serves, and
// a body cut anywhere is refused with the position, by every decoder (W1).
// Method: all APIs, all versions, all lengths.
func TestCutBodiesAreRefused(t *testing.T) {
	for api, body := range samples {
		version := api.version
		if err := parseBody(api.Key, version, body); err != nil {
			t.Errorf("%s v%d: %v", api.Name, version, err)
			continue
		}
		for n := range body {
			err := parseBody(api.Key, version, body[:n])
			var malformed *MalformedError
			if !errors.As(err, &malformed) {
				t.Errorf("%s v%d cut to %d of %d bytes: %v", api.Name, version, n, len(body), err)
				break
			}
		}
	}
}

// Claim: no count or length in a request can make a decoder allocate more than
// the request itself is long, by a small factor (W1).
// Method: overwrite every position of every sample with great and negative
// numbers, in both encodings, and measure what is allocated. The samples are
// some 100 bytes long; 8 KiB on average is room for kmsg's structs and errors,
// while one array of a million elements would be 50 MB.
func TestHostileLengthsAllocateNothing(t *testing.T) {
	const bound = 8 << 10
	patterns := [][]byte{}
	for _, n := range []int32{-2, -1, 1000, 1 << 20, math.MaxInt32, math.MinInt32} {
		patterns = append(patterns, binary.BigEndian.AppendUint32(nil, uint32(n)), binary.AppendUvarint(nil, uint64(uint32(n))))
	}
	var before, after runtime.MemStats
	for api, body := range samples {
		hostile := make([]byte, len(body))
		runtime.ReadMemStats(&before)
		for at := range body {
			for _, p := range patterns {
				copy(hostile, body)
				copy(hostile[at:], p)
				_ = parseBody(api.Key, api.version, hostile)
			}
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > uint64(bound*len(body)*len(patterns)) {
			t.Errorf("%s v%d: %d bytes allocated for %d requests of %d bytes", api.Name, api.version, n, len(body)*len(patterns), len(body))
		}
	}
}

// Claim: a request whose counts are backed by bytes is still bounded: more than
// MaxElements elements in all are refused, by every decoder.
// Method: bodies of empty elements, one above the bound.
func TestElementsAreBounded(t *testing.T) {
	n := MaxElements + 1
	metadata := binary.BigEndian.AppendUint32(nil, uint32(n))
	metadata = append(metadata, make([]byte, 2*n)...)
	produce := binary.BigEndian.AppendUint32([]byte{0, 1, 0, 0, 0, 0}, uint32(n))
	produce = append(produce, make([]byte, 6*n)...)
	var malformed *MalformedError
	if err := parseBody(KeyMetadata, 0, metadata); !errors.As(err, &malformed) {
		t.Errorf("Metadata: %v", err)
	}
	if err := parseBody(KeyProduce, 0, produce); !errors.As(err, &malformed) || malformed.Count != int64(n) {
		t.Errorf("Produce: %v", err)
	}
}

// Claim: tagged fields that we do not know are skipped wherever they may stand.
// Method: kmsg writes them into every struct of a request.
func TestUnknownTagsAreSkipped(t *testing.T) {
	req := kmsg.NewPtrFetchRequest()
	req.Version = 18
	topic, partition, gone := kmsg.NewFetchRequestTopic(), kmsg.NewFetchRequestTopicPartition(), kmsg.NewFetchRequestForgottenTopic()
	for _, tags := range []*kmsg.Tags{&req.UnknownTags, &topic.UnknownTags, &partition.UnknownTags, &gone.UnknownTags} {
		tags.Set(9, []byte("from the future"))
		tags.Set(300, nil)
	}
	partition.HighWatermark = 7
	topic.Partitions = append(topic.Partitions, partition)
	req.Topics, req.ForgottenTopics = append(req.Topics, topic), append(req.ForgottenTopics, gone)
	var r FetchRequest
	if err := r.Parse(req.AppendTo(nil), 18); err != nil || r.Topics[0].Partitions[0].HighWatermark != 7 {
		t.Errorf("%v, %+v", err, r)
	}

	produce := kmsg.NewPtrProduceRequest()
	produce.Version = 13
	pt, pp := kmsg.NewProduceRequestTopic(), kmsg.NewProduceRequestTopicPartition()
	for _, tags := range []*kmsg.Tags{&produce.UnknownTags, &pt.UnknownTags, &pp.UnknownTags} {
		tags.Set(9, []byte("from the future"))
	}
	pp.Partition = 3
	pt.Partitions = append(pt.Partitions, pp)
	produce.Topics = append(produce.Topics, pt)
	var p ProduceRequest
	if err := p.Parse(produce.AppendTo(nil), 13); err != nil || p.Topics[0].Partitions[0].Index != 3 {
		t.Errorf("%v, %+v", err, p)
	}
}

// Claim: a giant request does not pin its memory to a reused request.
// Method: parse one, then a small one, and look at the room kept.
func TestGiantRequestsAreForgotten(t *testing.T) {
	var p ProduceRequest
	var f FetchRequest
	for _, n := range []int{keepElements * 4, 1} {
		if err := p.Parse(sampleProduce(9, n, 0), 9); err != nil {
			t.Fatal(err)
		}
		if err := f.Parse(sampleFetch(12, n), 12); err != nil {
			t.Fatal(err)
		}
	}
	if cap(p.partitions) > keepElements || cap(f.partitions) > keepElements {
		t.Errorf("room for %d and %d partitions kept", cap(p.partitions), cap(f.partitions))
	}
}

// FuzzBodies: no decoder panics or reads beyond its frame; and what our own
// parsers accept, kmsg accepts too, with the same content.
func FuzzBodies(f *testing.F) {
	for api, body := range samples {
		f.Add(api.Key, api.version, body)
	}
	f.Fuzz(func(t *testing.T, key, version int16, body []byte) {
		api, ok := Lookup(key)
		if !ok || !api.Serves(version) || len(body) > 1<<16 {
			return
		}
		err := parseBody(key, version, body)
		if err != nil || (key != KeyProduce && key != KeyFetch) {
			return
		}
		oracle := kmsg.RequestForKey(key)
		oracle.SetVersion(version)
		if err := oracle.ReadFrom(body); err != nil {
			t.Fatalf("kmsg refuses what we accept: %v", err)
		}
		requireSame(t, version, body, oracle)
	})
}

// requireSame compares by the bytes kmsg writes for both, so that null and
// absent need no care.
func requireSame(t *testing.T, version int16, body []byte, oracle kmsg.Request) {
	switch want := oracle.(type) {
	case *kmsg.ProduceRequest:
		var r ProduceRequest
		_ = r.Parse(body, version)
		want.UnknownTags = kmsg.Tags{}
		got := produceAsKmsg(&r)
		if len(got.Topics) != len(want.Topics) || got.Acks != want.Acks || got.TimeoutMillis != want.TimeoutMillis {
			t.Fatalf("got %+v\nwant %+v", got, want)
		}
		for i := range want.Topics {
			if len(got.Topics[i].Partitions) != len(want.Topics[i].Partitions) || got.Topics[i].Topic != want.Topics[i].Topic {
				t.Fatalf("topic %d: got %+v\nwant %+v", i, got.Topics[i], want.Topics[i])
			}
			for j := range want.Topics[i].Partitions {
				if string(got.Topics[i].Partitions[j].Records) != string(want.Topics[i].Partitions[j].Records) {
					t.Fatalf("topic %d partition %d differs", i, j)
				}
			}
		}
	case *kmsg.FetchRequest:
		var r FetchRequest
		_ = r.Parse(body, version)
		got := fetchAsKmsg(&r)
		if len(got.Topics) != len(want.Topics) || got.MaxBytes != want.MaxBytes || got.SessionEpoch != want.SessionEpoch || got.Rack != want.Rack {
			t.Fatalf("got %+v\nwant %+v", got, want)
		}
	}
}

// FuzzHeader: a header never panics, and the body is what is behind it.
func FuzzHeader(f *testing.F) {
	f.Add(AppendRequestHeader(nil, Header{Key: 3, Version: 9, Correlation: 7, ClientID: "rdkafka", HasClientID: true}))
	f.Add([]byte("GET / HTTP/1.1\r\n"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, frame []byte) {
		h, body, err := ParseHeader(frame)
		if err != nil {
			return
		}
		if len(body) > len(frame)-8 || h.Key != int16(binary.BigEndian.Uint16(frame)) {
			t.Fatalf("%+v with %d of %d bytes", h, len(body), len(frame))
		}
		_ = DescribeGarbage(frame)
	})
}
