package broker

import (
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/coord"
	"millrace/wire"
)

// Types of quota entities.
const (
	entityUser   = "user"
	entityClient = "client-id"
	entityIP     = "ip"
)

// These are all quotas that can be set, by what they can be set for. Of the clients'
// controller_mutation_rate is only kept.
var (
	quotaKeysOfClients = map[string]ConfigType{
		"producer_byte_rate": TypeLong, "consumer_byte_rate": TypeLong,
		"request_percentage": TypeDouble, "controller_mutation_rate": TypeDouble,
	}
	quotaKeysOfIPs = map[string]ConfigType{connectKey: TypeInt}
)

// handleAlterClientQuotas serves AlterClientQuotas. What is answered without an error
// is durable and in force.
func (b *Broker) handleAlterClientQuotas(rc *requestContext, request kmsg.Request) kmsg.Response {
	req := request.(*kmsg.AlterClientQuotasRequest)
	resp := req.ResponseKind().(*kmsg.AlterClientQuotasResponse)
	resp.Entries = make([]kmsg.AlterClientQuotasResponseEntry, len(req.Entries))
	var changes []coord.QuotaChange
	var asked []*kmsg.AlterClientQuotasResponseEntry
	for i := range req.Entries {
		entry, answer := &req.Entries[i], &resp.Entries[i]
		*answer = kmsg.NewAlterClientQuotasResponseEntry()
		for _, part := range entry.Entity {
			e := kmsg.NewAlterClientQuotasResponseEntryEntity()
			e.Type, e.Name = part.Type, part.Name
			answer.Entity = append(answer.Entity, e)
		}
		entity, wrong := quotaEntityOf(entry.Entity)
		if wrong == "" {
			wrong = checkQuotaOps(entity, entry.Ops)
		}
		if wrong != "" {
			answer.ErrorCode, answer.ErrorMessage = wire.ErrInvalidRequest, &wrong
			continue
		}
		changes = append(changes, coord.QuotaChange{Entity: entity, Edit: quotaEdit(entry.Ops)})
		asked = append(asked, answer)
	}
	if len(changes) == 0 {
		return resp
	}
	for i, r := range b.coord.AlterQuotas(rc.ctx, changes, req.ValidateOnly) {
		if asked[i].ErrorCode = r.Code; r.Message != "" {
			asked[i].ErrorMessage = &r.Message
		}
		if r.Code == wire.ErrNone && !req.ValidateOnly {
			rc.log.Info("quotas changed", "of", entityText(changes[i].Entity), "client_id", rc.header.ClientID)
		}
	}
	return resp
}

// quotaEntityOf reads whom a quota is for, or says what is wrong. The strings are copies.
func quotaEntityOf(parts []kmsg.AlterClientQuotasRequestEntryEntity) (e coord.QuotaEntity, wrong string) {
	if len(parts) == 0 {
		return e, "the quota entity is empty; name a user, a client-id, both, or an ip"
	}
	for _, part := range parts {
		var into *coord.QuotaPart
		switch part.Type {
		case entityUser:
			into = &e.User
		case entityClient:
			into = &e.Client
		case entityIP:
			into = &e.IP
		default:
			return e, fmt.Sprintf("quota entity type %q is none of user, client-id, ip", part.Type)
		}
		if into.Given {
			return e, fmt.Sprintf("quota entity type %s is in the entity more than once", part.Type)
		}
		into.Given = true
		if part.Name == nil {
			continue
		}
		if *part.Name == "" {
			return e, fmt.Sprintf("the name of quota entity type %s is empty; null stands for the default", part.Type)
		}
		into.Name = strings.Clone(*part.Name)
	}
	if e.IP.Given && (e.User.Given || e.Client.Given) {
		return e, "a quota entity cannot be an ip together with a user or client-id"
	}
	if e.IP.Name != "" {
		if addr, err := netip.ParseAddr(e.IP.Name); err != nil || addr.Zone() != "" {
			return e, fmt.Sprintf("%q is no IP address", e.IP.Name)
		}
	}
	return e, ""
}

// checkQuotaOps says what is wrong with keys and values. Taking away what is not there,
// or what nobody knows, is fine.
func checkQuotaOps(e coord.QuotaEntity, ops []kmsg.AlterClientQuotasRequestEntryOp) string {
	for i := range ops {
		if op := &ops[i]; !op.Remove {
			if err := CheckQuota(e, op.Key, op.Value); err != nil {
				return err.Error()
			}
		}
	}
	return ""
}

