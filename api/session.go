package api

import (
	"context"
	"net/http"
	"time"

	"github.com/muster-hpc/muster"
)

// rightEvery is how often the right to a session that lives is looked at again: five
// seconds after it ended, the session has.
const rightEvery = 3 * time.Second

// whileAllowed calls end once who asked may not have asked any more: the token was revoked
// or expired, the user removed, a role lost, or the cluster of the request's path is not
// theirs to see now. It looks until stop is called. The socket of this host is always the
// administrator's.
func (a *API) whileAllowed(r *http.Request, end func()) (stop func()) {
	if r.Header.Get("Authorization") == "" {
		return func() {}
	}
	r = r.Clone(context.WithoutCancel(r.Context())) // the context of a connection that was taken over has ended
	first := who(r.Context())
	done := make(chan struct{})
	go func() {
		tick := time.NewTicker(a.rightEvery)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				if !a.stillAllowed(r, first) {
					end()
					return
				}
			}
		}
	}()
	return func() { close(done) }
}

// stillAllowed reports whether a request would be let in now as it was then. A store that
// cannot answer now takes no right away.
func (a *API) stillAllowed(r *http.Request, first muster.Actor) bool {
	ctx, cancel := context.WithTimeout(r.Context(), rightEvery)
	defer cancel()
	now, err := a.actor(r.WithContext(ctx))
	if err == nil && first.Admin && !now.Admin {
		return false
	}
	if ref := r.PathValue("cluster"); err == nil && ref != "" {
		err = a.service.Sees(ctx, now, ref)
	}
	switch muster.CodeOf(err) {
	case muster.EUnauth, muster.EForbidden, muster.ENotFound:
		return false
	}
	return true
}
