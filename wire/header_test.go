package wire

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Claim: the header of every API and version is read as franz-go writes it, and
// the body is exactly what is left.
// Method: frames made by kmsg's own formatter, with and without a client id.
func TestHeadersAreReadAsKmsgWritesThem(t *testing.T) {
	id := "rdkafka"
	for _, options := range [][]kmsg.RequestFormatterOpt{{kmsg.FormatterClientID(id)}, nil} {
		formatter := kmsg.NewRequestFormatter(options...)
		for api, body := range samples {
			req := kmsg.RequestForKey(api.Key)
			req.SetVersion(api.version)
			if err := req.ReadFrom(body); err != nil {
				t.Fatal(err)
			}
			frame := formatter.AppendRequest(nil, req, 77)[4:]
			h, got, err := ParseHeader(frame)
			if err != nil {
				t.Fatalf("%s v%d: %v", api.Name, api.version, err)
			}
			want := Header{Key: api.Key, Version: api.version, Correlation: 77}
			if options != nil {
				want.ClientID, want.HasClientID = id, true
			}
			if h != want || string(got) != string(body) {
				t.Errorf("%s v%d: %+v and %d bytes of body, want %+v and %d", api.Name, api.version, h, len(got), want, len(body))
			}
			if ours := append(AppendRequestHeader(nil, want), body...); string(ours) != string(frame) {
				t.Errorf("%s v%d: we write\n%x\n%x", api.Name, api.version, ours, frame)
			}
		}
	}
}

// Claim: flexible answers have a tag block behind the correlation id, ApiVersions
// answers never have one.
// Method: golden bytes.
func TestResponseHeaders(t *testing.T) {
	for _, c := range []struct {
		key, version int16
		want         string
	}{
		{KeyProduce, 8, "00000007"},
		{KeyProduce, 9, "0000000700"},
		{KeyFetch, 11, "00000007"},
		{KeyFetch, 12, "0000000700"},
		{KeyAPIVersions, 0, "00000007"},
		{KeyAPIVersions, 3, "00000007"},
		{KeyAPIVersions, 4, "00000007"},
	} {
		if got := fmt.Sprintf("%x", AppendResponseHeader(nil, Header{Key: c.key, Version: c.version, Correlation: 7})); got != c.want {
			t.Errorf("api %d v%d: %s, want %s", c.key, c.version, got, c.want)
		}
	}
}

// Claim: a header that is cut or lies about its client id is refused; one of a
// key or version we do not know is read, so that it can be answered or logged.
// Method: a table.
func TestOddHeaders(t *testing.T) {
	good := AppendRequestHeader(nil, Header{Key: KeyMetadata, Version: 9, Correlation: 1, ClientID: "abc", HasClientID: true})
	for n := range good {
		var malformed *MalformedError
		if _, _, err := ParseHeader(good[:n]); !errors.As(err, &malformed) {
			t.Errorf("cut to %d: %v", n, err)
		}
	}
	for _, h := range []Header{
		{Key: KeyAPIVersions, Version: 99, Correlation: 7},
		{Key: 9999, Version: 3, Correlation: 7},
		{Key: -5, Version: -5, Correlation: 7},
	} {
		got, _, err := ParseHeader(AppendRequestHeader(nil, h))
		if err != nil || got != h {
			t.Errorf("%+v read as %+v, %v", h, got, err)
		}
	}
}

// Claim: client ids are kept once, never alias the frame, and cannot fill
// memory.
// Method: parse one frame twice, overwriting it between; then many ids.
func TestClientIDsAreInterned(t *testing.T) {
	frame := AppendRequestHeader(nil, Header{Key: KeyProduce, Version: 3, ClientID: "interned-id", HasClientID: true})
	first, _, _ := ParseHeader(frame)
	if n := testing.AllocsPerRun(100, func() { _, _, _ = ParseHeader(frame) }); n != 0 {
		t.Errorf("%v allocations for a known client id", n)
	}
	clear(frame)
	if first.ClientID != "interned-id" {
		t.Errorf("client id became %q", first.ClientID)
	}
	var table internTable
	for i := range maxClientIDs * 2 {
		if id := fmt.Sprintf("client-%d", i); table.intern(id) != id {
			t.Fatal(id)
		}
	}
	table.intern(strings.Repeat("x", maxInternedID+1))
	if n := len(*table.known.Load()); n != maxClientIDs {
		t.Errorf("%d ids kept", n)
	}
}

