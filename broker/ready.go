package broker

// Ready is what a broker that has started can say of itself.
type Ready struct {
	NodeID      int32
	ClusterID   string
	Listeners   []Listener // as bound, with the real ports
	Admin       string     // host:port, "" if there is none
	Coordinator string     // host:port of the built-in coordination, "-" if it has none; else zookeeper.connect
}

func (b *Broker) readiness() Ready {
	r := Ready{NodeID: b.node, ClusterID: b.coord.Image().ClusterID(), Coordinator: b.coordinatorName()}
	for i, l := range b.config.Listeners {
		l.Port = b.listeners[i].port()
		r.Listeners = append(r.Listeners, l)
	}
	if b.health != nil {
		r.Admin = b.health.addr()
	}
	return r
}
