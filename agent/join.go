package agent

import (
	"errors"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/backoff"
	"github.com/muster-hpc/muster/wire"
)

// join exchanges the token for a credential, for as long as it takes. It
// returns the first configuration where the server sent it along.
func (a *agent) join() (*wire.NodeConfig, error) {
	csr, err := a.cred.request(a.Bootstrap.Machine)
	if err != nil {
		return nil, muster.Errorf(muster.EInternal, "no request for a certificate could be made").Wrap(err)
	}
	q := wire.JoinRequest{
		Protocol: wire.AgentProtocol, Version: a.Version, Machine: a.Bootstrap.Machine,
		Attempt: a.Bootstrap.Attempt, Token: a.Bootstrap.Token, CSR: csr,
	}
	var lost orphan
	for failures := 0; ; {
		config, err := a.joinOnce(q)
		if err == nil {
			return config, nil
		}
		if a.ctx.Err() != nil {
			return nil, a.ctx.Err()
		}
		failures++
		a.trouble(err, failures)
		a.neverJoined(&lost, err)
		most := pauseBooting
		if refused(err) {
			most = pauseRefused
		}
		if !a.sleep(backoff.After(failures, pauseFirst, most)) {
			return nil, a.ctx.Err()
		}
	}
}

func (a *agent) joinOnce(q wire.JoinRequest) (*wire.NodeConfig, error) {
	r, err := a.link.Join(a.ctx, q)
	if err != nil {
		return nil, err
	}
	if err := speaks(r.Protocol); err != nil {
		return nil, err
	}
	c, err := a.cred.with(r.Certificate, a.Clock.Now())
	if err != nil {
		return nil, err
	}
	a.use(c)
	a.setInterval(r.Interval)
	a.contact(true)
	a.Stage("joined")
	a.Bootstrap.Token = ""
	if a.Spent != nil {
		if err := a.Spent(); err != nil {
			a.Log.Warn("removing used token failed", "error", err)
		}
	}
	a.saveState()
	if !a.useful(r.Config) {
		return nil, nil // it is fetched then
	}
	return r.Config, nil
}

// speaks reports whether a server's version of the protocol is at most one away.
func speaks(version int) error {
	if d := version - wire.AgentProtocol; d < -1 || d > 1 {
		return muster.Errorf(muster.EInvalid, "the server speaks version %d of the agents' protocol, this agent %d", version, wire.AgentProtocol).
			WithHint("boot the node again: it then gets the server's own agent")
	}
	return nil
}

// refused reports whether the server said no, so that hurrying is of no use.
func refused(err error) bool {
	switch muster.CodeOf(err) {
	case muster.EUnauth, muster.EForbidden, muster.EInvalid, muster.EConflict, muster.ENotFound:
		return true
	}
	return false
}

// renew gets the next certificate, with a new key.
func (a *agent) renew() error {
	next, err := newCredential()
	if err != nil {
		return err
	}
	csr, err := next.request(a.Bootstrap.Machine)
	if err != nil {
		return err
	}
	r, err := a.link.Renew(a.ctx, wire.RenewRequest{CSR: csr})
	if err != nil {
		return err
	}
	if next, err = next.with(r.Certificate, a.Clock.Now()); err != nil {
		return err
	}
	a.use(next)
	a.contact(true)
	a.Log.Info("node certificate renewed", "until", next.cert.Leaf.NotAfter.Format(time.RFC3339))
	return nil
}

// renewAgain is when to try after a failure: often enough to use what is left.
func (a *agent) renewAgain() time.Duration {
	leaf := a.cred.cert.Leaf
	life := leaf.NotAfter.Sub(leaf.NotBefore)
	return around(min(max(life/30, time.Second), time.Hour))
}

// trouble notes a failure; the first, and the first of a new kind, is logged.
func (a *agent) trouble(err error, failures int) {
	text := Describe(err)
	a.mu.Lock()
	before := a.status.Trouble
	a.status.Trouble = text
	a.mu.Unlock()
	if before != text {
		cause := errors.Unwrap(err)
		a.Log.Warn(text, "failures", failures, "cause", cause)
	}
	a.tell()
}

// Describe is an error for people: what happened, and in brackets what to do.
func Describe(err error) string {
	return muster.Describe(err)
}

// contact notes that the server answered. Trouble that is not with the
// connection stays.
func (a *agent) contact(well bool) {
	a.mu.Lock()
	a.status.LastContact = a.Clock.Now()
	if !well {
		a.mu.Unlock()
		return
	}
	again := a.status.Trouble != ""
	a.status.Trouble = ""
	a.mu.Unlock()
	if again {
		a.Log.Info("server connection restored")
	}
}
