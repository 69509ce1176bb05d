package server

import (
	"sync"
	"time"

	"millrace/coord/zk/proto"
)

// meter counts what the four-letter words tell, of a connection or of the service.
type meter struct {
	mu       sync.Mutex
	received int64
	sent     int64
	bytes    int64 // received

	allReceived, allSent int64 // never reset

	count int64 // latencies
	total int64 // ms
	least int64 // ms; of none 0
	most  int64 // ms
}

func (m *meter) frameIn(size int) {
	m.mu.Lock()
	m.received++
	m.allReceived++
	m.bytes += int64(size)
	m.mu.Unlock()
}

func (m *meter) frameOut() {
	m.mu.Lock()
	m.sent++
	m.allSent++
	m.mu.Unlock()
}

func (m *meter) took(ms int64) {
	m.mu.Lock()
	if m.count == 0 || ms < m.least {
		m.least = ms
	}
	m.most = max(m.most, ms)
	m.count++
	m.total += ms
	m.mu.Unlock()
}

// reading is what a meter shows at one moment.
type reading struct {
	received, sent, bytes, least, most int64
	average                            float64
}

func (m *meter) read() reading {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := reading{received: m.received, sent: m.sent, bytes: m.bytes, least: m.least, most: m.most}
	if m.count > 0 {
		r.average = float64(m.total) / float64(m.count)
	}
	return r
}

// reset begins the counts of words anew; bytes are not one of them.
func (m *meter) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.received, m.sent, m.count, m.total, m.least, m.most = 0, 0, 0, 0, 0, 0
}

// last is the newest answer of a connection.
type last struct {
	op      proto.Op
	xid     int32
	zxid    int64
	at      time.Time
	latency int64 // ms
}

// opWords are ZooKeeper's names of operations in cons.
var opWords = map[proto.Op]string{
	proto.OpPing: "PING", proto.OpCreateSession: "SESS", proto.OpMulti: "MULT", proto.OpMultiRead: "MLTR", proto.OpCreate: "CREA", proto.OpCreate2: "CREA",
	proto.OpCreateTTL: "CREA", proto.OpCreateContainer: "CREA", proto.OpDelete: "DELE", proto.OpSetData: "SETD", proto.OpSetACL: "SETA", proto.OpCloseSession: "CLOS",
	proto.OpSync: "SYNC", proto.OpCheck: "CHEC", proto.OpExists: "EXIS", proto.OpGetData: "GETD", proto.OpSetWatches: "SETW", proto.OpSetWatches2: "STW2",
	proto.OpAddWatch: "ADDW", proto.OpGetACL: "GETA", proto.OpGetChildren: "GETC", proto.OpGetChildren2: "GETC", proto.OpGetChildrenNum: "GETACN",
	proto.OpGetEphemerals: "GETE", proto.OpCheckWatches: "CHKW", proto.OpRemoveWatches: "REMW", proto.OpWhoAmI: "HOMI", proto.OpReconfig: "RECO",
}

func opWord(op proto.Op) string {
	if w, ok := opWords[op]; ok {
		return w
	}
	return "NA"
}
