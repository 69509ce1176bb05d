package wire

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// DecodeRequest decodes the body of a request that goes through kmsg. The body
// is walked first: kmsg allocates an array as long as its count says, so every
// count must be known to be backed by bytes (W1). Strings are copied, so the
// request may outlive its frame. The header must have passed Lookup and
// Serves. Errors are *MalformedError, or kmsg's wrapped.
func DecodeRequest(h Header, body []byte) (kmsg.Request, error) {
	api, ok := Lookup(h.Key)
	if !ok || !api.Serves(h.Version) || api.shape == nil {
		return nil, fmt.Errorf("no decoder for api %d version %d", h.Key, h.Version)
	}
	if err := walk(api, h.Version, body); err != nil {
		return nil, err
	}
	req := kmsg.RequestForKey(h.Key)
	req.SetVersion(h.Version)
	if err := req.ReadFrom(body); err != nil {
		return nil, fmt.Errorf("%s v%d request: %w", api.Name, h.Version, err)
	}
	return req, nil
}

// AppendResponse appends the whole frame of an answer that goes through kmsg:
// length, header, body. The answer's version is set to the request's, except
// for ApiVersions, whose maker chooses it (see APIVersionsAnswer).
func AppendResponse(dst []byte, h Header, resp kmsg.Response) []byte {
	if h.Key != KeyAPIVersions {
		resp.SetVersion(h.Version)
	}
	dst, mark := BeginFrame(dst)
	dst = AppendResponseHeader(dst, h)
	dst = resp.AppendTo(dst)
	return EndFrame(dst, mark)
}

// walk checks that all lengths and counts of a body stay within it, allocating
// nothing.
func walk(api API, version int16, body []byte) error {
	r := newReader(body, api.Flexible(version))
	if len(body) > MaxPlainBody {
		r.fail("body size", int64(len(body)))
	}
	r.walkStruct(api.shape, version, false)
	return r.failure(api.Key, version)
}

func (r *reader) walkStruct(fields []field, version int16, plain bool) {
	for i := range fields {
		f := &fields[i]
		if version < f.from || version > f.to {
			continue
		}
		switch f.kind {
		case kindFixed:
			r.take(int64(f.size), "fixed field")
		case kindString:
			r.nullableString("string length")
		case kindBytes:
			r.nullableBytes("bytes length")
		case kindArray:
			// The true least size of an element is not worth computing: each
			// element is walked before kmsg allocates, and fails if not there.
			for n := r.count(1, "array count"); n > 0 && r.bad == nil; n-- {
				r.walkStruct(f.elems, version, f.plain)
			}
		case kindNullable:
			if r.int8("nullable struct") != -1 {
				r.walkStruct(f.elems, version, false)
			}
		}
		if r.bad != nil {
			return
		}
	}
	if r.flexible && !plain {
		r.skipTags()
	}
}
