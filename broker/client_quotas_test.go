package broker

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/wire"
)

// entry makes an alteration: entity is "type=name,…" with "type" for a default; values
// are "key=number" or "key" to take it away.
func entry(entity string, values ...string) kmsg.AlterClientQuotasRequestEntry {
	e := kmsg.NewAlterClientQuotasRequestEntry()
	for _, part := range splitList(entity) {
		kind, name, given := strings.Cut(part, "=")
		p := kmsg.NewAlterClientQuotasRequestEntryEntity()
		if p.Type = kind; given {
			p.Name = &name
		}
		e.Entity = append(e.Entity, p)
	}
	for _, v := range values {
		op := kmsg.NewAlterClientQuotasRequestEntryOp()
		key, number, given := strings.Cut(v, "=")
		if op.Key, op.Remove = key, !given; given {
			if _, err := fmt.Sscan(number, &op.Value); err != nil {
				panic(err)
			}
		}
		e.Ops = append(e.Ops, op)
	}
	return e
}

func (b *testBroker) alterQuotas(version int16, validateOnly bool, entries ...kmsg.AlterClientQuotasRequestEntry) *kmsg.AlterClientQuotasResponse {
	b.t.Helper()
	req := kmsg.NewPtrAlterClientQuotasRequest()
	req.Entries, req.ValidateOnly = entries, validateOnly
	c := b.dial()
	defer c.nc.Close()
	return c.ask(req, version).(*kmsg.AlterClientQuotasResponse)
}

// quota sets one entity's quotas.
func (b *testBroker) quota(entity string, values ...string) {
	b.t.Helper()
	if e := b.alterQuotas(1, false, entry(entity, values...)).Entries[0]; e.ErrorCode != 0 {
		b.t.Fatalf("%s: %s", wire.ErrorName(e.ErrorCode), *e.ErrorMessage)
	}
}

