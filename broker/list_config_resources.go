package broker

import (
	"maps"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/wire"
)

// handleListConfigResources serves ListConfigResources. Version 0 asks for the
// subscriptions to clients' metrics alone. Groups are listed if they have settings.
func (b *Broker) handleListConfigResources(_ *requestContext, request kmsg.Request) kmsg.Response {
	req := request.(*kmsg.ListConfigResourcesRequest)
	resp := req.ResponseKind().(*kmsg.ListConfigResourcesResponse)
	if req.Version == 0 {
		req.ResourceTypes = []int8{int8(kmsg.ConfigResourceTypeClientMetrics)}
	}
	for _, t := range req.ResourceTypes {
		if !slices.Contains(resourceTypes, kmsg.ConfigResourceType(t)) {
			resp.ErrorCode = wire.ErrUnsupportedVersion // Kafka's code for a type it does not list
			return resp
		}
	}
	wants := func(t kmsg.ConfigResourceType) bool {
		return len(req.ResourceTypes) == 0 || slices.Contains(req.ResourceTypes, int8(t))
	}
	img := b.coord.Image()
	add := func(t kmsg.ConfigResourceType, name string) {
		r := kmsg.NewListConfigResourcesResponseConfigResource()
		r.Type, r.Name = int8(t), name
		resp.ConfigResources = append(resp.ConfigResources, r)
	}
	if wants(kmsg.ConfigResourceTypeTopic) {
		for _, name := range img.Names() {
			add(kmsg.ConfigResourceTypeTopic, name)
		}
	}
	for _, t := range []kmsg.ConfigResourceType{kmsg.ConfigResourceTypeBroker, kmsg.ConfigResourceTypeBrokerLogger} {
		if wants(t) {
			for _, broker := range img.Brokers() {
				add(t, strconv.Itoa(int(broker.ID)))
			}
		}
	}
	for i := range namedKinds {
		if n := &namedKinds[i]; wants(n.kind) {
			for _, name := range slices.Sorted(maps.Keys(n.of(img))) {
				add(n.kind, name)
			}
		}
	}
	return resp
}

// resourceTypes are those that may be asked for.
var resourceTypes = []kmsg.ConfigResourceType{
	kmsg.ConfigResourceTypeTopic, kmsg.ConfigResourceTypeBroker, kmsg.ConfigResourceTypeBrokerLogger,
	kmsg.ConfigResourceTypeClientMetrics, kmsg.ConfigResourceTypeGroupConfig,
}
