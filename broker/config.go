package broker

import (
	"log/slog"
	"time"

	"millrace/engine"
	"millrace/engine/vfs"
)

// Config is everything a broker needs to start. Build one with LoadConfig or
// DefaultConfig; every field that a key of server.properties sets is described
// by that key's row in config_table.go.
type Config struct {
	NodeID    int32 // broker.id / node.id; -1 takes the id kept in meta.properties, else 0
	ClusterID string
	Rack      string
	LogDirs   []string

	Listeners  []Listener // where we bind
	Advertised []Listener // what clients are told; one for each of Listeners, by name
	Admin      string     // host:port of /healthz and /readyz, "" for none

	TelemetryMax int // bytes of one push of a client's metrics

	Coordination CoordinationConfig

	Socket  SocketConfig
	Fetch   FetchConfig
	Quotas  QuotaConfig
	Storage StorageConfig
	Topics  TopicDefaults
	Groups  GroupConfig

	// The next three are for programs that embed a broker, and for tests.
	Logger *slog.Logger     // nil: slog.Default()
	FS     vfs.FS           // nil: vfs.OS()
	Now    func() time.Time // nil: time.Now

	values  map[string]string // key → text as given, only keys that were given
	layers  configLayers      // what was set while the broker runs, over values
	checked bool              // by LoadConfig, which has returned its warnings
}

// Listener is one named address. Port 0 lets the system choose when binding.
type Listener struct {
	Name string // upper case, as in PLAINTEXT://…
	Host string // "" binds every address
	Port int32
}

// CoordinationConfig says what coordinates the cluster.
type CoordinationConfig struct {
	Connect string // host:port,…/chroot of an ensemble; "": the built-in service

	// Of the built-in service:
	Listener string // host:port for clients, "" for none but the broker itself
	Dir      string // where it keeps its tree; "": coordinationFolder in the first data directory

	ConnectTimeout time.Duration // a start gives up after it
	SessionTimeout time.Duration // a broker that is silent for so long is dead
}

// SocketConfig bounds what connections may take.
type SocketConfig struct {
	RequestMax        int64 // bytes of one frame
	QueuedBytes       int64 // bytes of all request memory, see budget.go
	SendBuffer        int   // bytes, -1 leaves it to the system
	ReceiveBuffer     int
	Backlog           int
	MaxConnections    int
	MaxPerIP          int
	MaxPerIPOverrides map[string]int
	IdleMax           time.Duration // < 0: never
}

// FetchConfig bounds answers to Fetch.
type FetchConfig struct {
	MaxBytes          int64
	SessionSlots      int
	SendfileThreshold int // bytes; parts at least this big leave by sendfile
}

// QuotaConfig is how client quotas are measured, see quota.go.
type QuotaConfig struct {
	Windows       int64
	WindowSeconds int64
}

// StorageConfig is handed to engine.Store.
type StorageConfig struct {
	RetentionCheck   time.Duration
	CheckpointEvery  time.Duration
	RecoveryThreads  int
	IO               string // auto, ring, pool
	Journal          string // auto, off
	JournalDir       string
	JournalThreshold int // bytes; batches above skip the journal
	IndexMaps        int
	Cleaner          engine.CleanerConfig // changes while the broker runs
	CleanerEnable    bool
	MinFree          int64 // bytes to keep free in each data directory; 0: nobody looks
	MoveThreads      int   // partitions moved between directories at the same time; 0: one a directory
	MoveRate         int64 // bytes a second for all of them; changes while the broker runs
	ScrubRate        int64 // bytes a second; 0: no scrub; changes while the broker runs
}

// TopicDefaults is what topics are made with when nobody says otherwise.
type TopicDefaults struct {
	Partitions        int32
	ReplicationFactor int16
	AutoCreate        bool
	DeleteEnabled     bool
}

// DefaultConfig is the configuration of an empty server.properties.
func DefaultConfig() Config {
	c := Config{values: map[string]string{}}
	for i := range configTable {
		row := &configTable[i]
		if row.set != nil && row.Default != "" {
			if err := row.set(&c, row.Default); err != nil {
				panic("config_table: default of " + row.Name + ": " + err.Error())
			}
		}
	}
	return c
}

// Get returns a key's text and whether the operator gave it; otherwise it is
// the table's default. Keys nobody knows give "".
func (c *Config) Get(key string) (value string, given bool) {
	for _, layer := range []map[string]string{c.layers.own, c.layers.all, c.values} {
		if v, ok := layer[key]; ok {
			return v, true
		}
	}
	if row := LookupConfigKey(key); row != nil {
		return row.Default, false
	}
	return "", false
}

// Set gives key a value as if server.properties held it, without the rules that
// span several keys; those are checked by Start.
func (c *Config) Set(key, value string) error {
	row := LookupConfigKey(key)
	if row == nil {
		return &ConfigError{Key: key, Value: value, Rule: "no such key"}
	}
	if row.set != nil {
		if err := row.set(c, value); err != nil {
			return &ConfigError{Key: key, Value: value, Rule: err.Error()}
		}
	}
	if c.values == nil {
		c.values = map[string]string{}
	}
	c.values[key] = value
	return nil
}

func (c *Config) logger() *slog.Logger {
	if c.Logger != nil {
		return c.Logger
	}
	return slog.Default()
}

func (c *Config) now() func() time.Time {
	if c.Now != nil {
		return c.Now
	}
	return time.Now
}

func (c *Config) fs() vfs.FS {
	if c.FS != nil {
		return c.FS
	}
	return vfs.OS()
}
