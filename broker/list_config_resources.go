package broker

import (
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/wire"
)

// handleListConfigResources serves ListConfigResources. Version 0 asks for the
// resources of client metrics alone. Of those, and of groups, there are none with
// settings; loggers have none that could be changed.
func (b *Broker) handleListConfigResources(_ *requestContext, request kmsg.Request) kmsg.Response {
	req := request.(*kmsg.ListConfigResourcesRequest)
	resp := req.ResponseKind().(*kmsg.ListConfigResourcesResponse)
	if req.Version == 0 {
		return resp
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
	if wants(kmsg.ConfigResourceTypeBroker) {
		for _, broker := range img.Brokers() {
			add(kmsg.ConfigResourceTypeBroker, strconv.Itoa(int(broker.ID)))
		}
	}
	return resp
}

// resourceTypes are those that may be asked for.
var resourceTypes = []kmsg.ConfigResourceType{
	kmsg.ConfigResourceTypeTopic, kmsg.ConfigResourceTypeBroker, kmsg.ConfigResourceTypeBrokerLogger,
	kmsg.ConfigResourceTypeClientMetrics, kmsg.ConfigResourceTypeGroupConfig,
}
