package znode

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"millrace/coord"
)

// Broker is /brokers/ids/N: a live broker.
type Broker struct {
	Endpoints []coord.Endpoint
	Protocols map[string]string // security protocol by listener; "" in old nodes: the listener's own name
	Rack      string            // "" = none
	JMXPort   int32             // -1 = none
	Timestamp int64             // milliseconds
}

type features map[string]map[string]int16

type brokerJSON struct {
	Features  features          `json:"features"`
	Protocols map[string]string `json:"listener_security_protocol_map,omitempty"`
	Endpoints []string          `json:"endpoints"`
	Rack      string            `json:"rack,omitempty"`
	JMXPort   int32             `json:"jmx_port"`
	Port      int32             `json:"port"`
	Host      *string           `json:"host"`
	Version   int               `json:"version"`
	Timestamp string            `json:"timestamp"`
}

// Encode is version 5. host and port are of the first listener that speaks plaintext, as old clients expect; null and -1 if there is none.
func (b *Broker) Encode() []byte {
	j := brokerJSON{Features: features{}, Protocols: b.Protocols, Endpoints: []string{}, Rack: b.Rack, JMXPort: b.JMXPort, Port: -1, Version: 5, Timestamp: strconv.FormatInt(b.Timestamp, 10)}
	for _, e := range b.Endpoints {
		j.Endpoints = append(j.Endpoints, e.Listener+"://"+net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port))))
		if protocol, ok := b.Protocols[e.Listener]; j.Host == nil && (protocol == "PLAINTEXT" || !ok && e.Listener == "PLAINTEXT") {
			j.Host, j.Port = &e.Host, e.Port
		}
	}
	return encode(j)
}

// DecodeBroker reads versions 1 to 5; before 2 there was one plaintext endpoint.
func DecodeBroker(data []byte) (b Broker, err error) {
	var j brokerJSON
	if err := decode("broker", data, &j, "version"); err != nil {
		return b, err
	}
	if err := checkVersion("broker", j.Version, 1, 5); err != nil {
		return b, err
	}
	b = Broker{Protocols: j.Protocols, Rack: j.Rack, JMXPort: j.JMXPort}
	b.Timestamp, _ = strconv.ParseInt(j.Timestamp, 10, 64) // only for people
	if j.Version == 1 {
		if j.Host == nil {
			return b, fmt.Errorf("broker: %q is missing", "host")
		}
		b.Endpoints = []coord.Endpoint{{Listener: "PLAINTEXT", Host: *j.Host, Port: j.Port}}
		return b, nil
	}
	for _, text := range j.Endpoints {
		e, err := parseEndpoint(text)
		if err != nil {
			return b, err
		}
		b.Endpoints = append(b.Endpoints, e)
	}
	if len(b.Endpoints) == 0 {
		return b, fmt.Errorf("broker: %q is missing", "endpoints")
	}
	return b, nil
}

func parseEndpoint(text string) (e coord.Endpoint, err error) {
	name, address, ok := strings.Cut(text, "://")
	if !ok || name == "" {
		return e, fmt.Errorf("broker: endpoint %q is not NAME://host:port", text)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return e, fmt.Errorf("broker: endpoint %q: %w", text, err)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return e, fmt.Errorf("broker: endpoint %q: port %q", text, port)
	}
	return coord.Endpoint{Listener: name, Host: host, Port: int32(n)}, nil
}

// Controller is /controller: who was elected.
type Controller struct {
	BrokerID  int32
	Timestamp int64 // milliseconds
}

type controllerJSON struct {
	Version   int    `json:"version"`
	BrokerID  int32  `json:"brokerid"`
	Timestamp string `json:"timestamp"`
	KRaft     int32  `json:"kraftControllerEpoch"`
}

// Encode is version 2, without a KRaft controller.
func (c *Controller) Encode() []byte {
	return encode(controllerJSON{2, c.BrokerID, strconv.FormatInt(c.Timestamp, 10), -1})
}

