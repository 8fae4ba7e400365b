package api

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"sync"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/connlimit"
)

// Limits are how many requests may be under way at once. Zero fields take the values of
// DefaultLimits. Those of the administrator of this host, by the local socket, do not
// count and are never refused: whatever comes over the network leaves that way in.
type Limits struct {
	// Brief are requests of one user that are answered and over, Long tunnels, consoles
	// and streams of one user, which live.
	Brief, Long int
	// Stranger are requests of one address (of IPv6: of one /64) of which nobody is known:
	// those that need no token, and apart from them those whose token is looked up.
	Stranger int
	// All are Brief ones of all users.
	All int
}

// DefaultLimits are far above what the commands open: `exec --all` has 64 requests under
// way, and 32 tunnels.
func DefaultLimits() Limits { return Limits{Brief: 128, Long: 1024, Stranger: 64, All: 1024} }

// streamsOfConnection is how many requests one connection of HTTP/2 carries at once: as
// many as a user may have that are brief, and as many again that live.
const streamsOfConnection = 256

// errTooMany is the cause of refusals that end with status 429.
var errTooMany = errors.New("too many requests under way")

// inflight counts requests that are under way.
type inflight struct {
	limits Limits
	mu     sync.Mutex
	held   map[string]int
}

func newInflight(l Limits) *inflight {
	d := DefaultLimits()
	for _, f := range []struct{ is, or *int }{{&l.Brief, &d.Brief}, {&l.Long, &d.Long}, {&l.Stranger, &d.Stranger}, {&l.All, &d.All}} {
		if *f.is <= 0 {
			*f.is = *f.or
		}
	}
	return &inflight{limits: l, held: map[string]int{}}
}

// take counts one more under a name unless most are counted there. give takes it back,
// once.
func (f *inflight) take(name string, most int) (give func(), ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held[name] >= most {
		return nil, false
	}
	f.held[name]++
	return sync.OnceFunc(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.held[name]--; f.held[name] == 0 {
			delete(f.held, name)
		}
	}), true
}

func tooMany(hint, format string, args ...any) error {
	return muster.Errorf(muster.EUnavailable, format, args...).Because(muster.ReasonTooManyRequests).WithHint("%s", hint).Wrap(errTooMany)
}

// stranger counts a request of which nobody is known, of one kind.
func (f *inflight) stranger(kind string, r *http.Request) (give func(), err error) {
	from := r.RemoteAddr
	if a, err := netip.ParseAddrPort(from); err == nil {
		from = connlimit.SourceOf(a.Addr()).String()
	}
	give, ok := f.take(kind+" "+from, f.limits.Stranger)
	if !ok {
		return nil, tooMany("ask again in a moment", "too many requests of your address are under way (%d)", f.limits.Stranger)
	}
	return give, nil
}

// user counts a request of a user.
func (f *inflight) user(name string) (*turn, error) {
	mine, ok := f.take("brief "+name, f.limits.Brief)
	if !ok {
		return nil, tooMany("wait for some of them, and ask again in a moment",
			"you have %d requests under way, which is as many as one user may", f.limits.Brief)
	}
	all, ok := f.take("all", f.limits.All)
	if !ok {
		mine()
		return nil, tooMany("ask again in a moment", "the server has %d requests under way, which is as many as it takes", f.limits.All)
	}
	return &turn{of: f, name: name, give: func() { mine(); all() }}, nil
}

// turn is the place of one request among those under way. Nil: it does not count.
type turn struct {
	of   *inflight
	name string
	give func()
}

// end gives the place back.
func (t *turn) end() {
	if t != nil {
		t.give()
	}
}

// live makes the request of a context one that lives: it counts as such from now on.
func live(ctx context.Context) error {
	t, _ := ctx.Value(turnKey).(*turn)
	if t == nil {
		return nil
	}
	give, ok := t.of.take("long "+t.name, t.of.limits.Long)
	if !ok {
		return tooMany("end some of them first", "you have %d tunnels, consoles and streams open, which is as many as one user may", t.of.limits.Long)
	}
	t.give()
	t.give = give
	return nil
}

// admit finds out who makes a request and counts it. end is called when it is over.
func (a *API) admit(r *http.Request) (_ *http.Request, end func(), err error) {
	none := func() {}
	p, _ := r.Context().Value(peerKey).(peer)
	local := p.local && r.Header.Get("Authorization") == "" // who may open the socket is known by the kernel
	if open(r.URL.Path) {
		if local {
			return r, none, nil
		}
		end, err = a.inflight.stranger("open", r)
		return r, end, err
	}
	if !local {
		looked, err := a.inflight.stranger("token", r)
		if err != nil {
			return nil, nil, err
		}
		defer looked()
	}
	actor, err := a.actor(r)
	if err != nil {
		return nil, nil, err
	}
	var t *turn
	if !local {
		if t, err = a.inflight.user(actor.Name); err != nil {
			return nil, nil, err
		}
	}
	ctx := context.WithValue(context.WithValue(r.Context(), actorKey, actor), turnKey, t)
	return r.WithContext(ctx), t.end, nil
}
