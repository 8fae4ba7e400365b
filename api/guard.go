package api

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
)

const (
	maxBody   = 1 << 20          // a request file is a few kilobytes
	replyTime = 60 * time.Second // to take an ordinary reply
)

// guard is what every request passes: a net for panics, authentication, and
// limits on number, size and time.
func (a *API) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if p == http.ErrAbortHandler { //nolint:errorlint // net/http compares it so
				panic(p)
			}
			a.log.Error("panic", "method", r.Method, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
			a.write(w, r, defect())
		}()
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		control := http.NewResponseController(w)
		_ = control.SetWriteDeadline(time.Now().Add(replyTime))
		known, end, err := a.admit(r)
		if err != nil {
			if !errors.Is(err, errTooMany) || r.ProtoMajor == 1 && r.ContentLength != 0 {
				// The body is not read: the connection cannot go on.
				w.Header().Set("Connection", "close")
			}
			a.write(w, r, err)
			return
		}
		defer end()
		r = known
		if err := onlyReads(r); err != nil {
			w.Header().Set("Connection", "close") // the body is not read
			a.write(w, r, err)
			return
		}
		if err := readAll(w, r, control, a.bodyTime); err != nil {
			w.Header().Set("Connection", "close")
			a.write(w, r, err)
			return
		}
		next.ServeHTTP(oneFormWriter{w}, r)
	})
}

// gatewayWork is where gateways do their work. Others have nothing to do there.
const gatewayWork = "/v1/gateway/work/"

// onlyReads refuses what a token that only reads may not do: changes, ways into nodes, and
// what programs of tenants wrote, which may hold their secrets.
func onlyReads(r *http.Request) error {
	if work := strings.HasPrefix(r.URL.Path, gatewayWork); work != (who(r.Context()).Gateway != "") {
		return muster.Errorf(muster.EForbidden, "a gateway's token is for its work, and that for gateways").Because(muster.ReasonNoAccess).
			WithHint("use a token of your own; 'muster gateway serve' has the gateway's")
	}
	if !who(r.Context()).ReadOnly {
		return nil
	}
	e := muster.Errorf(muster.EForbidden, "this token only reads").Because(muster.ReasonReadOnly)
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return e.WithHint("use a token of your own for changes")
	}
	for _, end := range []string{"/tunnel", "/console", "/logs", "/logs/stream"} {
		if strings.HasSuffix(r.URL.Path, end) {
			return e.WithHint("tunnels, consoles and logs are for people: use a token of your own")
		}
	}
	return nil
}

// open reports whether a path is for everybody: it shows nothing of the site.
func open(path string) bool {
	return path == "/v1/health" || path == "/v1/certificates/keys" || strings.HasPrefix(path, "/v1/openapi")
}

// readAll takes the whole body, in time and within bounds, before any route
// runs.
func readAll(w http.ResponseWriter, r *http.Request, control *http.ResponseController, limit time.Duration) error {
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return nil
	}
	_ = control.SetReadDeadline(time.Now().Add(limit))
	body, err := io.ReadAll(http.MaxBytesReader(own(w), r.Body, maxBody))
	_ = control.SetReadDeadline(time.Time{})
	var big *http.MaxBytesError
	switch {
	case errors.As(err, &big):
		return muster.Errorf(muster.EInvalid, "the request is larger than %d KiB", maxBody>>10).Because(muster.ReasonTooLarge).
			WithHint("a cluster request is a few lines; check which file was sent")
	case err != nil:
		return muster.Errorf(muster.EInvalid, "the request broke off").Because(muster.ReasonBrokenOff).WithHint("send it again").Wrap(err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength = int64(len(body))
	return nil
}
