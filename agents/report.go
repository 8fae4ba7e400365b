package agents

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
		refuse(w, status(err), asError(err))
		return
	}
	if q.Attempt != id.Attempt {
		refuse(w, http.StatusGone, errGone)
		return
	}
	now := s.c.Clock.Now()
	interval := s.interval(n)
	news, stages := s.presence.heard(id, q, now, interval)
	for _, st := range stages {
		s.c.Stage(wire.Event{At: st.At, Kind: "stage", Cluster: id.Cluster, Object: id.Node, To: st.Name})
	}
	s.journal.add(id.Cluster, id.Node, q.Journal, q.Dropped)
	if news {
		s.c.Changed(id.Cluster)
	}
	answer(w, wire.ReportReply{IntervalMS: interval.Milliseconds(), Generation: max(q.Generation, s.generation(id.Cluster))})
}

// reportsPerSecond bounds what heartbeats cost the server: the more agents
// there are, the less often each reports when nothing happens.
const reportsPerSecond = 200

// interval until the next report of a node.
func (s *Server) interval(n muster.Node) time.Duration {
	if n.Phase != muster.NodeReady {
		return s.c.IntervalBooting
	}
	spread := time.Duration(s.presence.count()) * time.Second / reportsPerSecond
	return max(s.c.IntervalReady, spread)
}
