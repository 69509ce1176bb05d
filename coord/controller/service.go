package controller

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"millrace/coord"
	"millrace/coord/controller/cluster"
	"millrace/coord/controller/znode"
	"millrace/wire"
)

// Options say where the tree is and who the broker is.
type Options struct {
	Dial      Dialer
	BrokerID  int32
	ClusterID string            // as meta.properties has it; "": the tree's, or a new one
	Protocols map[string]string // security protocol by listener, for the broker's node
	Unclean   bool              // unclean.leader.election.enable where neither topic nor brokers have it set

	// Peer reaches another live broker, nil if it cannot be reached: it gets no orders then. Asked for each order; not for this broker.
	Peer func(b coord.Broker) Peer

	// Stopped is asked whether this broker has deleted a replica: an error says why not yet, and the topic's deletion goes on at the next start. nil: it has.
	Stopped func(r StoppedReplica) error

	SessionTimeout time.Duration    // what Dial asks for: for so long the node of a broker that died may stand in the way of its next life; 0: 18 s
	Retry          time.Duration    // between tries to get a session or to read the tree; 0: 250 ms
	Readers        int              // how many nodes are read at once when all is read; 0: 16
	Now            func() time.Time // nil: time.Now
	Random         io.Reader        // for ids; nil: crypto/rand
	Logger         *slog.Logger

	batch int // bytes of one multi; 0: maxBatchBytes
}

// Service is coord.Service over the tree.
type Service struct {
	o      Options
	member *member
	events *events
	ctx    context.Context // ends with Close
	stop   context.CancelFunc
	ended  chan struct{} // closed when run has ended
	status statusKept

	mu struct { // one change of the tree at a time
		sync.Mutex
		conn    Conn             // nil: no session
		self    *coord.Broker    // nil: RegisterBroker was not called yet
		epoch   int64            // of our node below /brokers/ids in this session; 0: not there
		lead    *lead            // nil: not the controller
		stale   bool             // what is known must be read again before anything is written
		changes map[string]int64 // by queue, the notification read last
		own     map[string]bool  // notifications that this broker has written and not come across yet
		fresh   bool             // the tree is to be filled (see Fresh)
		made    bool             // and this Service has made it, so that it is empty
		read    *cluster.State   // the topics as first has read them, for Adopt
		closed  bool
	}
}

var _ coord.Service = (*Service)(nil)

// Open gets a session, makes the nodes that every broker makes, and reads the tree. It fails if coordination does not answer before ctx ends, if the tree
// cannot be read, or if it belongs to another cluster.
func Open(ctx context.Context, o Options) (*Service, error) {
	if o.SessionTimeout == 0 {
		o.SessionTimeout = 18 * time.Second
	}
	if o.Retry == 0 {
		o.Retry = 250 * time.Millisecond
	}
	if o.Readers == 0 {
		o.Readers = 16
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.batch == 0 {
		o.batch = maxBatchBytes
	}
	s := &Service{o: o, events: newEvents(), ended: make(chan struct{})}
	s.ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	s.mu.changes, s.mu.own = map[string]int64{}, map[string]bool{}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.member = newMember(s)
	conn, err := s.dial(ctx)
	if err == nil {
		s.begin(conn)
		err = s.first()
	}
	if err != nil {
		s.drop()
		s.stop()
		return nil, err
	}
	go s.run() // owner: s; ends when ctx does; Close waits
	return s, nil
}

// first learns the cluster's id and builds the first image: topics as they are written, but led by nobody, as no controller has said so yet. Then
// nothing is stale.
func (s *Service) first() error {
	if err := s.makeNodes(); err != nil {
		return err
	}
	if err := s.markFresh(); err != nil {
		return err
	}
	id, err := s.clusterID()
	if err != nil {
		return err
	}
	tree, err := s.readTopics(false)
	if err != nil {
		return err
	}
	s.mu.read = tree
	settings, err := s.followSettings(tree.Names())
	if err != nil {
		return err
	}
	var topics []coord.Topic
	for _, name := range tree.Names() {
		t := tree.Topics[name]
		if t.Deletion != nil || t.ID == (coord.ID{}) {
			continue
		}
		topics = append(topics, t.Coord(settings.topics[name])) // led by nobody
	}
	s.member.begin(id, topics, settings)
	s.mu.stale = false
	return nil
}

// Image is the state last published.
func (s *Service) Image() *coord.Image { return s.member.image.Load() }

// Subscribe is coord.Service's.
func (s *Service) Subscribe(f func(*coord.Image)) (cancel func()) { return s.member.subscribe(f) }

// Controller says whether this broker is the elected controller, and in which epoch.
func (s *Service) Controller() (epoch int32, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.lead == nil {
		return 0, false
	}
	return s.mu.lead.epoch, true
}

// BrokerEpoch is the epoch of this broker's registration, 0 if it has none just now.
func (s *Service) BrokerEpoch() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.epoch
}