// shownQuotas asks for quotas and shows them as "type=name,…: key=number …; …".
// The filter is "type=name" for exact, "type" for the default, "type=*" for any.
func (b *testBroker) shownQuotas(version int16, strict bool, filter string) string {
	b.t.Helper()
	req := kmsg.NewPtrDescribeClientQuotasRequest()
	req.Strict = strict
	for _, part := range splitList(filter) {
		kind, name, given := strings.Cut(part, "=")
		c := kmsg.NewDescribeClientQuotasRequestComponent()
		switch c.EntityType = kind; {
		case !given:
			c.MatchType = kmsg.QuotasMatchTypeDefault
		case name == "*":
			c.MatchType = kmsg.QuotasMatchTypeAny
		default:
			c.Match = &name
		}
		req.Components = append(req.Components, c)
	}
	resp := b.dial().ask(req, version).(*kmsg.DescribeClientQuotasResponse)
	if resp.ErrorCode != 0 {
		return wire.ErrorName(resp.ErrorCode)
	}
	var out []string
	for _, e := range resp.Entries {
		var entity []string
		for _, part := range e.Entity {
			if part.Name == nil {
				entity = append(entity, part.Type)
			} else {
				entity = append(entity, part.Type+"="+*part.Name)
			}
		}
		text := strings.Join(entity, ",") + ":"
		for _, v := range e.Values {
			text += fmt.Sprintf(" %s=%v", v.Key, v.Value)
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

// Claim: both versions of both APIs keep and show every quota of every kind of entity,
// over a restart; a dry run changes nothing; filters match as Kafka's.
// Method: raw requests.
func TestEveryVersionOfQuotaAPIs(t *testing.T) {
	for version := range int16(2) {
		dir := t.TempDir()
		b := startBrokerIn(t, dir)
		entries := []kmsg.AlterClientQuotasRequestEntry{
			entry("user=u", "producer_byte_rate=1000", "consumer_byte_rate=2000", "request_percentage=12.5", "controller_mutation_rate=0.5"),
			entry("user", "producer_byte_rate=1"),
			entry("client-id=c", "producer_byte_rate=9223372036854775807"),
			entry("client-id", "producer_byte_rate=3"),
			entry("user=u,client-id=c", "producer_byte_rate=4"),
			entry("user=u,client-id", "producer_byte_rate=5"),
			entry("ip=10.0.0.1", "connection_creation_rate=6"),
			entry("ip", "connection_creation_rate=7"),
		}
		b.alterQuotas(version, true, entries...)
		if got := b.shownQuotas(version, false, ""); got != "" {
			t.Errorf("after a dry run: %s", got)
		}
		resp := b.alterQuotas(version, false, entries...)
		for i, e := range resp.Entries {
			if e.ErrorCode != 0 || e.ErrorMessage != nil || len(e.Entity) != len(entries[i].Entity) || e.Entity[0].Type != entries[i].Entity[0].Type {
				t.Errorf("entry %d: %+v", i, e)
			}
		}
		b.halt()
		b = startBrokerIn(t, dir)
		const (
			ips     = "ip: connection_creation_rate=7; ip=10.0.0.1: connection_creation_rate=6"
			clients = "client-id: producer_byte_rate=3; client-id=c: producer_byte_rate=9.223372036854776e+18"
			user    = "user: producer_byte_rate=1"
			u       = "user=u: consumer_byte_rate=2000 controller_mutation_rate=0.5 producer_byte_rate=1000 request_percentage=12.5"
			both    = "user=u,client-id: producer_byte_rate=5; user=u,client-id=c: producer_byte_rate=4"
		)
		join := func(parts ...string) string { return strings.Join(parts, "; ") }
		for _, f := range []struct {
			filter string
			strict bool
			want   string
		}{
			{"", false, join(ips, clients, user, u, both)},
			{"", true, ""},
			{"user=*", true, join(user, u)},
			{"user=*", false, join(user, u, both)},
			{"user", true, user},
			{"user=u", true, u},
			{"user=u", false, join(u, both)},
			{"user=U", false, ""},
			{"user=", false, ""},
			{"client-id=c,user=u", true, "user=u,client-id=c: producer_byte_rate=4"},
			{"client-id=*,user=*", true, both},
			{"client-id=*", true, clients},
			{"ip=*", true, ips},
			{"ip=10.0.0.1", false, "ip=10.0.0.1: connection_creation_rate=6"},
			{"ip=*,user=*", false, "INVALID_REQUEST"},
			{"user=*,user", false, "INVALID_REQUEST"},
			{"group=*", false, "UNSUPPORTED_VERSION"},
		} {
			if got := b.shownQuotas(version, f.strict, f.filter); got != f.want {
				t.Errorf("v%d %q strict %v:\n%s\nwant\n%s", version, f.filter, f.strict, got, f.want)
			}
		}
		// Taking away: one key, all keys, keys that are not there.
		b.alterQuotas(version, false, entry("user=u", "producer_byte_rate", "request_percentage=1"), entry("user", "producer_byte_rate"), entry("user=none", "producer_byte_rate", "unheard.of"))
		if got, want := b.shownQuotas(version, true, "user=*"), "user=u: consumer_byte_rate=2000 controller_mutation_rate=0.5 request_percentage=1"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// Claim: what is no entity, key or value is refused, with a message that names it, and
// hinders no other entry of the request.
// Method: one request with everything wrong, and something right.
func TestWrongQuotasAreRefused(t *testing.T) {
	b := startBroker(t)
	notANumber := entry("user=u", "producer_byte_rate=1")
	notANumber.Ops[0].Value = math.NaN()
	wrong := []struct {
		entry kmsg.AlterClientQuotasRequestEntry
		text  string
	}{
		{entry("", "producer_byte_rate=1"), "entity is empty"},
		{entry("group=g", "producer_byte_rate=1"), `"group"`},
		{entry("user=", "producer_byte_rate=1"), "is empty"},
		{entry("user=a,user=b", "producer_byte_rate=1"), "more than once"},
		{entry("user=a,ip=10.0.0.1", "producer_byte_rate=1"), "together"},
		{entry("ip=no address", "connection_creation_rate=1"), "no IP address"},
		{entry("ip=10.0.0.1", "producer_byte_rate=1"), "connection_creation_rate"},
		{entry("user=a", "connection_creation_rate=1"), "producer_byte_rate"},
		{entry("user=a", "bytes=1"), `"bytes"`},
		{entry("user=a", "producer_byte_rate=0"), "greater than 0"},
		{entry("user=a", "request_percentage=-1"), "greater than 0"},
		{entry("user=a", "producer_byte_rate=1.5"), "whole number"},
		{entry("user=a", "producer_byte_rate=0.0000001"), "at least 1"},
		{entry("user=a", "producer_byte_rate=1e30"), "more than"},
		{entry("ip", "connection_creation_rate=3000000000"), "more than"},
		{entry("user=a", "request_percentage=+Inf"), "more than"},
		{notANumber, "NaN"},
	}
	var entries []kmsg.AlterClientQuotasRequestEntry
	for _, w := range wrong {
		entries = append(entries, w.entry)
	}
	entries = append(entries, entry("user=right", "producer_byte_rate=10.0000001"))
	resp := b.alterQuotas(1, false, entries...)
	for i, w := range wrong {
		if e := resp.Entries[i]; e.ErrorCode != wire.ErrInvalidRequest || e.ErrorMessage == nil || !strings.Contains(*e.ErrorMessage, w.text) {
			t.Errorf("%d: %d %v, want %q", i, e.ErrorCode, kmsgText(e.ErrorMessage), w.text)
		}
	}
	if got := b.shownQuotas(1, false, ""); got != "user=right: producer_byte_rate=10" {
		t.Error(got)
	}
}

func kmsgText(s *string) string {
	if s == nil {
		return "null"
	}
	return *s
}

// Claim: a real admin client sets, sees and removes quotas.
// Method: kadm.
func TestKadmQuotas(t *testing.T) {
	b := startBroker(t)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addr("")))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	admin := kadm.NewClient(cl)
	name := "c"
	entity := kadm.ClientQuotaEntity{{Type: "client-id", Name: &name}}
	for _, op := range []kadm.AlterClientQuotaOp{{Key: "consumer_byte_rate", Value: 5e6}, {Key: "consumer_byte_rate", Remove: true}} {
		altered, err := admin.AlterClientQuotas(ctx, []kadm.AlterClientQuotaEntry{{Entity: entity, Ops: []kadm.AlterClientQuotaOp{op}}})
		if err != nil || altered[0].Err != nil {
			t.Fatalf("%v, %+v", err, altered)
		}
		got, err := admin.DescribeClientQuotas(ctx, true, []kadm.DescribeClientQuotaComponent{{Type: "client-id", MatchName: &name, MatchType: kmsg.QuotasMatchTypeExact}})
		if err != nil {
			t.Fatal(err)
		}
		if op.Remove && len(got) != 0 || !op.Remove && (len(got) != 1 || got[0].Values[0].Value != 5e6) {
			t.Errorf("%+v", got)
		}
	}
}
