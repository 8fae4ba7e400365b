package bootapi

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/netip"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/ratelimit"
	"github.com/muster-hpc/muster/wire"
)

// maxAtOnce is how many hellos are answered at the same time. Each holds a
// connection and at most MaxBootHello bytes.
const maxAtOnce = 128

// Handler answers POST requests with a check-in. It must be served over TLS by this
// very program, because a check-in is bound to the connection that it comes over:
// not behind a proxy that ends TLS. Deadlines are the server's.
func (d *Server) Handler() http.Handler {
	turns := make(chan struct{}, maxAtOnce)
	rates := ratelimit.New[netip.Addr](ratelimit.Config{Now: d.c.Clock.Now, Every: rateEvery, Burst: rateBurst, Most: maxSources})
	places := &busy{of: map[netip.Addr]int{}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from := source(r)
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			wire.WriteError(w, http.StatusMethodNotAllowed, muster.Errorf(muster.EInvalid, "a check-in is posted"))
			return
		}
		if !rates.Allow(from) {
			wire.WriteError(w, http.StatusTooManyRequests, muster.Errorf(muster.EUnavailable, "too many hellos come from this address").Because(muster.ReasonTooManyRequests).WithHint("ask again later"))
			return
		}
		if !places.enter(from) {
			wire.WriteError(w, http.StatusTooManyRequests, muster.Errorf(muster.EUnavailable, "too many hellos of this address are not answered yet").Because(muster.ReasonTooManyRequests).WithHint("ask again in a moment"))
			return
		}
		defer places.leave(from)
		select {
		case turns <- struct{}{}:
			defer func() { <-turns }()
		default:
			wire.WriteError(w, http.StatusServiceUnavailable, muster.Errorf(muster.EUnavailable, "too many machines ask at once").Because(muster.ReasonTooManyRequests).WithHint("ask again in a moment"))
			return
		}
		h, err := read(w, r)
		var reply *wire.BootReply
		if err == nil {
			reply, err = d.CheckIn(r.Context(), h, from)
		}
		if err != nil {
			d.fail(w, r, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_ = json.NewEncoder(w).Encode(reply)
	})
}

// read reads a check-in and checks that who sent it holds its key.
func read(w http.ResponseWriter, r *http.Request) (*wire.BootCheckIn, error) {
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, wire.MaxBootCheckIn))
	if err != nil {
		return nil, muster.Errorf(muster.EInvalid, "the check-in is longer than %d bytes, or was cut off", wire.MaxBootCheckIn).Because(muster.ReasonTooLarge).Wrap(err)
	}
	h, err := wire.DecodeBootCheckIn(b)
	if err != nil {
		return nil, err
	}
	return h, prove(r.TLS, r.Header.Get(wire.BootProofHeader), h.Key, b)
}

// prove checks the signature that binds a check-in to its key and its connection.
func prove(c *tls.ConnectionState, header string, key, body []byte) error {
	wrong := muster.Errorf(muster.EUnauth, "the hello does not prove that its key is that of who sends it").
		WithHint("server and machine must speak without a proxy between them")
	if c == nil || c.Version < tls.VersionTLS13 {
		return wrong
	}
	proof, err := base64.StdEncoding.DecodeString(header)
	if err != nil {
		return wrong
	}
	exported, err := c.ExportKeyingMaterial(wire.BootExporter, nil, 32)
	if err != nil {
		return wrong.Wrap(err)
	}
	if !ed25519.Verify(key, wire.BootProofText(exported, sha256.Sum256(body)), proof) {
		return wrong
	}
	return nil
}

// fail answers an error. What is no refusal stays in the log.
func (d *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return
	}
	var e *muster.Error
	if status := statusOf(muster.CodeOf(err)); status != 0 && errors.As(err, &e) {
		wire.WriteError(w, status, e)
		return
	}
	d.c.Log.Warn("boot check-in failed", "from", r.RemoteAddr, "error", err)
	wire.WriteError(w, http.StatusServiceUnavailable, muster.Errorf(muster.EUnavailable, "the server cannot answer now").WithHint("ask again"))
}

// statusOf is the status of a refusal; 0: it is none.
func statusOf(c muster.Code) int {
	switch c {
	case muster.EInvalid:
		return http.StatusBadRequest
	case muster.EUnauth:
		return http.StatusUnauthorized
	case muster.EForbidden:
		return http.StatusForbidden
	case muster.ENotFound:
		return http.StatusNotFound
	case muster.EConflict:
		return http.StatusConflict
	}
	return 0
}

func source(r *http.Request) netip.Addr {
	a, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return a.Addr().Unmap()
}
