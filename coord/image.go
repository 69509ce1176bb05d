package coord

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"slices"
)

// ID is a topic id. The zero ID means none.
type ID = [16]byte

// Topic is one topic as the cluster knows it. In an Image it is read-only,
// with all it holds.
type Topic struct {
	Name       string
	ID         ID
	Partitions []Partition       // the index is the partition number
	Config     map[string]string // overrides only, under topic key names
	Internal   bool
}

// Partition is who holds one partition.
type Partition struct {
	Leader   int32 // -1: none
	Epoch    int32 // of the leader
	Replicas []int32
	ISR      []int32
}

// Broker is a live broker and where each of its listeners is reached.
type Broker struct {
	ID        int32
	Rack      string // "" = none
	Endpoints []Endpoint
}

// Endpoint is the advertised address of one listener.
type Endpoint struct {
	Listener string // its name, e.g. PLAINTEXT
	Host     string
	Port     int32
}

// Endpoint finds the broker's address on a listener.
func (b *Broker) Endpoint(listener string) (Endpoint, bool) {
	for _, e := range b.Endpoints {
		if e.Listener == listener {
			return e, true
		}
	}
	return Endpoint{}, false
}

// Image is one state of the cluster. It never changes (C4): a new state is a
// new Image, so readers need no lock and may keep it as long as they like.
type Image struct {
	cluster    string
	controller int32
	brokers    []Broker                    // by id
	defaults   map[string]string           // settings of all brokers
	own        map[int32]map[string]string // settings of one broker, by id
	groups     NamedConfigs
	metrics    NamedConfigs
	quotas     map[QuotaEntity]map[string]float64
	byName     map[string]*Topic // shared with older images where unchanged
	byID       map[ID]*Topic
	names      []string // sorted
	partitions int      // of all topics
}

// NewImage builds an image; it takes over what it is given. Topic names and
// ids must be unique. controller is -1 if there is none.
func NewImage(cluster string, controller int32, brokers []Broker, topics []Topic) *Image {
	img := &Image{
		cluster: cluster, controller: controller,
		brokers: slices.SortedFunc(slices.Values(brokers), func(a, b Broker) int { return cmp.Compare(a.ID, b.ID) }),
		byName:  make(map[string]*Topic, len(topics)),
		byID:    make(map[ID]*Topic, len(topics)),
	}
	for i := range topics {
		img.byName[topics[i].Name] = &topics[i]
	}
	img.index()
	return img
}

// With returns a new image with these topics put in (replacing those of the
// same name) and these names taken out.
func (img *Image) With(put []Topic, drop []string) *Image {
	next := *img
	next.byName = maps.Clone(img.byName)
	for _, name := range drop {
		delete(next.byName, name)
	}
	for i := range put {
		next.byName[put[i].Name] = &put[i]
	}
	next.byID = make(map[ID]*Topic, len(next.byName))
	next.index()
	return &next
}

// WithBrokers returns a new image with other brokers.
func (img *Image) WithBrokers(controller int32, brokers []Broker) *Image {
	next := *img
	next.controller = controller
	next.brokers = slices.SortedFunc(slices.Values(brokers), func(a, b Broker) int { return cmp.Compare(a.ID, b.ID) })
	return &next
}

// WithBrokerConfigs returns a new image with other dynamic settings of brokers:
// those of all, and those of one by its id. It takes over the maps.
func (img *Image) WithBrokerConfigs(defaults map[string]string, own map[int32]map[string]string) *Image {
	next := *img
	next.defaults, next.own = defaults, own
	return &next
}

// NamedConfigs are settings by the name of what has them. Never changed in place.
type NamedConfigs map[string]map[string]string

// WithNamedConfigs returns a new image with other settings of groups and of
// subscriptions to clients' metrics. It takes over the maps.
func (img *Image) WithNamedConfigs(groups, clientMetrics NamedConfigs) *Image {
	next := *img
	next.groups, next.metrics = groups, clientMetrics
	return &next
}

// GroupConfigs are the settings of groups that have any. Read-only.
func (img *Image) GroupConfigs() NamedConfigs { return img.groups }

// ClientMetrics are the subscriptions to clients' metrics (KIP-714). Read-only.
func (img *Image) ClientMetrics() NamedConfigs { return img.metrics }

// index fills what follows from byName.
func (img *Image) index() {
	img.names = slices.Sorted(maps.Keys(img.byName))
	img.partitions = 0
	for _, t := range img.byName {
		img.byID[t.ID] = t
		img.partitions += len(t.Partitions)
	}
}

// ClusterID is the cluster's id, 22 letters of URL-safe base64.
func (img *Image) ClusterID() string { return img.cluster }

// ControllerID is the broker that admin requests go to; -1 if there is none.
func (img *Image) ControllerID() int32 { return img.controller }

// Brokers are the live brokers by id. Read-only.
func (img *Image) Brokers() []Broker { return img.brokers }

// Broker finds a live broker; nil if there is none of that id.
func (img *Image) Broker(id int32) *Broker {
	i, ok := slices.BinarySearchFunc(img.brokers, id, func(b Broker, id int32) int { return cmp.Compare(b.ID, id) })
	if !ok {
		return nil
	}
	return &img.brokers[i]
}

// DefaultConfig is what was set for all brokers while they ran. Read-only; nil if
// nothing was.
func (img *Image) DefaultConfig() map[string]string { return img.defaults }

// BrokerConfig is what was set for one broker while it ran; it wins over
// DefaultConfig. Read-only; nil if nothing was.
func (img *Image) BrokerConfig(id int32) map[string]string { return img.own[id] }

// BrokerConfigs are the settings of single brokers by id, of those that have any. Read-only.
func (img *Image) BrokerConfigs() map[int32]map[string]string { return img.own }

// Topic finds a topic by its name; nil if there is none.
func (img *Image) Topic(name string) *Topic { return img.byName[name] }

// TopicByID finds a topic by its id; nil if there is none.
func (img *Image) TopicByID(id ID) *Topic { return img.byID[id] }

// Names are all topics' names, sorted. Read-only.
func (img *Image) Names() []string { return img.names }

// Partitions counts the partitions of all topics.
func (img *Image) Partitions() int { return img.partitions }

// NewID makes a random UUID of version 4. Its text never begins with '-', which
// command lines would take for a flag; zero and one, which mean "none" and the
// metadata log, cannot come out as the version bits are set.
func NewID(random io.Reader) (id ID, err error) {
	for {
		if _, err := io.ReadFull(random, id[:]); err != nil {
			return id, fmt.Errorf("random id: %w", err)
		}
		id[6] = id[6]&0x0f | 0x40
		id[8] = id[8]&0x3f | 0x80
		if IDText(id)[0] != '-' {
			return id, nil
		}
	}
}

// IDText is the text form of topic ids in files, logs and command lines: 22
// letters of URL-safe base64.
func IDText(id ID) string { return base64.RawURLEncoding.EncodeToString(id[:]) }

// ParseID reads the text form.
func ParseID(s string) (id ID, ok bool) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) != len(id) {
		return id, false
	}
	return ID(b), true
}
