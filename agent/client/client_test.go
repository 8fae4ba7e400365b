package client_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/agent/client"
	"github.com/muster-hpc/muster/wire"
)

func serve(t *testing.T, h http.HandlerFunc, change func(*httptest.Server)) *client.Client {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	if change != nil {
		change(s)
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	c, err := client.New(client.Options{Server: s.URL, CA: string(ca), Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]muster.Code{
		400: muster.EInvalid, 401: muster.EUnauth, 403: muster.EForbidden, 404: muster.ENotFound, 409: muster.EConflict,
		410: muster.EConflict, 429: muster.EUnavailable, 500: muster.EUnavailable, 503: muster.EUnavailable, 302: muster.EInvalid,
	} {
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "https://127.0.0.1:1/")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"message":"no\nway","hint":"do this"}`)
		}, nil)
		_, err := c.Config(context.Background())
		if muster.CodeOf(err) != want || err.Error() != "no way" {
			t.Errorf("%d: %v (%s)", status, err, muster.CodeOf(err))
		}
	}
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, `{"code":"unauthorized","message":"`+strings.Repeat("m", 5000)+`"}`)
	}, nil)
	if _, err := c.Config(context.Background()); muster.CodeOf(err) != muster.EUnauth || len(err.Error()) > 400 {
		t.Errorf("%v", err)
	}
}

func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for range 100 {
			if _, err := io.WriteString(w, strings.Repeat(" ", 1<<20)); err != nil {
				return
			}
		}
	}, nil)
	if _, err := c.Config(context.Background()); muster.CodeOf(err) != muster.EUnavailable || !strings.Contains(err.Error(), "longer") {
		t.Errorf("%v", err)
	}
	if _, _, err := c.Report(context.Background(), &wire.Report{}); muster.CodeOf(err) != muster.EUnavailable {
		t.Errorf("%v", err)
	}
}

// An order for thousands of nodes comes through, whichever answer it comes with.
func TestLongOrders(t *testing.T) {
	t.Parallel()
	order := wire.LaunchOrder{ID: "1", Input: strings.Repeat("0", wire.MaxLaunchInput), Hosts: slices.Repeat([]string{"n0000"}, 1<<16)}
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var reply any = wire.LaunchReply{Next: &order}
		if r.URL.Path == "/v1/report" {
			reply = wire.ReportReply{Launch: &order}
		}
		_ = json.NewEncoder(w).Encode(reply)
	}, nil)
	if r, _, err := c.Report(context.Background(), &wire.Report{}); err != nil || !reflect.DeepEqual(r.Launch, &order) {
		t.Errorf("with a report: %v", err)
	}
	if r, err := c.Launched(context.Background(), wire.LaunchEnd{ID: "0"}, nil); err != nil || !reflect.DeepEqual(r.Next, &order) {
		t.Errorf("after a launch: %v", err)
	}
}

func TestOldTLSIsRefused(t *testing.T) {
	t.Parallel()
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }, func(s *httptest.Server) {
		s.TLS = &tls.Config{MaxVersion: tls.VersionTLS12, MinVersion: tls.VersionTLS12}
	})
	if _, err := c.Config(context.Background()); muster.CodeOf(err) != muster.EUnavailable {
		t.Errorf("%v", err)
	}
}

func TestWatchWithoutNews(t *testing.T) {
	t.Parallel()
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("generation") != "7" {
			t.Errorf("asked for %s", r.URL)
		}
		w.WriteHeader(http.StatusNoContent)
	}, nil)
	if got, err := c.Watch(context.Background(), 7); got != nil || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}

func TestReportTellsFreshConnections(t *testing.T) {
	t.Parallel()
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"interval_seconds":0.005}`) }, nil)
	for i, want := range []bool{true, false, false} {
		r, fresh, err := c.Report(context.Background(), &wire.Report{})
		if err != nil || fresh != want || r.Interval != muster.Duration(5*time.Millisecond) {
			t.Errorf("%d: fresh %v, %v", i, fresh, err)
		}
	}
}

// A clock that is years behind must not keep a node from its server.
func TestClockBehind(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"generation":3}`) }))
	s.StartTLS()
	t.Cleanup(s.Close)
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	past := func() time.Time { return time.Unix(-86400*365, 0) }
	for _, known := range []time.Time{{}, time.Now()} {
		c, err := client.New(client.Options{Server: s.URL, CA: ca, Now: past, NotBefore: known})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Config(context.Background()); (err == nil) != !known.IsZero() {
			t.Errorf("known %v: %v", known, err)
		}
		c.Close()
	}
}

func FuzzDecode(f *testing.F) {
	for _, v := range []any{wire.JoinReply{Config: &wire.NodeConfig{Generation: 1}}, wire.ReportReply{Interval: muster.Duration(1 * time.Millisecond)}, wire.NodeConfig{Node: "n"}, []wire.Host{{Name: "n"}}} {
		b, err := json.Marshal(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, into := range []any{new(wire.JoinReply), new(wire.ReportReply), new(wire.NodeConfig), new([]wire.Host)} {
			err := client.Decode(strings.NewReader(string(b)), 1<<12, into)
			if err == nil && len(b) > 1<<12+1 {
				t.Fatal("too long and accepted")
			}
			if err != nil && muster.CodeOf(err) != muster.EUnavailable {
				t.Fatalf("%v", err)
			}
			if err == nil { // what was read can be written and read again
				again, err := json.Marshal(into)
				if err != nil {
					return // a time that JSON cannot say
				}
				back := reflect.New(reflect.TypeOf(into).Elem()).Interface()
				if err := json.Unmarshal(again, back); err != nil {
					t.Fatalf("%v", err)
				}
			}
		}
	})
}

// A report that goes over a connection which another request has made since is told
// to be the first of a new one: the server may have been started again.
func TestFreshByAnotherRequest(t *testing.T) {
	t.Parallel()
	var srv *httptest.Server
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}")
	}, func(s *httptest.Server) { srv = s })
	report := func() bool {
		_, fresh, err := c.Report(t.Context(), &wire.Report{})
		if err != nil {
			t.Fatal(err)
		}
		return fresh
	}
	if !report() || report() {
		t.Error("the first report is over a new connection, the second is not")
	}
	srv.CloseClientConnections()
	// The first try may meet the connection that was just closed.
	for try := 0; ; try++ {
		_, err := c.Launched(t.Context(), wire.LaunchEnd{ID: "1"}, strings.NewReader("x"))
		if err == nil {
			break
		}
		if try == 10 {
			t.Fatal(err)
		}
	}
	if !report() {
		t.Error("the connection is another one, and nobody was told")
	}
	if report() {
		t.Error("that was told twice")
	}
}
