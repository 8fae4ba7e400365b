package gateway

import (
	"context"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
)

// bytesEvery is how often the bytes of open sessions are recorded.
const bytesEvery = time.Minute

// watch ends what nobody has a right to any more, until ctx ends.
func (s *Server) watch(ctx context.Context) {
	tick := time.NewTicker(s.limits.Look)
	defer tick.Stop()
	if s.flows != nil {
		go s.flows.Watch(ctx, flowWatcher{s}, func(err error) { s.log.Warn("gateway: events of connections were lost", "error", err) })
	}
	noted := s.now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s.review(ctx)
		s.endLong()
		if now := s.now(); now.Sub(noted) >= bytesEvery {
			noted = now
			s.noteBytes(ctx)
		}
	}
}

// review asks about every right by which something is open, each once.
func (s *Server) review(ctx context.Context) {
	ends := map[muster.DoorClaim][]func(text string){}
	s.endCertificates()
	s.mu.Lock()
	for c := range s.clients {
		claim := muster.DoorClaim{User: c.user, Fingerprint: c.key.Fingerprint}
		ends[claim] = append(ends[claim], func(string) { _ = c.conn.Close() })
	}
	for _, x := range s.sessions {
		end := func(text string) { x.end(muster.GatewayEndRight, text) }
		key := muster.DoorClaim{User: x.record.User, Fingerprint: x.record.Fingerprint, Token: x.record.Token}
		way := key
		way.Cluster, way.Door = x.record.Cluster, x.record.Door
		ends[key] = slices.Insert(ends[key], 0, end) // before its connection is closed: it has the reason
		ends[way] = append(ends[way], end)
	}
	s.mu.Unlock()
	if len(ends) == 0 {
		return
	}
	claims := make([]muster.DoorClaim, 0, len(ends))
	for claim := range ends {
		claims = append(claims, claim)
	}
	limit, cancel := context.WithTimeout(ctx, s.limits.Look)
	defer cancel()
	for i, err := range s.site.GatewayRights(limit, claims) {
		if err == nil {
			continue
		}
		text := sentence(err)
		s.log.Info("gateway: a right ended", "user", claims[i].User, "cluster", claims[i].Cluster, "reason", text)
		for _, end := range ends[claims[i]] {
			end(text)
		}
	}
}

// endCertificates ends what was opened with a certificate that has ended.
func (s *Server) endCertificates() {
	var over []*client
	var ends []*session
	now := s.now()
	s.mu.Lock()
	for c := range s.clients {
		if c.over(now) {
			over = append(over, c)
		}
	}
	for _, x := range s.sessions {
		if x.by.over(now) {
			ends = append(ends, x)
		}
	}
	s.mu.Unlock()
	for _, x := range ends { // before its connection is closed: it has the reason
		x.end(muster.GatewayEndRight, "the certificate by which it was opened has ended")
	}
	for _, c := range over {
		_ = c.conn.Close()
	}
}

// endLong ends the sessions in which nothing passed for too long, and those that last too long.
func (s *Server) endLong() {
	if s.limits.Idle > 0 {
		s.countFlows()
	}
	var ends []func()
	now := s.now()
	s.mu.Lock()
	for _, x := range s.sessions {
		if n := x.exchanged(); n != x.quiet {
			x.quiet, x.since = n, now
		}
		switch idle, longest := s.limits.Idle, s.limits.Longest; {
		case longest > 0 && now.Sub(x.record.Began) >= longest:
			ends = append(ends, func() {
				x.end(muster.GatewayEndLongest, "it lasted "+longest.String()+", which is as long as a session may")
			})
		case idle > 0 && now.Sub(x.since) >= idle:
			ends = append(ends, func() { x.end(muster.GatewayEndIdle, "nothing passed for "+idle.String()) })
		}
	}
	s.mu.Unlock()
	for _, end := range ends {
		end()
	}
}

func (s *Server) noteBytes(ctx context.Context) {
	var list []muster.GatewaySession
	for _, r := range s.Sessions() {
		list = append(list, r)
	}
	if len(list) == 0 {
		return
	}
	if err := s.site.GatewayBytes(ctx, list); err != nil {
		s.log.Warn("recording the bytes of gateway sessions failed", "error", err)
	}
}