// RegisterBroker makes this broker live and has it stand for election, now and after every loss of its session. It returns once the image has it. While
// the node of this broker's last life is there, it waits, twice the time-out of a session at most. A damaged node among what only the controller reads is
// an error at once.
func (s *Service) RegisterBroker(ctx context.Context, b coord.Broker) error {
	if b.ID != s.o.BrokerID {
		return fmt.Errorf("broker %d cannot be registered by broker %d", b.ID, s.o.BrokerID)
	}
	seen := make(chan struct{}, 1)
	cancel := s.Subscribe(func(img *coord.Image) {
		if known := img.Broker(b.ID); known != nil && sameBroker(*known, b) && img.ControllerID() >= 0 {
			select {
			case seen <- struct{}{}:
			default:
			}
		}
	})
	defer cancel()
	ctx, done := context.WithTimeout(ctx, 2*s.o.SessionTimeout)
	defer done()
	s.mu.Lock()
	for err := s.fillNothing(ctx); err != nil; err = s.fillNothing(ctx) {
		s.mu.Unlock()
		select {
		case <-time.After(s.o.Retry): // a lost answer, or a lost session
		case <-s.ctx.Done():
			return errClosed
		case <-ctx.Done():
			return fmt.Errorf("broker %d is not registered: %w", b.ID, errors.Join(err, context.Cause(ctx)))
		}
		s.mu.Lock()
	}
	s.mu.self = &b
	s.mu.epoch = min(s.mu.epoch, 0) // the node is written anew
	err := s.join()
	s.mu.Unlock()
	s.Status() // for who asks first while something is being changed
	if errors.As(err, new(*damaged)) {
		return fmt.Errorf("broker %d is not registered: %w", b.ID, err)
	}
	if err != nil && !errors.Is(err, errOldLife) {
		s.o.Logger.Warn("this broker is not registered yet", "error", err)
	}
	s.events.wakeUp()
	select {
	case <-seen:
		return nil
	case <-s.ctx.Done():
		return errClosed
	case <-ctx.Done():
		return fmt.Errorf("broker %d is not registered: %w", b.ID, errors.Join(err, context.Cause(ctx)))
	}
}

var errClosed = errors.New("closed")

// Close gives up the session, and with it the broker's registration and office.
func (s *Service) Close() error {
	s.stop()
	<-s.ended
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.closed = true
	s.drop()
	s.member.close()
	return nil
}

// code turns an error of the tree into the protocol's.
func (s *Service) code(err error) (int16, string) {
	switch {
	case errors.Is(err, errMoved), errors.Is(err, errNoSession):
		return wire.ErrNotController, err.Error()
	case errors.As(err, new(*refused)):
		return wire.ErrNotController, "the cluster is being changed by another: " + err.Error()
	}
	return wire.ErrRequestTimedOut, "coordination did not answer, the change may still take effect: " + err.Error()
}

// leading prepares for a change that only the controller may make. Caller holds mu.
func (s *Service) leading(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	switch {
	case s.mu.closed:
		return fmt.Errorf("%w: %w", errMoved, errClosed)
	case s.mu.conn == nil:
		return errNoSession
	}
	if s.mu.stale {
		if err := s.resync(); err != nil {
			return err
		}
	}
	if s.mu.lead == nil {
		return errMoved
	}
	return nil
}

// clusterID finds the cluster's id or gives it one. Another than ours is an error (C5).
func (s *Service) clusterID() (string, error) {
	for {
		data, _, err := s.mu.conn.Get(znode.ClusterIDPath, false)
		switch {
		case err == nil:
			id, err := znode.DecodeClusterID(data)
			if err == nil && s.o.ClusterID != "" && s.o.ClusterID != id {
				return "", fmt.Errorf("coordination belongs to cluster %s, the data directory to cluster %s", id, s.o.ClusterID)
			}
			return id, err
		case !isNoNode(err):
			return "", err
		}
		id := s.o.ClusterID
		if id == "" {
			made, err := coord.NewID(s.o.Random)
			if err != nil {
				return "", err
			}
			id = coord.IDText(made)
		}
		if err := s.ensure("/cluster"); err != nil {
			return "", err
		}
		if _, err := multi(s.mu.conn, create(znode.ClusterIDPath, znode.EncodeClusterID(id))); err != nil && !isNodeExists(err) {
			return "", err
		}
	}
}
