package broker

import (
	"fmt"
	"strings"
	"time"
)

// Ready is what a broker that has started can say of itself.
type Ready struct {
	NodeID      int32
	ClusterID   string
	Listeners   []Listener // as bound, with the real ports
	Advertised  []Listener // as told to clients
	Admin       string     // host:port, "" if there is none
	Coordinator string     // "-": built in, no address of its own
	LogDirs     []string
	Offline     []string // those of LogDirs that could not be used
	Topics      int
	Partitions  int
	Damaged     int           // logs set aside
	Recovery    time.Duration // opening and recovering the logs
	Start       time.Duration // all of it
}

func (b *Broker) readiness(begun, recovered time.Time) Ready {
	r := Ready{
		NodeID: b.node, ClusterID: b.coord.Image().ClusterID(), Advertised: b.config.Advertised, Coordinator: "-",
		LogDirs: b.config.LogDirs, Topics: len(b.replicas.Topics()), Partitions: b.replicas.Count(), Damaged: len(b.store.Damaged()),
		Recovery: recovered.Sub(begun), Start: time.Since(begun),
	}
	for i, l := range b.config.Listeners {
		l.Port = b.listeners[i].port()
		r.Listeners = append(r.Listeners, l)
	}
	if b.health != nil {
		r.Admin = b.health.addr()
	}
	for dir := range b.store.OfflineDirs() {
		r.Offline = append(r.Offline, dir)
	}
	return r
}

// String is the ready line: key=value pairs, in a fixed order.
func (r Ready) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "ready node=%d cluster=%s listeners=%s advertised=%s admin=%s coordinator=%s dirs=%s",
		r.NodeID, r.ClusterID, join(r.Listeners), join(r.Advertised), orDash(r.Admin), r.Coordinator, strings.Join(r.LogDirs, ","))
	if len(r.Offline) > 0 {
		fmt.Fprintf(&b, " offline=%s", strings.Join(r.Offline, ","))
	}
	fmt.Fprintf(&b, " topics=%d partitions=%d damaged=%d recovery=%s start=%s", r.Topics, r.Partitions, r.Damaged,
		r.Recovery.Round(100*time.Microsecond), r.Start.Round(100*time.Microsecond))
	return b.String()
}

func join(list []Listener) string {
	texts := make([]string, len(list))
	for i, l := range list {
		texts[i] = l.String()
	}
	return strings.Join(texts, ",")
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
