package broker

import "github.com/twmb/franz-go/pkg/kmsg"

// groupOperations is what a client may do with a group while there is no access
// control: read, delete, describe, describe configs, alter configs.
const groupOperations = 1<<3 | 1<<6 | 1<<8 | 1<<10 | 1<<11

func (b *Broker) handleDescribeGroups(_ *requestContext, request kmsg.Request) kmsg.Response {
	return b.groups.Describe(request.(*kmsg.DescribeGroupsRequest), groupOperations)
}

func (b *Broker) handleConsumerGroupDescribe(_ *requestContext, request kmsg.Request) kmsg.Response {
	return b.groups.DescribeConsumers(request.(*kmsg.ConsumerGroupDescribeRequest), groupOperations)
}

func (b *Broker) handleListGroups(_ *requestContext, request kmsg.Request) kmsg.Response {
	return b.groups.List(request.(*kmsg.ListGroupsRequest))
}

func (b *Broker) handleDeleteGroups(_ *requestContext, request kmsg.Request) kmsg.Response {
	return b.groups.DeleteGroups(request.(*kmsg.DeleteGroupsRequest))
}
