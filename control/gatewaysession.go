package control

import (
	"context"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// GatewayBegin records a session before anything of it passes.
func (s *Service) GatewayBegin(ctx context.Context, x muster.GatewaySession) error {
	return s.Store.Update(ctx, muster.System(), func(tx *store.Tx) error { return tx.BeginGatewaySession(x) })
}

// GatewayBytes records what passed so far in sessions.
func (s *Service) GatewayBytes(ctx context.Context, list []muster.GatewaySession) error {
	return s.Store.Update(ctx, muster.System(), func(tx *store.Tx) error {
		for _, x := range list {
			if err := tx.GatewayBytes(x.ID, x.Received, x.Sent); err != nil {
				return err
			}
		}
		return nil
	})
}

// GatewayEnd records the end of a session.
func (s *Service) GatewayEnd(ctx context.Context, x muster.GatewaySession) error {
	return s.Store.Update(ctx, muster.System(), func(tx *store.Tx) error { return tx.EndGatewaySession(x) })
}

// OpenSessions are those on record that nobody has ended.
func (s *Service) OpenSessions(ctx context.Context) (list []muster.GatewaySession, _ error) {
	return list, s.Store.View(ctx, muster.System(), func(tx *store.Tx) (err error) {
		list, err = tx.GatewaySessions(store.GatewayFilter{Open: true})
		return err
	})
}

// EndLostSessions closes the records of sessions of a server that ended without a word, but for
// those that go on.
func (s *Service) EndLostSessions(ctx context.Context, goesOn map[muster.GatewaySessionID]bool) error {
	return s.Store.Update(ctx, muster.System(), func(tx *store.Tx) error {
		list, err := tx.GatewaySessions(store.GatewayFilter{Open: true})
		for _, x := range list {
			if err != nil {
				return err
			}
			if x.Gateway != "" || goesOn[x.ID] {
				continue // it lasts there, whatever this server did
			}
			x.Ended, x.End, x.Text = s.Clock.Now(), muster.GatewayEndLost, "the server ended; it lasted at least until its bytes were last recorded"
			err = tx.EndGatewaySession(x)
		}
		return err
	})
}

// GatewayInfo is how the gateway is reached; without an address where this server has none.
func (s *Service) GatewayInfo(ctx context.Context, who muster.Actor) (wire.Gateway, error) {
	out := wire.Gateway{Doors: []muster.Door{}, HostAuthority: s.Hosts.PublicLine()}
	if who.Token != "" {
		out.User = who.Name
	}
	if s.Gateway != nil {
		out.Address, out.HostKey, out.Names = s.Gateway.Address(), s.Gateway.HostKey(), s.Gateway.Names()
		out.Doors = muster.Doors()
	}
	return out, s.Store.View(ctx, muster.System(), func(tx *store.Tx) error {
		list, err := tx.Gateways()
		for _, g := range list {
			out.Gateways = append(out.Gateways, s.knownProcess(g))
		}
		if len(list) > 0 {
			out.Doors = muster.Doors()
		}
		return err
	})
}

// GatewaySessions lists sessions, the newest first: the actor's own, or everybody's for
// administrators.
func (s *Service) GatewaySessions(ctx context.Context, who muster.Actor, q wire.GatewayQuery) (wire.GatewaySessionList, error) {
	out := wire.GatewaySessionList{Sessions: []muster.GatewaySession{}}
	err := s.Store.View(ctx, who, func(tx *store.Tx) error {
		f := store.GatewayFilter{User: q.User, Open: q.Open, Limit: q.Size() + 1, After: q.After}
		if q.Cluster != "" {
			c, err := tx.FindCluster(q.Cluster)
			if err != nil {
				return err
			}
			f.Cluster = c.ID
		}
		list, err := tx.GatewaySessions(f)
		if err != nil {
			return err
		}
		list, more := partOf(list, q.Page)
		out.Sessions = append(out.Sessions, list...)
		out.More, err = nextAfter(list, more, func(x muster.GatewaySession) (string, error) { return tx.GatewayCursor(x.ID) })
		return err
	})
	if err == nil {
		live := s.liveSessions()
		for i, x := range out.Sessions {
			if now, ok := live[x.ID]; ok && x.Open() {
				out.Sessions[i].Received, out.Sessions[i].Sent = now.Received, now.Sent
			}
		}
	}
	return out, err
}

// KillGatewaySession ends an open session: one's own, or anybody's by administrators.
func (s *Service) KillGatewaySession(ctx context.Context, who muster.Actor, id string) error {
	over := muster.Errorf(muster.EConflict, "session %.64s has ended", id).Because(muster.ReasonWrongPhase).WithHint("see 'muster gateway log'")
	var x muster.GatewaySession
	err := s.Store.Update(ctx, who, func(tx *store.Tx) (err error) {
		x, err = tx.GatewaySession(muster.GatewaySessionID(id))
		switch {
		case err != nil:
			return err
		case !x.Open() || x.Gateway == "" && s.Gateway == nil:
			return over
		}
		return tx.AsSystem().Note(muster.AuditUser, x.User, "", who.Name+" ends session "+string(x.ID)+" at the gateway")
	})
	if err == nil && !s.endAt(x, "ended by "+who.Name) {
		return over
	}
	return err
}
