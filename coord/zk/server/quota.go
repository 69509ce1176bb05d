package server

import (
	"time"

	"millrace/coord/zk/proto"
	"millrace/coord/zk/tree"
)

// warnQuotas logs soft quotas that the transactions have left exceeded, each at most once
// in quotaWarnEvery.
func (s *Server) warnQuotas(txns []tree.Txn) {
	s.store.View(func(t *tree.Tree) {
		if !t.HasQuotas() {
			return
		}
		for i := range txns {
			s.warnQuota(t, &txns[i].Req)
		}
	})
}

func (s *Server) warnQuota(t *tree.Tree, q *proto.Request) {
	for i := range q.Ops {
		s.warnQuota(t, &q.Ops[i])
	}
	if !q.Op.Creates() && q.Op != proto.OpSetData {
		return
	}
	over, ok := t.OverSoft(q.Path)
	if !ok || time.Since(s.overSoft[over.Path]) < quotaWarnEvery {
		return
	}
	if s.overSoft == nil {
		s.overSoft = map[string]time.Time{}
	}
	if len(s.overSoft) >= quotaWarnMost {
		clear(s.overSoft)
	}
	s.overSoft[over.Path] = time.Now()
	s.cfg.Logger.Warn("a soft quota is exceeded", "path", over.Path, "what", over.What, "limit", over.Limit, "usage", over.Usage)
}
