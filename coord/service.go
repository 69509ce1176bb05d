package coord

import (
	"context"
	"errors"
)

// ErrUnavailable says that what coordinates the cluster cannot be reached just now;
// trying again later may help.
var ErrUnavailable = errors.New("coordination cannot be reached just now")

// Service is what coordinates the cluster, as a broker sees it. All methods
// may be called from any goroutine.
type Service interface {
	// Image is the state last published; never nil.
	Image() *Image

	// Subscribe calls f at once with the current image and then with every
	// new one, in order, one call at a time, before Image returns it: once a
	// topic can be seen in Image, every subscriber has acted on it. f must not
	// call the Service's changing methods. cancel waits for a running call.
	Subscribe(f func(*Image)) (cancel func())

	// CreateTopics creates each topic or says why not, each for itself. What
	// is answered without an error is durable and visible in Image.
	// validateOnly runs all checks and changes nothing.
	CreateTopics(ctx context.Context, topics []NewTopic, validateOnly bool) []TopicResult

	// DeleteTopics deletes topics by name, each for itself.
	DeleteTopics(ctx context.Context, names []string) []TopicResult

	// CreatePartitions gives topics more partitions, each topic for itself, under
	// the rules of CreateTopics.
	CreatePartitions(ctx context.Context, topics []MorePartitions, validateOnly bool) []TopicResult

	// AlterConfigs changes the settings of topics, brokers and the like, each
	// resource for itself. What is answered without an error is durable, and every subscriber
	// has acted on it.
	AlterConfigs(ctx context.Context, changes []ConfigChange, validateOnly bool) []ConfigResult

	// AlterQuotas changes what clients may use, each entity for itself, under the
	// rules of AlterConfigs.
	AlterQuotas(ctx context.Context, changes []QuotaChange, validateOnly bool) []ConfigResult

	// AllocateProducerIDs hands out a block of producer ids that nobody else
	// ever gets: recorded durably before it returns. The error is ErrUnavailable if
	// trying again may help.
	AllocateProducerIDs(ctx context.Context) (first, count int64, err error)

	// RegisterBroker makes a broker live at these endpoints, replacing what
	// was known of it.
	RegisterBroker(ctx context.Context, b Broker) error

	Close() error
}

// NewTopic asks for a topic.
type NewTopic struct {
	Name       string
	Partitions int32     // > 0; ignored if Assignment is given
	Factor     int16     // replication factor, > 0; ignored if Assignment is given
	Assignment [][]int32 // replicas by partition number, the first preferred; nil: the service assigns
	Config     map[string]string
	Internal   bool
}

// TopicResult answers for one topic. Code is the protocol's error code, 0 for
// success; Message says what was wrong, with the limit or the value.
type TopicResult struct {
	Name    string
	Topic   *Topic // as created, deleted, or as it would be created; nil on error
	Code    int16
	Message string
}

// MorePartitions asks for more partitions of a topic that is there.
type MorePartitions struct {
	Name       string
	Count      int32     // in all, afterwards
	Assignment [][]int32 // replicas of the new ones, in order; nil: the service assigns

	// Prepare, if there is one, is called with the topic as it would be, once it has
	// passed all checks and before anything is durable; not for validateOnly. An
	// error refuses the change: the place to find out that there is no room. It
	// must not call the Service.
	Prepare func(next *Topic) error
}

// ConfigResource names what has settings: the one that is not empty of a topic, a
// group (whether it is there or not) and a subscription to clients' metrics; a
// broker if all are.
type ConfigResource struct {
	Topic         string
	Group         string
	ClientMetrics string
	Broker        int32 // AllBrokers means the settings of all
}

// AllBrokers is the Broker of the resource that holds for every broker.
const AllBrokers int32 = -1

// ConfigChange edits the settings of one resource. Edit gets those that it has
// (nil if none; not to be changed) and returns those that it is to have, or a
// code of the protocol and what is wrong. It may be called more than once, must
// not call the Service, and decides alone what is allowed: the service knows no
// key's meaning.
type ConfigChange struct {
	Resource ConfigResource
	Edit     func(before map[string]string) (after map[string]string, code int16, message string)
}

// ConfigResult answers for one resource.
type ConfigResult struct {
	Code    int16
	Message string
}
