package agentserver

import "sync/atomic"

// counts of what agents did since the server started.
type counts struct {
	reports atomic.Int64
}

// Reports is how many reports agents have sent since the server started.
func (s *Server) Reports() int64 { return s.counts.reports.Load() }

// Connected is how many machines have an agent that has spoken.
func (s *Server) Connected() int { return s.presence.count() }
