package gateway

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/gateway/flow"
)

// session is one way to a node that is open.
type session struct {
	by       opener
	record   muster.GatewaySession
	received *atomic.Int64
	sent     *atomic.Int64
	stop     func()       // closes what it consists of
	passed   func() int64 // how many bytes users and nodes have exchanged; nil: received and sent
	flow     *flow.Way    // nil: it is not the kernel's

	quiet int64     // exchanged, when it was looked at
	since time.Time // and since when it has been so much; both belong to the watch

	mu     sync.Mutex
	reason muster.GatewayEnd
	text   string
	count  func() (received, sent int64) // nil: received and sent are counted as it goes
	used   bool                          // of a flow: its connection has come
	late   *time.Timer                   // of a flow: until then it must
}

// end ends a session, for the reason that is named first.
func (x *session) end(why muster.GatewayEnd, text string) {
	x.mu.Lock()
	if x.reason == "" {
		x.reason, x.text = why, text
	}
	x.mu.Unlock()
	x.stop()
}

// now is its record as it is now. The caller holds x.mu.
func (x *session) now() muster.GatewaySession {
	r := x.record
	r.Received, r.Sent = x.received.Load(), x.sent.Load()
	if x.count != nil {
		r.Received, r.Sent = x.count()
	}
	return r
}

// exchanged is how many bytes users and nodes have exchanged.
func (x *session) exchanged() int64 {
	if x.passed != nil {
		return x.passed()
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	r := x.now()
	return r.Received + r.Sent
}

// counts has somebody else count the bytes.
func (x *session) counts(f func() (received, sent int64)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.count = f
}

// counted keeps what was counted, for when nobody can be asked any more.
func (x *session) counted() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.count == nil {
		return
	}
	received, sent := x.count()
	x.count = nil
	x.received.Store(received)
	x.sent.Store(sent)
}

// recordTime bounds how long a record may take to be written.
const recordTime = 10 * time.Second

func stopping() error {
	return muster.Errorf(muster.EUnavailable, "the gateway is stopping").WithHint("try again in a minute")
}

// reserve takes a place for one more session of a user. Who got none is told so.
func (s *Server) reserve(user string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closing || s.draining:
		return stopping()
	case s.taken >= s.limits.Sessions:
		return muster.Errorf(muster.EUnavailable, "the gateway has %d sessions, which is as many as it takes", s.taken).Because(muster.ReasonTooMany).WithHint("try again later")
	case s.of[user] >= s.limits.PerUser:
		return muster.Errorf(muster.EUnavailable, "you have %d sessions at the gateway, which is as many as one user may have", s.of[user]).Because(muster.ReasonTooMany).
			WithHint("end some: muster gateway sessions, muster gateway kill SESSION")
	}
	s.taken++
	s.of[user]++
	return nil
}

func (s *Server) release(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
	if s.of[user]--; s.of[user] == 0 {
		delete(s.of, user)
	}
}

// begin records a session and makes it one that can be seen and ended.
func (s *Server) begin(by opener, from string, d muster.Door, w muster.DoorWay, received, sent *atomic.Int64, passed func() int64, stop func()) (*session, error) {
	x := s.session(by, from, d, w, received, sent)
	x.passed, x.stop = passed, stop
	return x, s.enter(x)
}

func (s *Server) session(by opener, from string, d muster.Door, w muster.DoorWay, received, sent *atomic.Int64) *session {
	r := muster.GatewaySession{
		ID: muster.NewGatewaySessionID(), User: by.user, Fingerprint: by.key.Fingerprint, Token: by.token, From: from, Door: d,
		Cluster: w.Cluster, ClusterName: w.ClusterName, Project: w.Project, Node: w.Node, Login: w.Login, Began: s.now(),
	}
	if cert := by.key.Certificate; cert != nil {
		r.Certificate, r.Serial = cert.ID, cert.Serial
	}
	return &session{by: by, record: r, received: received, sent: sent, since: s.now()}
}

// enter records a session.
func (s *Server) enter(x *session) error {
	ctx, cancel := context.WithTimeout(context.Background(), recordTime)
	defer cancel()
	if err := s.site.GatewayBegin(ctx, x.record); err != nil {
		return err
	}
	s.mu.Lock()
	s.sessions[x.record.ID] = x
	closing := s.closing
	s.mu.Unlock()
	s.opened[x.record.Door].Add(1)
	if closing {
		x.end(muster.GatewayEndServer, "")
	}
	return nil
}

// finish records the end of a session.
func (s *Server) finish(x *session) {
	x.mu.Lock()
	r := x.now()
	r.Ended, r.End, r.Text = s.now(), x.reason, x.text
	x.mu.Unlock()
	s.mu.Lock()
	delete(s.sessions, r.ID)
	closing := s.closing
	s.mu.Unlock()
	switch {
	case r.End != "":
	case closing:
		r.End = muster.GatewayEndServer
	default:
		r.End = muster.GatewayEndClosed
	}
	s.received.Add(r.Received)
	s.sent.Add(r.Sent)
	ctx, cancel := context.WithTimeout(context.Background(), recordTime)
	defer cancel()
	if err := s.site.GatewayEnd(ctx, r); err != nil {
		s.log.Warn("recording the end of a gateway session failed", "session", r.ID, "error", err)
	}
}

// Sessions are those that are open, with the bytes of this moment.
func (s *Server) Sessions() map[muster.GatewaySessionID]muster.GatewaySession {
	s.countFlows()
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[muster.GatewaySessionID]muster.GatewaySession, len(s.sessions))
	for id, x := range s.sessions {
		x.mu.Lock()
		out[id] = x.now()
		x.mu.Unlock()
	}
	return out
}

// Kill ends a session. False: it is not open here.
func (s *Server) Kill(id muster.GatewaySessionID, text string) bool {
	s.mu.Lock()
	x := s.sessions[id]
	s.mu.Unlock()
	if x == nil {
		return false
	}
	x.end(muster.GatewayEndKilled, text)
	return true
}
