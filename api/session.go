package api

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/muster-hpc/muster"
)

// rightEvery is how often the right to a session that lives is looked at again, and how
// long that may take: five seconds after the right ended, the session has.
const rightEvery = 2 * time.Second

// rightEnded is the last that a terminal hears.
const rightEnded = "[muster: this session is ended: you may not use it any more]"

// session is a request whose answer lives: a tunnel, a console, a stream.
type session struct {
	api *API
	r   *http.Request
	who muster.Actor // who asked, as they were then
	// cluster is what it is of, by its ID: a name may come to be another's. "" for the
	// site, or a machine.
	cluster string
	shell   bool
}

// whileAllowed calls end once who asked may not have asked any more: the token was revoked
// or expired, the user removed, a role or a project lost, or what the session needs of its
// cluster is not theirs now. It looks until stop is called. The socket of this host is
// always the administrator's.
func (a *API) whileAllowed(r *http.Request, end func()) (stop func()) {
	if r.Header.Get("Authorization") == "" {
		return func() {}
	}
	r = r.Clone(context.WithoutCancel(r.Context())) // the context of a connection that was taken over has ended
	s := &session{api: a, r: r, who: who(r.Context()), cluster: r.PathValue("cluster")}
	s.shell, _ = strconv.ParseBool(r.URL.Query().Get("shell"))
	done := make(chan struct{})
	go func() {
		for s.allowed() {
			select {
			case <-done:
				return
			case <-time.After(rightEvery):
			}
		}
		end()
	}()
	return func() { close(done) }
}

// allowed reports whether the request would be let in now as it was then. A store that
// cannot answer takes no right away.
func (s *session) allowed() bool {
	ctx, cancel := context.WithTimeout(s.r.Context(), rightEvery)
	defer cancel()
	now, err := s.api.actor(s.r.WithContext(ctx))
	switch {
	case err != nil:
	case s.who.Admin && !now.Admin:
		return false
	case s.cluster != "":
		var id muster.ClusterID
		if id, err = s.api.service.MayUse(ctx, now, s.cluster, s.shell); err == nil {
			s.cluster = string(id)
		}
	case slices.ContainsFunc(s.who.Projects, func(p string) bool { return !slices.Contains(now.Projects, p) }):
		return false // what it tells was chosen by what they were then
	}
	switch muster.CodeOf(err) {
	case muster.EUnauth, muster.EForbidden, muster.ENotFound:
		return false
	}
	return true
}
