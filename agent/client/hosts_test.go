package client_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// listing is a server whose configurations come without their hosts.
type listing struct {
	generation atomic.Int64
	lists      atomic.Int64 // that were answered
	late       atomic.Int64 // that many lists are gone when they are asked for
}

func (l *listing) serve(w http.ResponseWriter, r *http.Request) {
	g := l.generation.Load()
	digest := fmt.Sprintf("d%d", g/10) // most changes leave the list as it was
	switch {
	case r.URL.Path == "/v1/hosts/"+digest && l.late.Add(-1) < 0:
		l.lists.Add(1)
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_ = json.NewEncoder(z).Encode([]wire.Host{{Name: digest}})
		_ = z.Close()
	case strings.HasPrefix(r.URL.Path, "/v1/hosts/"):
		w.WriteHeader(http.StatusNotFound)
	case r.URL.Query().Get("hosts") != "apart":
		w.WriteHeader(http.StatusBadRequest)
	case r.URL.Path == "/v1/join":
		_ = json.NewEncoder(w).Encode(wire.JoinReply{Config: &wire.NodeConfig{Generation: g, HostsDigest: digest}})
	default:
		_ = json.NewEncoder(w).Encode(wire.NodeConfig{Generation: g, HostsDigest: digest})
	}
}

func TestHostsAreFetchedWhenTheyChanged(t *testing.T) {
	t.Parallel()
	l := &listing{}
	c := serve(t, l.serve, nil)
	check := func(got *wire.NodeConfig, err error, host string, lists int64) {
		t.Helper()
		if err != nil || len(got.Hosts) != 1 || got.Hosts[0].Name != host || got.HostsDigest != "" || l.lists.Load() != lists {
			t.Fatalf("%+v, %v; %d lists were fetched", got, err, l.lists.Load())
		}
	}
	r, err := c.Join(t.Context(), wire.JoinRequest{})
	check(r.Config, err, "d0", 1)
	l.generation.Store(1)
	got, err := c.Watch(t.Context(), 0)
	check(got, err, "d0", 1)
	l.generation.Store(10)
	got, err = c.Config(t.Context())
	check(got, err, "d1", 2)
	l.generation.Store(20)
	l.late.Store(1) // there is a newer list meanwhile
	got, err = c.Watch(t.Context(), 10)
	check(got, err, "d2", 3)
	// Lists that are never there end somewhere, and a join goes on without.
	l.generation.Store(30)
	l.late.Store(1 << 30)
	if _, err := c.Config(t.Context()); muster.CodeOf(err) != muster.EUnavailable {
		t.Errorf("%v", err)
	}
	if r, err := c.Join(t.Context(), wire.JoinRequest{}); err != nil || r.Config != nil {
		t.Errorf("%+v, %v", r.Config, err)
	}
}

// What is compressed is bounded by what it inflates to.
func TestInflatedAnswersAreBounded(t *testing.T) {
	t.Parallel()
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, strings.Repeat(" ", 1<<20))
		_ = z.Close()
	}, nil)
	if _, err := c.Renew(t.Context(), wire.RenewRequest{}); muster.CodeOf(err) != muster.EUnavailable || !strings.Contains(err.Error(), "longer") {
		t.Errorf("%v", err)
	}
}
