package gateway

import (
	"context"
	"hash/fnv"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/gateway/flow"
)

// Ticket lets the next connection of a user through the straight door: in the kernel where the
// client's address is what it takes it for and the node can be reached so, and otherwise by a
// secret that it says first.
func (s *Server) Ticket(ctx context.Context, r muster.DoorTicketRequest) (muster.DoorTicket, error) {
	if s.isDraining() {
		return muster.DoorTicket{}, stopping()
	}
	target, ok := ParseTarget(r.Target)
	if !ok {
		return muster.DoorTicket{}, muster.Errorf(muster.EInvalid, "target: %.80q is not a node of a cluster", r.Target).Because(muster.ReasonBadValue).
			WithHint("write CLUSTER, CLUSTER.NODE or CLUSTER.NODE+PROJECT")
	}
	by := opener{user: r.User, key: r.Key, token: r.Token}
	if err := by.connects(muster.DoorStraight); err != nil {
		return muster.DoorTicket{}, err
	}
	way, err := s.site.GatewayEnter(ctx, r.User, muster.DoorStraight, target)
	if err != nil {
		return muster.DoorTicket{}, err
	}
	out := muster.DoorTicket{Node: way.Node, Expires: s.now().Add(ticketTime)}
	// A gateway that starts anew finds the kernel's connections, and not when a certificate ends.
	if s.flows != nil && r.Key.Certificate == nil && r.Client.Addr().Is4() && r.Client.Port() != 0 && r.Client.Addr() == r.Seen {
		node, err := s.site.GatewayNode(ctx, r.User, way)
		if err != nil {
			return out, err
		}
		if node.Is4() {
			if err := s.letThrough(by, r.Client, way, node); err == nil {
				out.Address = s.flowsAt.String()
				return out, nil
			} else if muster.ReasonOf(err) == muster.ReasonTooMany {
				return out, err
			} else {
				s.log.Warn("gateway: the kernel let no connection through", "error", err)
			}
		}
	}
	x, err := s.tickets.give(ticket{opener: by, way: way, seen: r.Seen, expires: out.Expires})
	if err != nil {
		return out, err
	}
	out.Secret = x.String()
	if s.at != nil {
		out.Address = s.at()
	}
	return out, nil
}

// letThrough records a session and has the kernel let its connection through.
func (s *Server) letThrough(by opener, client netip.AddrPort, way muster.DoorWay, node netip.Addr) error {
	if err := s.reserve(by.user); err != nil {
		return err
	}
	var received, sent atomic.Int64
	x := s.session(by, client.String(), muster.DoorStraight, way, &received, &sent)
	x.flow = &flow.Way{Client: client, Node: node, Mark: markOf(x.record.ID)}
	x.stop = func() { s.stopFlow(x) }
	var err error
	if x.flow.Source, err = s.flows.SourceTo(node); err != nil {
		s.release(by.user)
		return err
	}
	if old := s.flowOf(client); old != nil { // its port is another connection's now
		s.flowOver(old, muster.GatewayEndClosed, "")
	}
	if err := s.enter(x); err != nil {
		s.release(by.user)
		return err
	}
	s.mu.Lock()
	for _, o := range s.flowing { // the node sees ports of clients, and the gateway's address
		if o.flow.Node == node && o.flow.Client.Port() == client.Port() {
			err = muster.Errorf(muster.EConflict, "another client has a connection to this node from its port %d", client.Port())
		}
	}
	s.flowing[client] = x
	s.mu.Unlock()
	if err != nil {
		s.flowOver(x, muster.GatewayEndClosed, "another client has this port")
		return err
	}
	x.mu.Lock()
	x.late = time.AfterFunc(ticketTime, func() { s.notUsed(x) })
	x.mu.Unlock()
	if err := s.flows.Add(*x.flow, ticketTime); err != nil {
		s.flowOver(x, muster.GatewayEndClosed, "the kernel let it not through")
		return err
	}
	return nil
}

// markOf is how the kernel marks a session: a door's, and a number that an ID always comes to.
func markOf(id muster.GatewaySessionID) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return flow.MarkDoor | h.Sum32()&0x00ffffff
}

func (s *Server) flowOf(client netip.AddrPort) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flowing[client]
}

// notUsed ends a session whose connection has not come in time.
func (s *Server) notUsed(x *session) {
	x.mu.Lock()
	used := x.used
	x.mu.Unlock()
	if used {
		return
	}
	if err := s.flows.Forget(*x.flow); err != nil {
		s.log.Warn("gateway: closing an unused way failed", "session", x.record.ID, "error", err)
	}
	s.flowOver(x, muster.GatewayEndClosed, ticketNotUsed)
}

// stopFlow ends the kernel's connection. What it counted comes with the event of its end; the
// record does not wait for long.
func (s *Server) stopFlow(x *session) {
	if err := s.flows.End(*x.flow); err != nil {
		s.log.Error("gateway: ending a connection in the kernel failed", "session", x.record.ID, "error", err)
	}
	x.mu.Lock()
	used := x.used
	x.mu.Unlock()
	if !used {
		s.flowOver(x, muster.GatewayEndClosed, "")
		return
	}
	time.AfterFunc(s.limits.Look, func() { s.flowOver(x, muster.GatewayEndClosed, "") })
}

