package pipes_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/muster-hpc/muster/internal/pipes"
)

// An hour of waiting for an answer is over at once.
func TestPipes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := pipes.New()
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Hour)
			fmt.Fprint(w, r.RemoteAddr)
		})}
		over := make(chan error, 1)
		go func() { over <- srv.Serve(l) }()
		from := netip.MustParseAddr("192.0.2.1")
		pipe := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return l.Dial(ctx, from) }}
		q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.Addr().String(), nil)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		a, err := pipe.RoundTrip(q)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 20)
		n, _ := a.Body.Read(b)
		_ = a.Body.Close()
		if string(b[:n]) != "192.0.2.1:1" || time.Since(began) != time.Hour {
			t.Errorf("%q after %s", b[:n], time.Since(began))
		}
		pipe.CloseIdleConnections()
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		if err := <-over; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
		if _, err := l.Dial(t.Context(), from); !errors.Is(err, net.ErrClosed) {
			t.Errorf("nobody listens any more: %v", err)
		}
	})
}
