package broker

import (
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/wire"
)

// Claim: version 1 lists topics, brokers and their loggers, or what was asked for of them; version 0
// asks for client metrics, of which there are none; a type that nobody lists is refused.
// Method: a table.
func TestListConfigResources(t *testing.T) {
	c := dialAdmin(t, adminBroker(t, ""), "")
	c.createTopic("b", 1)
	c.createTopic("a", 1)
	for _, try := range []struct {
		version int16
		types   []int8
		code    int16
		want    []string
	}{
		{0, nil, 0, nil},
		{1, nil, 0, []string{"2:a", "2:b", "4:0", "8:0"}},
		{1, []int8{4}, 0, []string{"4:0"}},
		{1, []int8{2, 8, 16, 32}, 0, []string{"2:a", "2:b", "8:0"}},
		{1, []int8{2, 3}, wire.ErrUnsupportedVersion, nil},
	} {
		req := kmsg.NewPtrListConfigResourcesRequest()
		req.Version, req.ResourceTypes = try.version, try.types
		r := ask[*kmsg.ListConfigResourcesResponse](c, req)
		var got []string
		for _, one := range r.ConfigResources {
			got = append(got, fmt.Sprintf("%d:%s", one.Type, one.Name))
		}
		if r.ErrorCode != try.code || !slices.Equal(got, try.want) {
			t.Errorf("%v: %d %q", try, r.ErrorCode, got)
		}
	}
}