// flowOver records the end of a session of the kernel's, once.
func (s *Server) flowOver(x *session, why muster.GatewayEnd, text string) {
	s.mu.Lock()
	here := s.flowing[x.flow.Client] == x
	if here {
		delete(s.flowing, x.flow.Client)
	}
	s.mu.Unlock()
	if !here {
		return
	}
	x.mu.Lock()
	if x.late != nil {
		x.late.Stop()
	}
	if x.reason == "" {
		x.reason, x.text = why, text
	}
	x.mu.Unlock()
	s.release(x.record.User)
	s.finish(x)
}

// countFlows brings the bytes of the kernel's sessions up to date.
func (s *Server) countFlows() {
	if s.flows == nil {
		return
	}
	list, err := s.flows.Flows()
	if err != nil {
		s.log.Warn("gateway: connections in the kernel could not be listed", "error", err)
	}
	for _, f := range list {
		if x := s.flowOf(f.Client); x != nil && x.flow.Mark == f.Mark {
			x.carried(f)
		}
	}
}

// carried notes what a connection has carried.
func (x *session) carried(f flow.Flow) {
	x.received.Store(max(x.received.Load(), int64(f.Received)))
	x.sent.Store(max(x.sent.Load(), int64(f.Sent)))
}

// flowWatcher hears of connections in the kernel.
type flowWatcher struct{ s *Server }

// Began closes the way that a connection has come by.
func (w flowWatcher) Began(f flow.Flow) {
	x := w.s.flowOf(f.Client)
	if x == nil || x.flow.Mark != f.Mark {
		if err := w.s.flows.Forget(f.Way); err != nil { // nobody's: it is not watched over
			w.s.log.Warn("gateway: ending a connection of nobody's failed", "from", f.Client, "error", err)
		}
		return
	}
	x.mu.Lock()
	x.used = true
	if x.late != nil {
		x.late.Stop()
	}
	ended := x.reason != ""
	x.mu.Unlock()
	err := w.s.flows.Used(f.Way)
	if ended {
		err = w.s.flows.End(f.Way)
	}
	if err != nil {
		w.s.log.Warn("gateway: closing a used way failed", "session", x.record.ID, "error", err)
	}
}

// Ended records the end of a connection.
func (w flowWatcher) Ended(f flow.Flow) {
	x := w.s.flowOf(f.Client)
	if x == nil || x.flow.Mark != f.Mark {
		return
	}
	x.carried(f)
	x.mu.Lock()
	stopped := x.reason != ""
	x.mu.Unlock()
	if !stopped { // of one that was stopped the node is still to hear
		if err := w.s.flows.Forget(f.Way); err != nil {
			w.s.log.Warn("gateway: removing a connection that ended failed", "session", x.record.ID, "error", err)
		}
	}
	w.s.flowOver(x, muster.GatewayEndClosed, "")
}

// Present compares what is there with what should be, after events were lost.
func (w flowWatcher) Present(list []flow.Flow) {
	there := map[netip.AddrPort]bool{}
	for _, f := range list {
		there[f.Client] = true
		if x := w.s.flowOf(f.Client); x != nil {
			x.carried(f)
		}
		w.Began(f)
	}
	var gone []*session
	w.s.mu.Lock()
	for client, x := range w.s.flowing {
		if !there[client] {
			gone = append(gone, x)
		}
	}
	w.s.mu.Unlock()
	for _, x := range gone {
		x.mu.Lock()
		used := x.used
		x.mu.Unlock()
		if used {
			_ = w.s.flows.Forget(*x.flow)
			w.s.flowOver(x, muster.GatewayEndLost, untilAtLeast)
		}
	}
}

const untilAtLeast = "its end was not seen; it lasted at least until its bytes were last recorded"

// Adopt goes on with the sessions on record whose connections the kernel still has, and reports
// which they are. It comes before Serve.
func (s *Server) Adopt(list []muster.GatewaySession) (map[muster.GatewaySessionID]bool, error) {
	on := map[muster.GatewaySessionID]bool{}
	if s.flows == nil {
		return on, nil
	}
	flows, err := s.flows.Flows()
	if err != nil {
		return nil, err
	}
	at := map[netip.AddrPort]flow.Flow{}
	for _, f := range flows {
		at[f.Client] = f
	}
	keep := []flow.Way{}
	for _, r := range list {
		client, err := netip.ParseAddrPort(r.From)
		f, there := at[client]
		if err != nil || !there || r.Door != muster.DoorStraight || markOf(r.ID) != f.Mark {
			continue
		}
		var received, sent atomic.Int64
		received.Store(r.Received)
		sent.Store(r.Sent)
		x := &session{by: opener{user: r.User, key: muster.DoorKey{Fingerprint: r.Fingerprint}, token: r.Token}, record: r, received: &received, sent: &sent, flow: &f.Way, used: true, since: s.now()}
		x.stop = func() { s.stopFlow(x) }
		s.mu.Lock()
		s.sessions[r.ID], s.flowing[client] = x, x
		s.taken++
		s.of[r.User]++
		s.mu.Unlock()
		on[r.ID] = true
		keep = append(keep, f.Way)
	}
	return on, s.flows.Keep(keep)
}
