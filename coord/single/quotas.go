package single

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"millrace/coord"
	"millrace/wire"
)

// quotaState is one entity's quotas in the file. A null name is not given, "" is the
// default.
type quotaState struct {
	User   *string            `json:"user,omitempty"`
	Client *string            `json:"client_id,omitempty"`
	IP     *string            `json:"ip,omitempty"`
	Values map[string]float64 `json:"values"`
}

// AlterQuotas is coord.Service's: one synced write for all that are accepted. Edits
// that change nothing write nothing.
func (s *Service) AlterQuotas(ctx context.Context, changes []coord.QuotaChange, validateOnly bool) []coord.ConfigResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	results := make([]coord.ConfigResult, len(changes))
	quotas := maps.Clone(s.image.Load().Quotas())
	if quotas == nil {
		quotas = map[coord.QuotaEntity]map[string]float64{}
	}
	changed := false
	for i := range changes {
		c := &changes[i]
		before := quotas[c.Entity]
		after, code, message := c.Edit(before)
		if results[i] = (coord.ConfigResult{Code: code, Message: message}); code != wire.ErrNone || maps.Equal(before, after) {
			continue
		}
		switch {
		case len(after) == 0:
			delete(quotas, c.Entity)
		case before == nil && len(quotas) >= coord.MaxQuotaEntities:
			results[i] = coord.ConfigResult{Code: wire.ErrPolicyViolation, Message: fmt.Sprintf("%d entities have quotas already, no more than %d may", len(quotas), coord.MaxQuotaEntities)}
			continue
		default:
			quotas[c.Entity] = after
		}
		changed = true
	}
	if validateOnly || !changed {
		return results
	}
	next := s.mu.state.clone()
	next.Quotas = quotaStates(quotas)
	if err := s.commit(ctx, next); err != nil {
		for i := range results {
			if results[i].Code == wire.ErrNone {
				results[i] = coord.ConfigResult{Code: wire.ErrKafkaStorageError, Message: err.Error()}
			}
		}
		return results
	}
	s.publish(s.image.Load().WithQuotas(quotas))
	return results
}

// quotaStates turns the image's quotas into the file's, sorted.
func quotaStates(quotas map[coord.QuotaEntity]map[string]float64) []quotaState {
	out := make([]quotaState, 0, len(quotas))
	for _, e := range slices.SortedFunc(maps.Keys(quotas), coord.CompareQuotaEntities) {
		out = append(out, quotaState{User: textOf(e.User), Client: textOf(e.Client), IP: textOf(e.IP), Values: quotas[e]})
	}
	return out
}

func textOf(p coord.QuotaPart) *string {
	if !p.Given {
		return nil
	}
	return &p.Name
}

func partOf(name *string) coord.QuotaPart {
	if name == nil {
		return coord.QuotaPart{}
	}
	return coord.QuotaPart{Given: true, Name: *name}
}

func (q *quotaState) entity() coord.QuotaEntity {
	return coord.QuotaEntity{User: partOf(q.User), Client: partOf(q.Client), IP: partOf(q.IP)}
}

// quotas turns the file's quotas into the image's.
func (s *state) quotas() map[coord.QuotaEntity]map[string]float64 {
	out := make(map[coord.QuotaEntity]map[string]float64, len(s.Quotas))
	for i := range s.Quotas {
		out[s.Quotas[i].entity()] = s.Quotas[i].Values
	}
	return out
}

// checkQuotas demands entities of somebody, each once and in order, and numbers that
// are rates.
func (s *state) checkQuotas() error {
	for i := range s.Quotas {
		q := &s.Quotas[i]
		e := q.entity()
		if e == (coord.QuotaEntity{}) || len(q.Values) == 0 {
			return fmt.Errorf("client_quotas: entry %d is for nobody or has no values", i)
		}
		if i > 0 && coord.CompareQuotaEntities(s.Quotas[i-1].entity(), e) >= 0 {
			return fmt.Errorf("client_quotas: entry %d is there twice or out of order", i)
		}
		for key, value := range q.Values {
			if !(value > 0) || math.IsInf(value, 0) {
				return fmt.Errorf("client_quotas: %s of entry %d is %v", key, i, value)
			}
		}
	}
	return nil
}
