package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/tools/internal/client"
)

// quotaNames are the quotas of each type of entity.
var quotaNames = map[string][]string{
	"users":   {"consumer_byte_rate", "controller_mutation_rate", "producer_byte_rate", "request_percentage"},
	"clients": {"consumer_byte_rate", "controller_mutation_rate", "producer_byte_rate", "request_percentage"},
	"ips":     {"connection_creation_rate"},
}

// quotaTypes are the protocol's names of the entity types.
var quotaTypes = map[string]string{"users": "user", "clients": "client-id", "ips": "ip"}

// onlyQuotas refuses names that are no quotas; SCRAM passwords are not built in.
func (c configChange) onlyQuotas(kind string) error {
	var unknown []string
	for name := range c.set {
		if !slices.Contains(quotaNames[kind], name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		return fmt.Errorf("Only quota configs can be added for '%s' using --bootstrap-server. Unexpected config names: Set(%s)", kind, strings.Join(unknown, ", ")) //nolint:staticcheck // Kafka's words
	}
	for _, name := range c.remove {
		if !slices.Contains(quotaNames[kind], name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		return fmt.Errorf("Only quota configs can be deleted for '%s' using --bootstrap-server. Unexpected config names: ArrayBuffer(%s)", kind, strings.Join(unknown, ", ")) //nolint:staticcheck // Kafka's words
	}
	return nil
}

// askQuotas gets the quotas of the entities: of one, of its type's default, or of all.
func askQuotas(ctx context.Context, cl *client.Admin, entities []configEntity) (kadm.DescribedClientQuotas, error) {
	if err := client.NeedAPIs(ctx, cl, kmsg.DescribeClientQuotas); err != nil {
		return nil, err
	}
	var filter []kadm.DescribeClientQuotaComponent
	for _, e := range entities {
		c := kadm.DescribeClientQuotaComponent{Type: quotaTypes[e.kind], MatchType: kmsg.QuotasMatchTypeAny}
		switch {
		case e.name == nil:
		case *e.name == "":
			c.MatchType = kmsg.QuotasMatchTypeDefault
		default:
			c.MatchType, c.MatchName = kmsg.QuotasMatchTypeExact, e.name
		}
		filter = append(filter, c)
	}
	return cl.DescribeClientQuotas(ctx, true, filter)
}

func describeQuotasScript(ctx context.Context, cl *client.Admin, out io.Writer, entities []configEntity) error {
	quotas, err := askQuotas(ctx, cl, entities)
	if err != nil {
		return err
	}
	for _, q := range quotas {
		fmt.Fprintf(out, "Quota configs for %s are %s\n", quotaEntityText(q.Entity), quotaValuesText(q.Values))
	}
	return nil
}

// quotaEntityText is Kafka's phrase: user before client, defaults without a name.
func quotaEntityText(entity kadm.ClientQuotaEntity) string {
	var parts []string
	for _, kind := range []struct{ key, named string }{{"user", "user-principal"}, {"client-id", "client-id"}, {"ip", "ip"}} {
		for _, c := range entity {
			switch {
			case c.Type != kind.key:
			case c.Name == nil:
				parts = append(parts, "the default "+kind.named)
			default:
				parts = append(parts, fmt.Sprintf("%s '%s'", kind.named, *c.Name))
			}
		}
	}
	return strings.Join(parts, ", ")
}

func quotaValuesText(values kadm.ClientQuotaValues) string {
	values = slices.SortedFunc(slices.Values(values), func(a, b kadm.ClientQuotaValue) int { return strings.Compare(a.Key, b.Key) })
	var parts []string
	for _, v := range values {
		parts = append(parts, v.Key+"="+javaDouble(v.Value))
	}
	return strings.Join(parts, ", ")
}

// javaDouble writes a number as Java's Double.toString does.
func javaDouble(v float64) string {
	if a := math.Abs(v); a != 0 && (a < 1e-3 || a >= 1e7) && !math.IsInf(v, 0) {
		digits, exponent, _ := strings.Cut(strconv.FormatFloat(v, 'E', -1, 64), "E")
		if !strings.Contains(digits, ".") {
			digits += ".0"
		}
		n, _ := strconv.Atoi(exponent)
		return digits + "E" + strconv.Itoa(n)
	}
	return javaFloat(v, 64)
}

// alterQuotas changes the quotas of one entity. What is to be taken back must be there.
func alterQuotas(ctx context.Context, cl *client.Admin, entities []configEntity, change configChange) error {
	if err := client.NeedAPIs(ctx, cl, kmsg.AlterClientQuotas, kmsg.DescribeClientQuotas); err != nil {
		return err
	}
	old, err := askQuotas(ctx, cl, entities)
	if err != nil {
		return err
	}
	entry := kadm.AlterClientQuotaEntry{}
	for _, e := range entities {
		c := kadm.ClientQuotaEntityComponent{Type: quotaTypes[e.kind]}
		if e.name != nil && *e.name != "" {
			c.Name = e.name
		}
		entry.Entity = append(entry.Entity, c)
	}
	var missing []string
	for _, name := range change.remove {
		if len(old) == 0 || !slices.ContainsFunc(old[0].Values, func(v kadm.ClientQuotaValue) bool { return v.Key == name }) {
			missing = append(missing, name)
		}
		entry.Ops = append(entry.Ops, kadm.AlterClientQuotaOp{Key: name, Remove: true})
	}
	if len(missing) > 0 {
		return &plainError{"Invalid config(s): " + strings.Join(missing, ",")}
	}
	for name, value := range change.set {
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return &plainError{fmt.Sprintf("Cannot parse quota configuration value for %s: %s", name, value)}
		}
		entry.Ops = append(entry.Ops, kadm.AlterClientQuotaOp{Key: name, Value: n})
	}
	altered, err := cl.AlterClientQuotas(ctx, []kadm.AlterClientQuotaEntry{entry})
	if err != nil {
		return err
	}
	for _, a := range altered {
		if a.Err != nil {
			return refusedBy(a.Err, a.ErrMessage)
		}
	}
	return nil
}
