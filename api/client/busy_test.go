package client_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
)

// A server that is busy is asked again with the same request, and believed in the end.
func TestBusyServer(t *testing.T) {
	t.Parallel()
	busy, asked := 0, []string{}
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = append(asked, r.Method+" "+r.URL.Path+" "+string(body))
		w.Header().Set("Content-Type", "application/json")
		if busy > 0 {
			busy--
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, `{"code":"unavailable","message":"you have 9 requests under way","hint":"wait"}`)
			return
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{}`)
	})}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	k, err := client.New(client.Config{Server: "unix:" + path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	busy = 4
	if _, err := k.CreateCluster(t.Context(), request("cfd")); err != nil {
		t.Fatal(err)
	}
	if len(asked) != 5 || asked[4] != asked[0] || !strings.Contains(asked[4], "cfd") {
		t.Errorf("%q", asked)
	}
	busy = 100
	_, err = k.Tunnel(t.Context(), "cfd", "n01")
	var e *muster.Error
	if !errors.As(err, &e) || e.Code != muster.EUnavailable || e.Hint != "wait" || busy != 95 {
		t.Errorf("%v, asked %d times", err, 100-busy)
	}
}