// DecodeController reads versions 1 and 2.
func DecodeController(data []byte) (c Controller, err error) {
	var j controllerJSON
	if err := decode("controller", data, &j, "brokerid"); err != nil {
		return c, err
	}
	c.BrokerID = j.BrokerID
	c.Timestamp, _ = strconv.ParseInt(j.Timestamp, 10, 64) // only for people
	return c, nil
}

type clusterJSON struct {
	Version string `json:"version"`
	ID      string `json:"id"`
}

// EncodeClusterID is the content of /cluster/id.
func EncodeClusterID(id string) []byte { return encode(clusterJSON{"1", id}) }

// DecodeClusterID reads it.
func DecodeClusterID(data []byte) (string, error) {
	var j clusterJSON
	if err := decode("cluster id", data, &j, "id"); err != nil {
		return "", err
	}
	if j.ID == "" {
		return "", fmt.Errorf("cluster id: is empty")
	}
	return j.ID, nil
}

// Feature is /feature: which features are finalized at which level.
type Feature struct {
	Enabled bool
	Levels  map[string]int16
}

type featureJSON struct {
	Features features `json:"features"`
	Version  int      `json:"version"`
	Status   int      `json:"status"`
}

// Encode is version 2.
func (f *Feature) Encode() []byte {
	j := featureJSON{Features: features{}, Version: 2}
	if f.Enabled {
		j.Status = 1
	}
	for name, level := range f.Levels {
		j.Features[name] = map[string]int16{"max_version_level": level}
	}
	return encode(j)
}

// DecodeFeature reads versions 1 and 2.
func DecodeFeature(data []byte) (f Feature, err error) {
	var j featureJSON
	if err := decode("feature", data, &j, "version", "status"); err != nil {
		return f, err
	}
	if err := checkVersion("feature", j.Version, 1, 2); err != nil {
		return f, err
	}
	f = Feature{Enabled: j.Status == 1, Levels: map[string]int16{}}
	for name, levels := range j.Features {
		f.Levels[name] = levels["max_version_level"]
	}
	return f, nil
}

// ProducerBlock is /latest_producer_id_block: the ids handed out last, to whom. The first block begins at 0 in a node without data.
type ProducerBlock struct {
	Broker      int32
	First, Last int64
}

type blockJSON struct {
	Version int    `json:"version"`
	Broker  int32  `json:"broker"`
	First   string `json:"block_start"`
	Last    string `json:"block_end"`
}

// Encode is version 1.
func (b *ProducerBlock) Encode() []byte {
	return encode(blockJSON{1, b.Broker, strconv.FormatInt(b.First, 10), strconv.FormatInt(b.Last, 10)})
}

// DecodeProducerBlock reads it.
func DecodeProducerBlock(data []byte) (b ProducerBlock, err error) {
	var j blockJSON
	if err := decode("producer id block", data, &j, "block_start", "block_end"); err != nil {
		return b, err
	}
	b.Broker = j.Broker
	first, errFirst := strconv.ParseInt(j.First, 10, 64)
	last, errLast := strconv.ParseInt(j.Last, 10, 64)
	if errFirst != nil || errLast != nil || first < 0 || last < first {
		return b, fmt.Errorf("producer id block: %q to %q", j.First, j.Last)
	}
	b.First, b.Last = first, last
	return b, nil
}

// LogDirEvent tells that a broker's data directory has failed.
type LogDirEvent struct{ Broker int32 }

type logDirJSON struct {
	Version int   `json:"version"`
	Broker  int32 `json:"broker"`
	Event   int   `json:"event"`
}

// Encode is version 1, event 1: a directory failed.
func (e *LogDirEvent) Encode() []byte { return encode(logDirJSON{1, e.Broker, 1}) }

// DecodeLogDirEvent reads it.
func DecodeLogDirEvent(data []byte) (LogDirEvent, error) {
	var j logDirJSON
	err := decode("log directory event", data, &j, "broker")
	return LogDirEvent{j.Broker}, err
}
