package broker

import (
	"github.com/twmb/franz-go/pkg/kmsg"
)

// handleAlterConfigs serves AlterConfigs, the older of the two: what is sent
// replaces all settings that a resource has.
func (b *Broker) handleAlterConfigs(rc *requestContext, request kmsg.Request) kmsg.Response {
	req := request.(*kmsg.AlterConfigsRequest)
	resp := req.ResponseKind().(*kmsg.AlterConfigsResponse)
	edits := make([]configEdit, len(req.Resources))
	for i := range req.Resources {
		asked := &req.Resources[i]
		edits[i] = configEdit{kind: asked.ResourceType, name: asked.ResourceName, replace: true}
		for _, c := range asked.Configs {
			edits[i].ops = append(edits[i].ops, configOp{c.Name, kmsg.IncrementalAlterConfigOpSet, c.Value})
		}
	}
	b.alterConfigs(rc, edits, req.ValidateOnly)
	for i := range edits {
		e := &edits[i]
		r := kmsg.NewAlterConfigsResponseResource()
		r.ResourceType, r.ResourceName, r.ErrorCode = e.kind, e.name, e.code
		if e.message != "" {
			r.ErrorMessage = &e.message
		}
		resp.Resources = append(resp.Resources, r)
	}
	return resp
}

// handleIncrementalAlterConfigs serves IncrementalAlterConfigs: settings are set,
// deleted, and their lists added to and taken from, one by one.
func (b *Broker) handleIncrementalAlterConfigs(rc *requestContext, request kmsg.Request) kmsg.Response {
	req := request.(*kmsg.IncrementalAlterConfigsRequest)
	resp := req.ResponseKind().(*kmsg.IncrementalAlterConfigsResponse)
	edits := make([]configEdit, len(req.Resources))
	for i := range req.Resources {
		asked := &req.Resources[i]
		edits[i] = configEdit{kind: asked.ResourceType, name: asked.ResourceName}
		for _, c := range asked.Configs {
			edits[i].ops = append(edits[i].ops, configOp{c.Name, c.Op, c.Value})
		}
	}
	b.alterConfigs(rc, edits, req.ValidateOnly)
	for i := range edits {
		e := &edits[i]
		r := kmsg.NewIncrementalAlterConfigsResponseResource()
		r.ResourceType, r.ResourceName, r.ErrorCode = e.kind, e.name, e.code
		if e.message != "" {
			r.ErrorMessage = &e.message
		}
		resp.Resources = append(resp.Resources, r)
	}
	return resp
}
