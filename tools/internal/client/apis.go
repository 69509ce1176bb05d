package client

import (
	"context"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Admin is kadm's client, and the one under it for what kadm has no method for.
type Admin struct {
	*kadm.Client
	Raw *kgo.Client
}

// NewAdmin wraps a client; closing it stays the caller's.
func NewAdmin(cl *kgo.Client) *Admin { return &Admin{kadm.NewClient(cl), cl} }

// MissingAPIError says that the broker does not have what a command needs.
type MissingAPIError struct{ Names []string }

func (e *MissingAPIError) Error() string {
	kind := "API"
	if len(e.Names) > 1 {
		kind = "APIs"
	}
	return fmt.Sprintf("the broker does not have the %s %s, which this command needs", kind, strings.Join(e.Names, " and "))
}

// APIs are the request kinds that every broker of a cluster has.
type APIs map[int16]bool

// AskAPIs asks the brokers what they have. A broker that does not answer has a say
// only if none does.
func AskAPIs(ctx context.Context, cl *Admin) (APIs, error) {
	brokers, err := cl.ApiVersions(ctx)
	if err != nil {
		return nil, err
	}
	var common APIs
	for _, b := range brokers {
		if b.Err != nil {
			err = b.Err
			continue
		}
		has := APIs{}
		b.EachKeySorted(func(key, _, _ int16) { has[key] = common == nil || common[key] })
		common = has
	}
	if common == nil {
		return nil, err
	}
	return common, nil
}

// Need is a MissingAPIError that names those of the keys that are not there, or nil.
func (a APIs) Need(keys ...kmsg.Key) error {
	var missing []string
	for _, key := range keys {
		if !a[key.Int16()] {
			missing = append(missing, key.Name())
		}
	}
	if missing == nil {
		return nil
	}
	return &MissingAPIError{missing}
}

// NeedAPIs asks the brokers and is a MissingAPIError unless all the keys are there.
func NeedAPIs(ctx context.Context, cl *Admin, keys ...kmsg.Key) error {
	has, err := AskAPIs(ctx, cl)
	if err != nil {
		return err
	}
	return has.Need(keys...)
}