// Claim: the answer to an ApiVersions request that is too new is one that every
// client reads, and its second try works (F030).
// Method: version 99, then the version told; both decoded by kmsg.
func TestField_F030_ApiVersionsTooNew(t *testing.T) {
	h := Header{Key: KeyAPIVersions, Version: 99, Correlation: 7}
	all := func(int16) bool { return true }
	resp, _ := APIVersionsAnswer(h, []byte("whatever comes with version 99"), all)
	frame := AppendResponse(nil, h, resp)
	if got, want := fmt.Sprintf("%x", frame), "00000010"+"00000007"+"0023"+"00000001"+"0012"+"0000"+"0004"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}

	h.Version = resp.ApiKeys[0].MaxVersion
	resp, software := APIVersionsAnswer(h, sampleBody(KeyAPIVersions, h.Version), all)
	read := kmsg.NewPtrApiVersionsResponse()
	read.Version = h.Version
	if err := read.ReadFrom(AppendResponse(nil, h, resp)[8:]); err != nil {
		t.Fatal(err)
	}
	if read.ErrorCode != ErrNone || len(read.ApiKeys) != len(APIs) || software != "millrace-test 1" {
		t.Errorf("%+v, software %q", read, software)
	}
}

// Claim: only what is served is advertised, and software names outside KIP-511's
// letters are refused.
// Method: a table.
func TestAPIVersionsAnswersFromTheTable(t *testing.T) {
	only := func(key int16) bool { return key == KeyFetch }
	resp, _ := APIVersionsAnswer(Header{Key: KeyAPIVersions, Version: 0}, nil, only)
	if len(resp.ApiKeys) != 1 || resp.ApiKeys[0].ApiKey != KeyFetch || resp.ApiKeys[0].MaxVersion != 18 {
		t.Errorf("%+v", resp.ApiKeys)
	}
	for name, want := range map[string]int16{"apache-kafka-java": 0, "a": 0, "": ErrInvalidRequest, "-a": ErrInvalidRequest, "a b": ErrInvalidRequest, "a\n": ErrInvalidRequest} {
		req := kmsg.NewPtrApiVersionsRequest()
		req.Version, req.ClientSoftwareName, req.ClientSoftwareVersion = 3, name, "1.0"
		resp, _ := APIVersionsAnswer(Header{Key: KeyAPIVersions, Version: 3}, req.AppendTo(nil), only)
		if resp.ErrorCode != want {
			t.Errorf("%q: %d, want %d", name, resp.ErrorCode, want)
		}
	}
}

// Claim: the table agrees with kmsg on where flexible versions begin, and never
// promises a version that kmsg or our own parsers do not know (W2).
// Method: every version of every row.
func TestTheTableAgreesWithKmsg(t *testing.T) {
	for _, api := range APIs {
		req := kmsg.RequestForKey(api.Key)
		if req == nil || api.Max > req.MaxVersion() || kmsg.NameForKey(api.Key) == "" {
			t.Fatalf("%s: kmsg knows less", api.Name)
		}
		for version := api.Min; version <= api.Max; version++ {
			req.SetVersion(version)
			if req.IsFlexible() != api.Flexible(version) {
				t.Errorf("%s v%d: flexible %v", api.Name, version, api.Flexible(version))
			}
		}
		if own := api.Key == KeyProduce || api.Key == KeyFetch; own != (api.shape == nil) {
			t.Errorf("%s has no shape to walk", api.Name)
		}
	}
}

// Claim: what comes to the wrong port is named for the operator (F129).
// Method: the first bytes of real programs.
func TestField_F129_GarbageIsNamed(t *testing.T) {
	for first, want := range map[string]string{
		"GET / HTTP/1.1\r\n":               "HTTP",
		"HEAD /":                           "HTTP",
		"PRI * HTTP/2.0":                   "HTTP",
		"\x16\x03\x01\x02\x00\x01\x00\x01": "TLS hello",
		"\x15\x03\x03\x00\x02\x02\x28\x00": "TLS",
		"SSH-2.0-OpenSSH":                  "SSH",
		"PROXY TCP4":                       "PROXY",
		"\xff\xff\xff\xff\x00\x00\x00\x00": "negative",
		"\x00\x00\x00\x00":                 "too short",
		"\x7f\xff\xff\xff\x00\x03\x00\x09": "2147483647",
		"\x00":                             "1 bytes",
		"":                                 "0 bytes",
	} {
		if got := DescribeGarbage([]byte(first)); !strings.Contains(got, want) {
			t.Errorf("%q is said to be: %s", first, got)
		}
	}
}

// Claim: every code has Kafka's name.
// Method: ends of the table and unknown codes.
func TestErrorNames(t *testing.T) {
	for code, want := range map[int16]string{-1: "UNKNOWN_SERVER_ERROR", 0: "NONE", 3: "UNKNOWN_TOPIC_OR_PARTITION", 56: "KAFKA_STORAGE_ERROR", 87: "INVALID_RECORD", 100: "UNKNOWN_TOPIC_ID", 133: "SHARE_SESSION_LIMIT_REACHED", 134: "CODE_134", -2: "CODE_-2"} {
		if got := ErrorName(code); got != want {
			t.Errorf("%d is %s, want %s", code, got, want)
		}
	}
	for i, name := range errorNames {
		if name == "" {
			t.Errorf("code %d has no name", i-1)
		}
	}
}
