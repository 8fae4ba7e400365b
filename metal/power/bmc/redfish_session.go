package bmc

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"strings"
	"time"
)

// webIdle ends a session that nobody uses.
const webIdle = 5 * time.Minute

// webSession is one session of Redfish.
type webSession struct {
	id, token string
	until     time.Time
}

// right compares in the same time whatever is wrong.
func (b *BMC) right(user, password string) bool {
	u := subtle.ConstantTimeCompare([]byte(user), []byte(b.cfg.User))
	p := subtle.ConstantTimeCompare([]byte(password), []byte(b.password()))
	return u&p == 1
}

// authorized lets requests through that carry a session's token, or name and
// password.
func (b *BMC) authorized(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if token := r.Header.Get("X-Auth-Token"); token != "" {
			if b.session(token) {
				next(w, r)
				return
			}
			refuse(w, 401, "Base.1.0.NoValidSession", "there is no such session")
			return
		}
		user, password, ok := r.BasicAuth()
		switch {
		case !ok:
			refuse(w, 401, "Base.1.0.NoValidSession", "no session, no name and password")
		case !b.right(user, password):
			b.refuse()
			refuse(w, 401, "Base.1.0.NoValidSession", "name or password is wrong")
		default:
			next(w, r)
		}
	}
}

// session finds a token and keeps its session alive.
func (b *BMC) session(token string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expireWeb()
	found := false
	for _, s := range b.web {
		if subtle.ConstantTimeCompare([]byte(s.token), []byte(token)) == 1 {
			s.until, found = b.clock.Now().Add(webIdle), true
		}
	}
	return found
}

func (b *BMC) expireWeb() {
	now := b.clock.Now()
	for id, s := range b.web {
		if now.After(s.until) {
			delete(b.web, id)
		}
	}
}

func (b *BMC) login(w http.ResponseWriter, r *http.Request) {
	var q struct{ UserName, Password string }
	if !bodyOf(w, r, &q) {
		return
	}
	switch f := b.Broken(); {
	case b.cfg.Model.NoSessions:
		refuse(w, 405, "Base.1.0.ActionNotSupported", "there are no sessions here")
		return
	case f.RefusesSessions:
		refuse(w, 500, "Base.1.0.InternalError", "internal error")
		return
	case !b.right(q.UserName, q.Password):
		b.refuse()
		refuse(w, 401, "Base.1.0.ResourceAtUriUnauthorized", "name or password is wrong")
		return
	}
	s := &webSession{id: random(8), token: random(24), until: b.clock.Now().Add(webIdle)}
	b.mu.Lock()
	b.expireWeb()
	full := b.faults.TableFull || len(b.web) >= b.cfg.Sessions
	if !full {
		b.web[s.id] = s
	}
	b.mu.Unlock()
	if full {
		refuse(w, 503, "Base.1.0.SessionLimitExceeded", "the table of sessions is full")
		return
	}
	w.Header().Set("X-Auth-Token", s.token)
	w.Header().Set("Location", pathSessions+"/"+s.id)
	send(w, 201, b.sessionObject(s.id))
}

func (b *BMC) sessionObject(id string) object {
	return object{
		"@odata.id": pathSessions + "/" + id, "@odata.type": "#Session.v1_3_0.Session",
		"Id": id, "Name": "Session", "UserName": b.cfg.User, "Password": nil,
	}
}

func (b *BMC) sessionService(w http.ResponseWriter, _ *http.Request) {
	send(w, 200, object{
		"@odata.id": strings.TrimSuffix(pathSessions, "/Sessions"), "@odata.type": "#SessionService.v1_1_8.SessionService",
		"Id": "SessionService", "Name": "Session service", "ServiceEnabled": true,
		"SessionTimeout": int(webIdle.Seconds()), "Sessions": link(pathSessions),
	})
}

func (b *BMC) listSessions(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	var paths []string
	for id := range b.web {
		paths = append(paths, pathSessions+"/"+id)
	}
	b.mu.Unlock()
	collection("Session", pathSessions, paths...)(w, r)
}

func (b *BMC) showSession(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	_, ok := b.web[r.PathValue("id")]
	b.mu.Unlock()
	if !ok {
		refuse(w, 404, "Base.1.0.ResourceMissingAtURI", "there is no such session")
		return
	}
	send(w, 200, b.sessionObject(r.PathValue("id")))
}

func (b *BMC) logout(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	_, ok := b.web[r.PathValue("id")]
	delete(b.web, r.PathValue("id"))
	b.mu.Unlock()
	if !ok {
		refuse(w, 404, "Base.1.0.ResourceMissingAtURI", "there is no such session")
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func random(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails: crypto/rand aborts the program instead
	return hex.EncodeToString(b)
}
