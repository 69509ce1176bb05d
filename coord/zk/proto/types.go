package proto

// Permissions of an ACL entry.
const (
	PermRead   int32 = 1
	PermWrite  int32 = 2
	PermCreate int32 = 4
	PermDelete int32 = 8
	PermAdmin  int32 = 16
	PermAll    int32 = 31
)

// ID is who somebody is within a scheme.
type ID struct {
	Scheme string
	ID     string
}

// ACL is one entry of a node's access list.
type ACL struct {
	Perms int32
	ID    ID
}

// OpenACL lets anybody do anything; ReadACL lets anybody read.
var (
	OpenACL = []ACL{{PermAll, ID{"world", "anyone"}}}
	ReadACL = []ACL{{PermRead, ID{"world", "anyone"}}}
)

// Stat is what a client sees of a node beside its data.
type Stat struct {
	Czxid, Mzxid   int64
	Ctime, Mtime   int64 // ms
	Version        int32
	Cversion       int32 // creates and deletes of children
	Aversion       int32
	EphemeralOwner int64 // session; 0 none
	DataLength     int32
	NumChildren    int32
	Pzxid          int64
}

// EventType is what happened to a watched node.
type EventType int32

// The event types.
const (
	EventNone            EventType = -1
	EventCreated         EventType = 1
	EventDeleted         EventType = 2
	EventDataChanged     EventType = 3
	EventChildrenChanged EventType = 4
)

// States of a session, as a watch event carries them.
const (
	StateDisconnected int32 = 0
	StateConnected    int32 = 3
	StateAuthFailed   int32 = 4
	StateReadOnly     int32 = 5
	StateClosed       int32 = 7
	StateExpired      int32 = -112
)

// WatchEvent is a notification on the wire.
type WatchEvent struct {
	Type  EventType
	State int32
	Path  string
}

// Modes of addWatch.
const (
	WatchPersistent          int32 = 0
	WatchPersistentRecursive int32 = 1
)

// Kinds of watch that checkWatches and removeWatches name.
const (
	WatcherChildren            int32 = 1
	WatcherData                int32 = 2
	WatcherAny                 int32 = 3
	WatcherPersistent          int32 = 4
	WatcherPersistentRecursive int32 = 5
)

// ClientInfo is one identity in the answer to whoAmI.
type ClientInfo struct {
	Scheme, User string
}
