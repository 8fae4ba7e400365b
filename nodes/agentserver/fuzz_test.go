package agentserver_test

import (
	"bytes"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/nodes/agentserver"
)

func FuzzDecodeReport(f *testing.F) {
	f.Add([]byte(`{"attempt":1,"state":"ready","stages":[{"name":"a","at":"2026-01-01T00:00:00Z"}],"journal":[{"message":"x"}],"scheduler":{"up":true,"nodes":{"n01":"idle"}}}`))
	f.Add([]byte(`{"attempt":1,"state":"ready","checks":null,"usage":{"cpu_user":1e308}}`))
	f.Add([]byte(`{"attempt":1,"state":"ready","topology":{"source":"hwloc","packages":[{"id":0,"nodes":[{"id":0,"groups":[{"cores":[[0]]}]}]}],"nics":[{"name":"eno1","node":0}]}}`))
	f.Add([]byte(`{"attempt":1,"state":"ready","seconds":{"ago_seconds":0.5,"user":[1,2],"system":[0,0],"wait":[0,1e300]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := agentserver.DecodeReport(bytes.NewReader(b))
		if err != nil {
			if muster.CodeOf(err) != muster.EInvalid {
				t.Errorf("%v", err)
			}
			return
		}
		if r.Attempt < 1 || len(r.Stages) > 64 || len(r.Checks) > 64 || len(r.Journal) > 2000 {
			t.Errorf("%+v", r)
		}
		if r.Topology != nil && r.Topology.Check() != nil {
			t.Errorf("%+v", r.Topology)
		}
		if u := r.Seconds; u != nil && (len(u.User) == 0 || len(u.User) > 600 || len(u.User) != len(u.System) || len(u.User) != len(u.Wait) || !(u.Ago >= 0 && u.Ago <= 3600)) {
			t.Errorf("%+v", u)
		}
		for _, l := range r.Journal {
			if len(l.Message) > 4<<10 || strings.ContainsAny(l.Message, "\x00\x1b\r\n") {
				t.Errorf("line %q", l.Message)
			}
		}
	})
}

func FuzzDecodeJoin(f *testing.F) {
	f.Add([]byte(`{"protocol":1,"machine":"m","attempt":1,"token":"mjt_secret","csr":"x"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		q, err := agentserver.DecodeJoin(bytes.NewReader(b))
		if err != nil && (muster.CodeOf(err) != muster.EInvalid || q.Token != "") {
			t.Errorf("%v", err)
		}
		if err == nil && (q.Attempt < 1 || q.Machine == "") {
			t.Errorf("%+v", q)
		}
	})
}

// Whatever is said on a connection, it ends with it, what is answered is HTTP,
// and the next one is answered.
func FuzzServe(f *testing.F) {
	x := newLine(f, 0)
	f.Add([]byte("GET /v1/config HTTP/1.1\r\nHost: m\r\n\r\n"))
	f.Add([]byte("POST /v1/report HTTP/1.1\r\nHost: m\r\nContent-Length: 5\r\n\r\n{}"))
	f.Add([]byte("POST /v1/join HTTP/1.1\r\nHost: m\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"a\":\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n"))
	f.Add([]byte("GET /v1/watch?generation=1 HTTP/1.0\r\nExpect: 100-continue\r\n\r\n\x00\xff"))
	f.Add([]byte("GET /v1/hosts/%2e%2e%2f HTTP/1.1\r\nHost: m\r\n\r\nGET /v1/hosts/x HTTP/1.1\r\nHost: m\r\n\r\n"))
	f.Add([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		conn, err := tls.Dial("tcp", x.addr, &tls.Config{RootCAs: x.authority.Pool(), ServerName: "muster"})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		_, _ = conn.Write(b) // it may have been cut off already
		_ = conn.CloseWrite()
		out, err := io.ReadAll(io.LimitReader(conn, 1<<20))
		if err != nil && strings.Contains(err.Error(), "timeout") {
			t.Fatalf("the connection does not end: %q", out)
		}
		if len(out) > 0 && !bytes.HasPrefix(out, []byte("HTTP/1.")) {
			t.Errorf("answered %q", out)
		}
		w, err := x.client.Get("https://" + x.addr + "/v1/config")
		if err != nil {
			t.Fatal(err)
		}
		if _ = w.Body.Close(); w.StatusCode != http.StatusUnauthorized {
			t.Errorf("the next one is answered %d", w.StatusCode)
		}
	})
}
