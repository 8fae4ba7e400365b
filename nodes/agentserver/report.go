package agentserver

import (
	"net/http"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// report takes what an agent has to say. It is the heartbeat too, and writes
// nothing to the store.
func (s *Server) report(w http.ResponseWriter, r *http.Request) {
	id, n, ok := s.who(w, r)
	if !ok {
		return
	}
	q, err := DecodeReport(r.Body)
	if err != nil {
		wire.WriteError(w, status(err), asError(err))
		return
	}
	if q.Attempt != id.Attempt {
		s.over(w, id)
		return
	}
	s.counts.reports.Add(1)
	if q.Usage != nil && !possible(firstOf(q.Facts, s.presence.facts(id.Machine)), *q.Usage) {
		q.Usage = nil
	}
	now := s.c.Clock.Now()
	interval := s.interval(n)
	news, stages := s.presence.heard(id, q, now, interval)
	for _, st := range stages {
		s.c.Stage(wire.Event{At: st.At, Kind: muster.AuditStage, Cluster: id.Cluster, Object: id.Node, To: st.Name})
	}
	s.journal.add(id.Cluster, id.Node, q.Journal, q.Dropped)
	if q.Usage != nil {
		s.c.Sample(now, id, q.BootID, *q.Usage)
	}
	if possibleSeconds(s.presence.facts(id.Machine), q.Seconds) {
		s.c.Seconds(now, id, *q.Seconds)
	}
	if news {
		s.c.Changed(id.Cluster)
	}
	reply := wire.ReportReply{Interval: muster.Duration(interval), Generation: max(q.Generation, s.generation(id.Cluster))}
	if n.Head {
		reply.Reach = s.lateOf(id.Cluster, id.Node)
	}
	reply.Launch = s.c.Launch(id.Cluster, id.Node)
	reply.Save = s.c.Save(id.Cluster, id.Node)
	reply.Hibernate = s.c.Hibernate(id.Cluster, id.Node)
	reply.Seconds = s.c.WantSeconds(id.Cluster, id.Node)
	reply.PowerOff = s.orders.tell(id.Machine)
	answer(w, reply)
}

// reportsPerSecond bounds what heartbeats cost the server: the more agents
// there are, the less often each reports when nothing happens: 10,000 every
// half minute.
const reportsPerSecond = 1000 / 3

// interval until the next report of a node.
func (s *Server) interval(n muster.Node) time.Duration {
	spread := time.Duration(s.presence.count()) * time.Second / reportsPerSecond
	if n.Phase != muster.NodeReady { // what happens is told at once anyhow
		return max(s.c.IntervalBooting, spread/4)
	}
	return max(s.c.IntervalReady, spread)
}
