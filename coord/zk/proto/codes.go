package proto

import "fmt"

// Op is the type of a request.
type Op int32

// The operations of ZooKeeper 3.9.
const (
	OpNotify          Op = 0
	OpCreate          Op = 1
	OpDelete          Op = 2
	OpExists          Op = 3
	OpGetData         Op = 4
	OpSetData         Op = 5
	OpGetACL          Op = 6
	OpSetACL          Op = 7
	OpGetChildren     Op = 8
	OpSync            Op = 9
	OpPing            Op = 11
	OpGetChildren2    Op = 12
	OpCheck           Op = 13
	OpMulti           Op = 14
	OpCreate2         Op = 15
	OpReconfig        Op = 16
	OpCheckWatches    Op = 17
	OpRemoveWatches   Op = 18
	OpCreateContainer Op = 19
	OpDeleteContainer Op = 20
	OpCreateTTL       Op = 21
	OpMultiRead       Op = 22
	OpAuth            Op = 100
	OpSetWatches      Op = 101
	OpSASL            Op = 102
	OpGetEphemerals   Op = 103
	OpGetChildrenNum  Op = 104 // getAllChildrenNumber
	OpSetWatches2     Op = 105
	OpAddWatch        Op = 106
	OpWhoAmI          Op = 107
	OpCreateSession   Op = -10
	OpCloseSession    Op = -11
	OpError           Op = -1
)

var opNames = map[Op]string{
	OpNotify: "notification", OpCreate: "create", OpDelete: "delete", OpExists: "exists", OpGetData: "getData", OpSetData: "setData",
	OpGetACL: "getACL", OpSetACL: "setACL", OpGetChildren: "getChildren", OpSync: "sync", OpPing: "ping", OpGetChildren2: "getChildren2",
	OpCheck: "check", OpMulti: "multi", OpCreate2: "create2", OpReconfig: "reconfig", OpCheckWatches: "checkWatches",
	OpRemoveWatches: "removeWatches", OpCreateContainer: "createContainer", OpDeleteContainer: "deleteContainer", OpCreateTTL: "createTTL",
	OpMultiRead: "multiRead", OpAuth: "auth", OpSetWatches: "setWatches", OpSASL: "sasl", OpGetEphemerals: "getEphemerals",
	OpGetChildrenNum: "getAllChildrenNumber", OpSetWatches2: "setWatches2", OpAddWatch: "addWatch", OpWhoAmI: "whoAmI",
	OpCreateSession: "createSession", OpCloseSession: "closeSession", OpError: "error",
}

func (o Op) String() string {
	if s, ok := opNames[o]; ok {
		return s
	}
	return fmt.Sprintf("op %d", int32(o))
}

// Writes reports whether the operation changes the tree, and so is a transaction. A
// check is one too: in a multi, and alone only in the sense of taking a zxid.
func (o Op) Writes() bool {
	switch o {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL, OpDelete, OpDeleteContainer, OpSetData, OpSetACL, OpCheck, OpMulti,
		OpCreateSession, OpCloseSession:
		return true
	}
	return false
}

// Creates reports whether the operation is one of the four that make a node.
func (o Op) Creates() bool {
	return o == OpCreate || o == OpCreate2 || o == OpCreateContainer || o == OpCreateTTL
}

// The xids that are not a client's own counter.
const (
	XidNotification int32 = -1
	XidPing         int32 = -2
	XidAuth         int32 = -4
	XidSetWatches   int32 = -8
)

// Code is an error code of the protocol; it is an error unless it is OK.
type Code int32

// The codes, with KeeperException's numbers.
const (
	OK                  Code = 0
	ErrSystem           Code = -1
	ErrInconsistency    Code = -2 // runtime inconsistency: the other operations of a failed multi
	ErrMarshalling      Code = -5
	ErrUnimplemented    Code = -6
	ErrBadArguments     Code = -8
	ErrUnknownSession   Code = -12
	ErrAPI              Code = -100
	ErrNoNode           Code = -101
	ErrNoAuth           Code = -102
	ErrBadVersion       Code = -103
	ErrNoChildrenForEph Code = -108
	ErrNodeExists       Code = -110
	ErrNotEmpty         Code = -111
	ErrSessionExpired   Code = -112
	ErrInvalidACL       Code = -114
	ErrAuthFailed       Code = -115
	ErrSessionMoved     Code = -118
	ErrNotReadOnly      Code = -119
	ErrEphOnLocal       Code = -120
	ErrNoWatcher        Code = -121
	ErrReconfigDisabled Code = -123
	ErrSASLRequired     Code = -124
	ErrQuotaExceeded    Code = -125
	ErrThrottled        Code = -127
)

var codeNames = map[Code]string{
	OK: "ok", ErrSystem: "system error", ErrInconsistency: "runtime inconsistency", ErrMarshalling: "marshalling error",
	ErrUnimplemented: "unimplemented", ErrBadArguments: "bad arguments", ErrUnknownSession: "unknown session", ErrAPI: "api error",
	ErrNoNode: "no node", ErrNoAuth: "not authenticated", ErrBadVersion: "bad version", ErrNoChildrenForEph: "ephemeral nodes have no children",
	ErrNodeExists: "node exists", ErrNotEmpty: "node has children", ErrSessionExpired: "session expired", ErrInvalidACL: "invalid ACL",
	ErrAuthFailed: "authentication failed", ErrSessionMoved: "session moved", ErrNotReadOnly: "not a read-only call",
	ErrEphOnLocal: "ephemeral node on a local session", ErrNoWatcher: "no such watcher", ErrReconfigDisabled: "reconfig is disabled",
	ErrSASLRequired: "SASL authentication required", ErrQuotaExceeded: "quota exceeded", ErrThrottled: "throttled",
}

func (c Code) String() string {
	if s, ok := codeNames[c]; ok {
		return s
	}
	return fmt.Sprintf("code %d", int32(c))
}

// Error makes a Code an error.
func (c Code) Error() string { return "zookeeper: " + c.String() }

// Mode is how a node is created: the flags of a create.
type Mode int32

// The create modes.
const (
	Persistent Mode = iota
	Ephemeral
	PersistentSequential
	EphemeralSequential
	Container
	PersistentTTL
	PersistentSequentialTTL
)

// Valid reports whether there is such a mode.
func (m Mode) Valid() bool { return m >= Persistent && m <= PersistentSequentialTTL }

// Sequential reports whether the server adds a number to the name.
func (m Mode) Sequential() bool {
	return m == PersistentSequential || m == EphemeralSequential || m == PersistentSequentialTTL
}

// Ephemeral reports whether the node goes with its session.
func (m Mode) Ephemeral() bool { return m == Ephemeral || m == EphemeralSequential }

// TTL reports whether the node goes when it was not changed for its time.
func (m Mode) TTL() bool { return m == PersistentTTL || m == PersistentSequentialTTL }
