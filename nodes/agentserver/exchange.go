package agentserver

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/wire"
)

// errGone ends an agent whose attempt is over.
var errGone = muster.Errorf(muster.EConflict, "this attempt of the node is over").Because(muster.ReasonAttemptOver)

// who reports which node asks, and answers those that may not. The node's
// committed record is looked at each time, in memory: an attempt that ended is
// refused at once, and a heartbeat costs no look at the database.
func (s *Server) who(w http.ResponseWriter, r *http.Request) (id pki.NodeIdentity, n muster.Node, ok bool) {
	id, err := s.identify(r)
	if err != nil {
		wire.WriteError(w, http.StatusUnauthorized, muster.Errorf(muster.EUnauth, "a node certificate is required").Because(muster.ReasonBadCertificate))
		return id, n, false
	}
	if !s.limits.Allow(id.Machine) {
		wire.WriteError(w, http.StatusTooManyRequests, muster.Errorf(muster.EUnavailable, "too many requests").Because(muster.ReasonTooManyRequests).WithHint("try again in a second"))
		return id, n, false
	}
	s.orders.hears(id.Machine, s.c.Clock.Now())
	n, err = s.c.Store.NodeNow(r.Context(), muster.System(), id.Cluster, id.Node)
	switch {
	case muster.CodeOf(err) == muster.ENotFound:
		s.over(w, id)
	case err != nil:
		s.fail(w, r, err)
	case n.Machine != id.Machine || n.Attempt != id.Attempt || n.Phase == muster.NodeGone:
		s.over(w, id)
	default:
		callerOf(r).recognized()
		return id, n, true
	}
	return id, n, false
}

// renew gives an agent a new certificate for what it proved to be.
func (s *Server) renew(w http.ResponseWriter, r *http.Request) {
	id, n, ok := s.who(w, r)
	if !ok {
		return
	}
	var q wire.RenewRequest
	if err := decode(r.Body, maxJoinBytes, &q); err != nil {
		wire.WriteError(w, status(err), asError(err))
		return
	}
	cert, expires, ok := s.sign(w, r, q.CSR, id)
	if !ok {
		return
	}
	answer(w, wire.JoinReply{
		Protocol: wire.AgentProtocol, Certificate: cert, Expires: expires, Interval: muster.Duration(s.interval(n)),
	})
}

// config answers the asking node's own configuration.
func (s *Server) config(w http.ResponseWriter, r *http.Request) {
	id, _, ok := s.who(w, r)
	if !ok {
		return
	}
	c, err := s.build(r.Context(), id.Cluster, id.Node)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.apart(r, &c)
	answer(w, c)
}

// watch answers the node's configuration once it is newer than the given
// generation, or 204 when that takes too long.
func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	have, err := strconv.ParseInt(r.URL.Query().Get("generation"), 10, 64)
	if err != nil {
		wire.WriteError(w, http.StatusBadRequest, muster.Errorf(muster.EInvalid, "the generation is not a number").Because(muster.ReasonBadValue))
		return
	}
	// A request that waits has more time than others. Net/http reads on meanwhile,
	// and ends its context when the agent hangs up.
	latest := time.Now().Add(s.c.WatchTime + answerTime)
	conn := http.NewResponseController(w)
	_, _ = conn.SetReadDeadline(latest), conn.SetWriteDeadline(latest) // not without a connection
	end := s.c.Clock.After(s.c.WatchTime)
	var speak <-chan struct{}
	for {
		// Listened for before it is looked at: no change falls between.
		id, _, ok := s.who(w, r)
		if !ok {
			return
		}
		changed := s.nextChange(id.Cluster)
		if speak == nil && r.URL.Query().Get("speak") != "" {
			speak = s.nextWord(nodeKey{id.Cluster, id.Node})
		}
		newer, err := s.newer(r.Context(), id.Cluster, have)
		var c wire.NodeConfig
		if err == nil && newer {
			c, err = s.build(r.Context(), id.Cluster, id.Node)
		}
		if err != nil {
			s.fail(w, r, err)
			return
		}
		if c.Generation > have {
			s.apart(r, &c)
			answer(w, c)
			return
		}
		select {
		case <-changed:
		case <-speak:
			answer(w, struct{}{}) // no configuration: a request to hear the agent
			return
		case <-end:
			w.WriteHeader(http.StatusNoContent)
			return
		case <-s.closed.Done():
			w.WriteHeader(http.StatusNoContent)
			return
		case <-r.Context().Done():
			return
		}
	}
}

// newer reports whether there may be a configuration newer than have.
func (s *Server) newer(ctx context.Context, id muster.ClusterID, have int64) (bool, error) {
	if s.c.Generation == nil {
		return true, nil
	}
	g, err := s.c.Generation(ctx, id)
	return g > have, err
}
