package wire

import (
	"regexp"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// softwareName is what KIP-511 allows as a client's name and version.
var softwareName = regexp.MustCompile(`^[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?$`)

// APIVersionsAnswer answers an ApiVersions request out of the one table (W2),
// advertising the keys for which served says true.
//
// A request version above ours is answered, unparsed, with a body of version 0
// that every client can read: UNSUPPORTED_VERSION and our range of this one
// API, so that the client's second try fits (KIP-511). The body is malformed
// or names software outside KIP-511's letters: INVALID_REQUEST. software is
// what the client calls itself ("" before v3), for logs and metrics.
func APIVersionsAnswer(h Header, body []byte, served func(key int16) bool) (resp *kmsg.ApiVersionsResponse, software string) {
	resp = kmsg.NewPtrApiVersionsResponse()
	self, _ := Lookup(KeyAPIVersions)
	if !self.Serves(h.Version) {
		resp.SetVersion(0)
		resp.ErrorCode = ErrUnsupportedVersion
		resp.ApiKeys = append(resp.ApiKeys, apiRange(self))
		return resp, ""
	}
	resp.SetVersion(h.Version)
	decoded, err := DecodeRequest(h, body)
	if err != nil {
		resp.ErrorCode = ErrInvalidRequest
		return resp, ""
	}
	if req := decoded.(*kmsg.ApiVersionsRequest); h.Version >= 3 {
		if !softwareName.MatchString(req.ClientSoftwareName) || !softwareName.MatchString(req.ClientSoftwareVersion) {
			resp.ErrorCode = ErrInvalidRequest
			return resp, ""
		}
		software = req.ClientSoftwareName + " " + req.ClientSoftwareVersion
	}
	for i := range APIs {
		if served(APIs[i].Key) {
			resp.ApiKeys = append(resp.ApiKeys, apiRange(APIs[i]))
		}
	}
	return resp, software
}

func apiRange(a API) kmsg.ApiVersionsResponseApiKey {
	k := kmsg.NewApiVersionsResponseApiKey()
	k.ApiKey, k.MinVersion, k.MaxVersion = a.Key, a.Min, a.Max
	return k
}
