package broker

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/wire"
)

// Claim: in every version the brokers are told at the address of the listener that was
// asked, with rack, cluster and controller; operations only when asked for; and what
// is not a broker's endpoint is refused.
// Method: two listeners; all versions; a table of endpoint types.
func TestDescribeCluster(t *testing.T) {
	b := adminBroker(t, "", "broker.rack", "r1", "listeners", "PLAINTEXT://127.0.0.1:0,OTHER://127.0.0.1:0", "listener.security.protocol.map", "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT")
	for _, listener := range []string{"PLAINTEXT", "OTHER"} {
		c := dialAdmin(t, b, listener)
		for version := int16(0); version <= 2; version++ {
			req := kmsg.NewPtrDescribeClusterRequest()
			req.Version, req.IncludeClusterAuthorizedOperations = version, version == 1
			r := ask[*kmsg.DescribeClusterResponse](c, req)
			if r.ErrorCode != 0 || r.ErrorMessage != nil || len(r.ClusterID) != 22 || r.ControllerID != 0 || len(r.Brokers) != 1 || r.EndpointType != 1 {
				t.Fatalf("v%d: %+v", version, r)
			}
			if one := r.Brokers[0]; one.NodeID != 0 || !strings.HasSuffix(b.Addr(listener), ":"+itoa(one.Port)) || textOf(one.Rack) != "r1" || one.IsFenced {
				t.Errorf("v%d: %+v, not at %s", version, one, b.Addr(listener))
			}
			if got := r.ClusterAuthorizedOperations; (got != notAsked) != (version == 1) {
				t.Errorf("v%d: operations %x", version, got)
			}
		}
	}
	for kind, code := range map[int8]int16{2: wire.ErrMismatchedEndpointType, 0: wire.ErrUnsupportedEndpointType, 9: wire.ErrUnsupportedEndpointType} {
		req := kmsg.NewPtrDescribeClusterRequest()
		req.Version, req.EndpointType = 2, kind
		if r := ask[*kmsg.DescribeClusterResponse](dialAdmin(t, b, ""), req); r.ErrorCode != code || r.ErrorMessage == nil || len(r.Brokers) != 0 {
			t.Errorf("type %d: %+v", kind, r)
		}
	}
}
