package broker

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"millrace/coord/controller"
	"millrace/coord/zk/server"
)

// controller sends what the controller and this broker's session are.
func (s series) controller(b *Broker) {
	service, ok := b.coord.(*controller.Service)
	if !ok {
		return
	}
	status := service.Status()
	for _, row := range [...]struct {
		m *metric
		n int64
	}{
		{metricActiveController, oneIf(status.Leads)}, {metricControllerEpoch, int64(status.Epoch)}, {metricActiveBrokers, int64(status.Brokers)},
		{metricOfflineParts, int64(status.Offline)}, {metricImbalance, int64(status.Imbalanced)}, {metricDeletingTopics, int64(status.Deleting)},
		{metricMoving, int64(status.Moving)}, {metricSession, oneIf(status.Session)}, {metricExpires, status.Expired},
	} {
		s.count(row.m, row.n)
	}
}

func oneIf(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

// coordination sends what the built-in service is.
func (s series) coordination(b *Broker) {
	var now server.Stats
	if b.built != nil {
		now = b.built.Stats()
	}
	for _, row := range [...]struct {
		m *metric
		n int64
	}{
		{metricZnodes, int64(now.Nodes)}, {metricEphemerals, int64(now.Ephemerals)}, {metricZnodeBytes, now.DataBytes}, {metricTreeBytes, now.Bytes},
		{metricZkSessions, int64(now.Sessions)}, {metricWatches, int64(now.Watches)}, {metricZkConnections, int64(now.Connections)},
		{metricOutstanding, int64(now.Outstanding)}, {metricZkRequests, now.Received}, {metricZkSent, now.Sent}, {metricTransactions, int64(now.Store.Transactions)},
	} {
		s.count(row.m, row.n)
	}
	cumulative := map[float64]uint64{}
	n := uint64(0)
	for i := range len(now.Store.Latency) - 1 { // the last one is +Inf
		if n += now.Store.Latency[i]; i >= firstRoundBucket {
			cumulative[(time.Microsecond << i).Seconds()] = n
		}
	}
	s.out <- prometheus.MustNewConstHistogram(metricZkSync.desc, now.Store.Syncs, now.Store.Time.Seconds(), cumulative)
}
