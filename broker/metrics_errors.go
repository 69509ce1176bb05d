package broker

import (
	"log/slog"
	"reflect"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/wire"
)

// kmsg's answers have their error codes in fields named ErrorCode, at any depth.
// Where they are is found once for each kind of answer.

// codePlan says where a struct has error codes.
type codePlan struct {
	code    int // index of its ErrorCode, -1 none
	message int // of the text that goes with it, -1 none
	fields  []codeField
}

type codeField struct {
	index int
	list  bool
	plan  *codePlan
}

// codePlans is by type of answer. Bounded by the APIs there are.
var codePlans sync.Map // reflect.Type → *codePlan; nil plan: no codes

// maxCodes bounds how many parts of one answer are looked at.
const maxCodes = 10_000

// answeredWith counts the error codes of an answer that goes through kmsg, and
// logs what the client is told of why, as far as logLimit lets it (A16).
func (c *conn) answeredWith(r kmsg.Response) {
	v := reflect.ValueOf(r)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return
	}
	v = v.Elem()
	plan, ok := codePlans.Load(v.Type())
	if !ok {
		plan, _ = codePlans.LoadOrStore(v.Type(), planOf(v.Type()))
	}
	if p := plan.(*codePlan); p != nil {
		left := maxCodes
		p.count(v, &left, func(code int16, why string) {
			c.b.meters.requests.failed(r.Key(), code)
			if why != "" {
				c.refused(&c.rc.header, code, why)
			}
		})
	}
}

// refused logs that a request, or a part of it, was refused. The line is the
// client's text with what it takes to find the client.
func (c *conn) refused(h *wire.Header, code int16, why string, args ...any) {
	args = append([]any{"api", apiName(h.Key), "version", h.Version, "client_id", h.ClientID, "code", wire.ErrorName(code), "why", why}, args...)
	c.b.meters.refused.log(c.log, slog.LevelInfo, "refused", args...)
}

func (p *codePlan) count(v reflect.Value, left *int, note func(code int16, why string)) {
	if *left--; *left < 0 {
		return
	}
	if p.code >= 0 {
		if code := v.Field(p.code).Int(); code != 0 {
			note(int16(code), p.textOf(v))
		}
	}
	for _, f := range p.fields {
		at := v.Field(f.index)
		if !f.list {
			f.plan.count(at, left, note)
			continue
		}
		for i := 0; i < at.Len() && *left > 0; i++ {
			f.plan.count(at.Index(i), left, note)
		}
	}
}

func (p *codePlan) textOf(v reflect.Value) string {
	if p.message < 0 {
		return ""
	}
	if text, ok := v.Field(p.message).Interface().(*string); ok && text != nil {
		return *text
	}
	return ""
}

// planOf returns nil where no code can be.
func planOf(t reflect.Type) *codePlan {
	p := &codePlan{code: -1, message: -1}
	for i := range t.NumField() {
		f := t.Field(i)
		inner, list := f.Type, false
		if inner.Kind() == reflect.Slice {
			inner, list = inner.Elem(), true
		}
		switch {
		case f.Name == "ErrorCode" && f.Type.Kind() == reflect.Int16:
			p.code = i
		case f.Name == "ErrorMessage":
			p.message = i
		case inner.Kind() == reflect.Struct && f.IsExported():
			if plan := planOf(inner); plan != nil {
				p.fields = append(p.fields, codeField{i, list, plan})
			}
		}
	}
	if p.code < 0 && len(p.fields) == 0 {
		return nil
	}
	return p
}