// CheckQuota refuses a quota that the entity cannot have, or a value that it cannot be.
func CheckQuota(e coord.QuotaEntity, key string, value float64) error {
	known := quotaKeysOfClients
	if e.IP.Given {
		known = quotaKeysOfIPs
	}
	kind, ok := known[key]
	if !ok {
		return fmt.Errorf("%s has no quota %q, only %s", entityText(e), key, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
	}
	limit := math.MaxFloat64
	switch kind {
	case TypeLong:
		limit = math.MaxInt64
	case TypeInt:
		limit = math.MaxInt32
	}
	switch {
	case !(value > 0):
		return fmt.Errorf("quota %s is %v, it must be greater than 0", key, value)
	case value > limit:
		return fmt.Errorf("quota %s is %v, more than its type %s holds", key, value, kind)
	case kind != TypeDouble && math.Abs(value-math.Round(value)) > quotaEpsilon:
		return fmt.Errorf("quota %s is %v, it must be a whole number", key, value)
	case kind != TypeDouble && math.Round(value) == 0:
		return fmt.Errorf("quota %s is %v, it must be at least 1", key, value)
	}
	return nil
}

// quotaEpsilon is how far from a whole number a value may lie that went through
// somebody's arithmetic. As Kafka's.
const quotaEpsilon = 1e-6

func quotaEdit(ops []kmsg.AlterClientQuotasRequestEntryOp) func(map[string]float64) (map[string]float64, int16, string) {
	return func(before map[string]float64) (map[string]float64, int16, string) {
		after := make(map[string]float64, len(before)+len(ops))
		maps.Copy(after, before)
		for i := range ops {
			op := &ops[i]
			switch {
			case op.Remove:
				delete(after, op.Key)
			case quotaKeysOfClients[op.Key] == TypeDouble:
				after[strings.Clone(op.Key)] = op.Value
			default:
				after[strings.Clone(op.Key)] = math.Round(op.Value)
			}
		}
		return after, wire.ErrNone, ""
	}
}

// entityText names an entity in messages and logs.
func entityText(e coord.QuotaEntity) string {
	var out []string
	for _, part := range partsOf(e) {
		name := "the default " + part.kind
		if part.Name != "" {
			name = fmt.Sprintf("%s %q", part.kind, part.Name)
		}
		out = append(out, name)
	}
	return strings.Join(out, ", ")
}

type entityPart struct {
	kind string
	coord.QuotaPart
}

// partsOf lists the parts that are given.
func partsOf(e coord.QuotaEntity) (out []entityPart) {
	for _, part := range []entityPart{{entityUser, e.User}, {entityClient, e.Client}, {entityIP, e.IP}} {
		if part.Given {
			out = append(out, part)
		}
	}
	return out
}

// handleDescribeClientQuotas serves DescribeClientQuotas.
func (b *Broker) handleDescribeClientQuotas(_ *requestContext, request kmsg.Request) kmsg.Response {
	req := request.(*kmsg.DescribeClientQuotasRequest)
	resp := req.ResponseKind().(*kmsg.DescribeClientQuotasResponse)
	if code, wrong := checkQuotaFilter(req.Components); code != wire.ErrNone {
		resp.ErrorCode, resp.ErrorMessage = code, &wrong
		return resp
	}
	resp.Entries = []kmsg.DescribeClientQuotasResponseEntry{} // null is for errors
	quotas := b.coord.Image().Quotas()
	for _, e := range slices.SortedFunc(maps.Keys(quotas), coord.CompareQuotaEntities) {
		if !matchesQuota(e, req) {
			continue
		}
		entry := kmsg.NewDescribeClientQuotasResponseEntry()
		for _, part := range partsOf(e) {
			p := kmsg.NewDescribeClientQuotasResponseEntryEntity()
			p.Type = part.kind
			if part.Name != "" {
				p.Name = kmsg.StringPtr(part.Name)
			}
			entry.Entity = append(entry.Entity, p)
		}
		for _, key := range slices.Sorted(maps.Keys(quotas[e])) {
			v := kmsg.NewDescribeClientQuotasResponseEntryValue()
			v.Key, v.Value = key, quotas[e][key]
			entry.Values = append(entry.Values, v)
		}
		resp.Entries = append(resp.Entries, entry)
	}
	return resp
}

func checkQuotaFilter(components []kmsg.DescribeClientQuotasRequestComponent) (code int16, wrong string) {
	seen := map[string]bool{}
	for i := range components {
		c := &components[i]
		switch {
		case c.EntityType == "":
			return wire.ErrInvalidRequest, "the entity type of a filter is empty"
		case c.EntityType != entityUser && c.EntityType != entityClient && c.EntityType != entityIP:
			return wire.ErrUnsupportedVersion, fmt.Sprintf("quota entity type %q is none of user, client-id, ip", c.EntityType)
		case seen[c.EntityType]:
			return wire.ErrInvalidRequest, fmt.Sprintf("quota entity type %s is in the filter more than once", c.EntityType)
		case c.MatchType < kmsg.QuotasMatchTypeExact || c.MatchType > kmsg.QuotasMatchTypeAny:
			return wire.ErrInvalidRequest, fmt.Sprintf("match type %d is none of exact (0), default (1), any (2)", c.MatchType)
		case c.MatchType == kmsg.QuotasMatchTypeExact && c.Match == nil:
			return wire.ErrInvalidRequest, fmt.Sprintf("the filter by %s is to match a name, and the name is null", c.EntityType)
		}
		seen[c.EntityType] = true
	}
	if seen[entityIP] && len(seen) > 1 {
		return wire.ErrInvalidRequest, "a filter by ip cannot be together with one by user or client-id"
	}
	return wire.ErrNone, ""
}

// matchesQuota reports whether an entity is asked for: each component of the filter
// matches a part of it and, if it is strict, it has no other parts.
func matchesQuota(e coord.QuotaEntity, req *kmsg.DescribeClientQuotasRequest) bool {
	parts := partsOf(e)
	if req.Strict && len(parts) != len(req.Components) {
		return false
	}
	for i := range req.Components {
		c := &req.Components[i]
		if !slices.ContainsFunc(parts, func(p entityPart) bool {
			if p.kind != c.EntityType {
				return false
			}
			switch c.MatchType {
			case kmsg.QuotasMatchTypeExact:
				return p.Name == *c.Match && p.Name != ""
			case kmsg.QuotasMatchTypeDefault:
				return p.Name == ""
			}
			return true // any: the default is one too
		}) {
			return false
		}
	}
	return true
}
