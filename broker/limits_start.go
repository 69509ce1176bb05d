package broker

import (
	"log/slog"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"millrace/engine"
)

// hostName is a name for this machine that resolves here; localhost if its own
// name does not resolve at all, since then nobody else can dial it either.
func hostName() string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		return "localhost"
	}
	if _, err := net.LookupHost(name); err != nil {
		return "localhost"
	}
	return name
}

// tellLimits logs what the system allows and what we need, with advice where
// that is too little (F127). Go has raised the soft limit on files already.
func (b *Broker) tellLimits() {
	for _, a := range append(engine.CheckLimits(b.replicas.Count()), b.store.CheckSpace()...) {
		level := slog.LevelInfo
		if !a.OK {
			level = slog.LevelWarn
		}
		b.log.Log(b.ctx, level, "limit: "+a.Text, "limit", a.Name, "have", a.Have, "need", a.Need)
	}
	b.log.Info("limit: request memory", "queued.max.request.bytes", b.budget.limit, "socket.request.max.bytes", b.config.Socket.RequestMax)
}

// defaultBudget is what queued.max.request.bytes=-1 means: an eighth of the
// machine's memory within bounds, and never less than one largest frame.
func defaultBudget(requestMax int64) int64 {
	var info unix.Sysinfo_t
	budget := int64(defaultBudgetLow)
	if unix.Sysinfo(&info) == nil {
		budget = int64(info.Totalram) * int64(info.Unit) / 8
	}
	budget = min(max(budget, defaultBudgetLow), defaultBudgetHigh)
	return max(budget, largestCharge(requestMax))
}

// largestCharge is what the largest frame reserves, so that a budget of this
// size can serve it.
func largestCharge(requestMax int64) int64 {
	_, size := classOf(int(requestMax) + 4 + readTail)
	return int64(size) * smallShare / (smallShare - 1) // large frames may use three quarters
}
