package single

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"millrace/coord"
	"millrace/engine/vfs"
	"millrace/wire"
)

// producerBlock is how many producer ids are taken at once: each block costs
// one synced write of the state. As Kafka's.
const producerBlock = 1000

// keepDeleting bounds the deleted topics that one run notes, at some 300 bytes
// each. Only one whose logs could not be removed needs its note.
const keepDeleting = 1000

// Options say where the state is and who the broker is.
type Options struct {
	FS        vfs.FS // nil: vfs.OS()
	Path      string // of the state file; its directory must exist
	BrokerID  int32
	ClusterID string // as meta.properties has it; "": the file's, or a new one
	Logger    *slog.Logger
	Random    io.Reader // for ids; nil: crypto/rand
}

// Service is the one-file coord.Service.
type Service struct {
	o     Options
	fresh bool // no file was there at Open
	image atomic.Pointer[coord.Image]

	mu struct { // one change at a time, subscribers' calls included
		sync.Mutex
		state       *state
		subscribers []*subscriber
		broken      error // after an error that left the file's content in doubt
	}
}

type subscriber struct{ f func(*coord.Image) }

var _ coord.Service = (*Service)(nil)

// Open reads the state. It writes nothing: a missing file is made by the first
// change or by Adopt. Errors are *FileError if the file cannot be used, or say
// that the data belongs to another cluster.
func Open(o Options) (*Service, error) {
	if o.FS == nil {
		o.FS = vfs.OS()
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	st, found, err := load(o.FS, o.Path)
	if err != nil {
		return nil, err
	}
	s := &Service{o: o, fresh: !found}
	switch {
	case !found:
		st = &state{ClusterID: o.ClusterID}
		if st.ClusterID == "" {
			id, err := s.newID()
			if err != nil {
				return nil, err
			}
			st.ClusterID = coord.IDText(id)
		}
	case o.ClusterID != "" && o.ClusterID != st.ClusterID:
		return nil, fmt.Errorf("topic state %s belongs to cluster %s, the data directory to cluster %s", o.Path, st.ClusterID, o.ClusterID)
	}
	s.mu.state = st
	s.image.Store(coord.NewImage(st.ClusterID, o.BrokerID, nil, s.topics(st)).WithBrokerConfigs(st.brokerConfigs()).WithNamedConfigs(st.Groups, st.ClientMetrics).WithQuotas(st.quotas()))
	return s, nil
}

// Fresh says that no state file was there.
func (s *Service) Fresh() bool { return s.fresh }

// Image is the state last published.
func (s *Service) Image() *coord.Image { return s.image.Load() }

// Subscribe is coord.Service's.
func (s *Service) Subscribe(f func(*coord.Image)) (cancel func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub := &subscriber{f}
	s.mu.subscribers = append(s.mu.subscribers, sub)
	f(s.image.Load())
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.mu.subscribers = slices.DeleteFunc(s.mu.subscribers, func(x *subscriber) bool { return x == sub })
	}
}

// RegisterBroker makes the one broker known.
func (s *Service) RegisterBroker(_ context.Context, b coord.Broker) error {
	if b.ID != s.o.BrokerID {
		return fmt.Errorf("broker %d cannot join: this is the single broker %d", b.ID, s.o.BrokerID)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.publish(s.image.Load().WithBrokers(b.ID, []coord.Broker{b}))
	return nil
}

// publish calls the subscribers, then shows the image. Caller holds mu.
func (s *Service) publish(img *coord.Image) {
	for _, sub := range s.mu.subscribers {
		sub.f(img)
	}
	s.image.Store(img)
}

// CreateTopics is coord.Service's: one synced write for all that are accepted.
func (s *Service) CreateTopics(ctx context.Context, topics []coord.NewTopic, validateOnly bool) []coord.TopicResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	img := s.image.Load()
	planner := coord.NewPlanner(img, topics)
	results := make([]coord.TopicResult, len(topics))
	var made []coord.Topic
	for i, t := range topics {
		r := planner.Plan(t)
		if r.Code == 0 && !validateOnly {
			var err error
			if r.Topic.ID, err = s.newTopicID(img); err != nil {
				r = storageFailed(t.Name, err)
			} else {
				made = append(made, *r.Topic)
			}
		}
		results[i] = r
	}
	if len(made) == 0 {
		return results
	}
	next := s.mu.state.clone()
	for i := range made {
		next.Topics = append(next.Topics, stateOf(&made[i]))
	}
	slices.SortFunc(next.Topics, byName)
	if err := s.commit(ctx, next); err != nil {
		for i := range results {
			if results[i].Code == 0 {
				results[i] = storageFailed(results[i].Name, err)
			}
		}
		return results
	}
	s.publish(img.With(made, nil))
	return results
}

