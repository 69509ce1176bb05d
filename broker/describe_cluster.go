package broker

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/wire"
)

// Kinds of endpoint that DescribeCluster may be asked for (v1+).
const (
	endpointBrokers     = 1
	endpointControllers = 2
)

// handleDescribeCluster serves DescribeCluster: the brokers, at the addresses of the
// listener that the request came in on. No broker is ever fenced: one that is not
// live is not in the image.
func (b *Broker) handleDescribeCluster(rc *requestContext, request kmsg.Request) kmsg.Response {
	req := request.(*kmsg.DescribeClusterRequest)
	resp := req.ResponseKind().(*kmsg.DescribeClusterResponse)
	resp.EndpointType, resp.ClusterAuthorizedOperations = endpointBrokers, notAsked
	refuse := func(code int16, format string, args ...any) kmsg.Response {
		message := fmt.Sprintf(format, args...)
		resp.ErrorCode, resp.ErrorMessage = code, &message
		return resp
	}
	switch req.EndpointType {
	case endpointBrokers:
	case endpointControllers:
		return refuse(wire.ErrMismatchedEndpointType, "endpoint type %d (controllers) was asked for, but listener %s has brokers (type %d)", endpointControllers, rc.listener, endpointBrokers)
	default:
		return refuse(wire.ErrUnsupportedEndpointType, "endpoint type %d is unknown; there are brokers (%d) and controllers (%d)", req.EndpointType, endpointBrokers, endpointControllers)
	}
	img := b.coord.Image()
	resp.ClusterID, resp.ControllerID = img.ClusterID(), img.ControllerID()
	for _, m := range metadataBrokers(img, rc.listener) {
		one := kmsg.NewDescribeClusterResponseBroker()
		one.NodeID, one.Host, one.Port, one.Rack = m.NodeID, m.Host, m.Port, m.Rack
		resp.Brokers = append(resp.Brokers, one)
	}
	if req.IncludeClusterAuthorizedOperations {
		resp.ClusterAuthorizedOperations = clusterOperations
	}
	return resp
}