// DeleteTopics is coord.Service's. The topics stay in the state as being
// deleted until a later start has not found their logs any more, so that logs
// which a crash or a failure left are known for what they are (see Adopt).
func (s *Service) DeleteTopics(ctx context.Context, names []string) []coord.TopicResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	img := s.image.Load()
	results := make([]coord.TopicResult, len(names))
	next := s.mu.state.clone()
	var gone []string
	for i, name := range names {
		t := img.Topic(name)
		if t == nil || slices.Contains(gone, name) {
			results[i] = coord.TopicResult{Name: name, Code: wire.ErrUnknownTopicOrPartition, Message: fmt.Sprintf("topic %q does not exist", name)}
			continue
		}
		results[i] = coord.TopicResult{Name: name, Topic: t}
		gone = append(gone, name)
		next.Deleting = append(next.Deleting, topicState{Name: name, ID: coord.IDText(t.ID)})
	}
	next.Deleting = next.Deleting[max(0, len(next.Deleting)-keepDeleting):]
	if len(gone) == 0 {
		return results
	}
	next.Topics = slices.DeleteFunc(next.Topics, func(t topicState) bool { return slices.Contains(gone, t.Name) })
	if err := s.commit(ctx, next); err != nil {
		for i := range results {
			if results[i].Code == 0 {
				results[i] = storageFailed(results[i].Name, err)
			}
		}
		return results
	}
	s.publish(img.With(nil, gone))
	return results
}

// AllocateProducerIDs is coord.Service's.
func (s *Service) AllocateProducerIDs(ctx context.Context) (first, count int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.mu.state.clone()
	first = next.NextProducerID
	if next.NextProducerID += producerBlock; next.check() != nil {
		return 0, 0, errors.New("producer ids are used up")
	}
	if err := s.commit(ctx, next); err != nil {
		return 0, 0, err
	}
	return first, producerBlock, nil
}

// BumpEpochs raises every partition's leader epoch. For a start after an
// unclean stop: offsets above what survived may be given out anew, and readers
// can tell by the epoch. Publishes a new image.
func (s *Service) BumpEpochs(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.mu.state.Topics) == 0 {
		return nil
	}
	next := s.mu.state.clone()
	for i, t := range next.Topics {
		next.Topics[i].Epochs = slices.Clone(t.Epochs)
		for p := range next.Topics[i].Epochs {
			next.Topics[i].Epochs[p]++
		}
	}
	if err := s.commit(ctx, next); err != nil {
		return err
	}
	s.publish(s.image.Load().With(s.topics(next), nil))
	return nil
}

// Close ends all changes. The state is always on disk already.
func (s *Service) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.broken == nil {
		s.mu.broken = errors.New("closed")
	}
	s.mu.subscribers = nil
	return nil
}

// commit makes next the durable state. Caller holds mu.
func (s *Service) commit(ctx context.Context, next *state) error {
	if s.mu.broken != nil {
		return fmt.Errorf("topic state %s takes no changes until the next start: %w", s.o.Path, s.mu.broken)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	changed, err := save(s.o.FS, s.o.Path, next)
	if err != nil {
		if changed {
			// The file may be the old or the new one. Going on from either
			// would be a guess.
			s.mu.broken = err
		}
		s.o.Logger.Error("topic state not written", "file", s.o.Path, "error", err)
		return fmt.Errorf("topic state %s not written: %w", s.o.Path, err)
	}
	s.mu.state = next
	return nil
}

func storageFailed(name string, err error) coord.TopicResult {
	return coord.TopicResult{Name: name, Code: wire.ErrKafkaStorageError, Message: err.Error()}
}

// clone copies the state for a change: slices are new, elements are shared.
func (s *state) clone() *state {
	c := *s
	c.Topics, c.Deleting = slices.Clone(s.Topics), slices.Clone(s.Deleting)
	return &c
}

func byName(a, b topicState) int { return strings.Compare(a.Name, b.Name) }

func stateOf(t *coord.Topic) topicState {
	epochs := make([]int32, len(t.Partitions))
	for i := range epochs {
		epochs[i] = t.Partitions[i].Epoch
	}
	return topicState{Name: t.Name, ID: coord.IDText(t.ID), Epochs: epochs, Config: t.Config}
}

// topics turns the state's topics into the image's. The one broker leads all.
func (s *Service) topics(st *state) []coord.Topic {
	self := []int32{s.o.BrokerID}
	out := make([]coord.Topic, len(st.Topics))
	for i, t := range st.Topics {
		id, _ := coord.ParseID(t.ID) // checked when it was read or made
		out[i] = coord.Topic{Name: t.Name, ID: id, Config: t.Config, Internal: coord.InternalName(t.Name), Partitions: make([]coord.Partition, len(t.Epochs))}
		for p, epoch := range t.Epochs {
			out[i].Partitions[p] = coord.Partition{Leader: s.o.BrokerID, Epoch: epoch, Replicas: self, ISR: self}
		}
	}
	return out
}

// newTopicID makes an id that no topic has.
func (s *Service) newTopicID(img *coord.Image) (coord.ID, error) {
	for {
		id, err := s.newID()
		if err != nil || img.TopicByID(id) == nil {
			return id, err
		}
	}
}

func (s *Service) newID() (coord.ID, error) { return coord.NewID(s.o.Random) }
