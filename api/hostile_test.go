package api_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/daemon/controltest"
)

// Whatever is sent, the answer is an error in the one form, and nothing is
// made.
func TestHostileRequests(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 2})
	deep := strings.Repeat("[", 100000)
	bomb := "a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nname: *b\n"
	entity := `<!DOCTYPE c [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><cluster><name>&b;</name></cluster>`
	for name, try := range map[string]struct {
		method, path, kind, body string
		want                     int
	}{
		"empty":             {"POST", "/v1/clusters", "application/json", "", 400},
		"not json":          {"POST", "/v1/clusters", "application/json", "{", 400},
		"binary":            {"POST", "/v1/clusters", "application/json", "\x00\xff\xfe\x00", 400},
		"deep json":         {"POST", "/v1/clusters", "application/json", deep, 400},
		"deep yaml":         {"POST", "/v1/clusters", "application/yaml", deep, 400},
		"yaml bomb":         {"POST", "/v1/clusters", "application/yaml", bomb, 400},
		"entities":          {"POST", "/v1/clusters", "application/xml", entity, 400},
		"duplicate":         {"POST", "/v1/clusters", "application/json", `{"name":"a","name":"b","nodes":1}`, 400},
		"two documents":     {"POST", "/v1/clusters", "application/json", `{"name":"a","nodes":1}{"name":"b"}`, 400},
		"huge":              {"POST", "/v1/clusters", "application/json", strings.Repeat(" ", 2<<20), 400},
		"odd type":          {"POST", "/v1/clusters", "image/png", "x", 400},
		"many nodes":        {"POST", "/v1/clusters", "application/json", `{"name":"a","nodes":999999999999999999999}`, 400},
		"negative":          {"POST", "/v1/clusters", "application/json", `{"name":"a","nodes":-1}`, 400},
		"traversal":         {"POST", "/v1/clusters", "application/json", `{"name":"../../etc","nodes":1}`, 400},
		"user with newline": {"POST", "/v1/users", "application/json", `{"name":"a\nroot:x:0:0"}`, 400},
		"user root":         {"POST", "/v1/users", "application/json", `{"name":"root"}`, 400},
		"unknown field":     {"POST", "/v1/users", "application/json", `{"name":"alice","shell":"/bin/x"}`, 400},
		"wrong type":        {"POST", "/v1/users", "application/json", `{"name":7}`, 400},
		"key with command":  {"POST", "/v1/users", "application/json", `{"name":"al","keys":["command=\"rm -rf /\" ` + goodKey + `"]}`, 400},
		"two keys":          {"POST", "/v1/users", "application/json", `{"name":"al","keys":["` + goodKey + `\n` + goodKey + `"]}`, 400},
		"unknown parameter": {"GET", "/v1/clusters?al=1", "", "", 400},
		"bad parameter":     {"GET", "/v1/clusters/x/logs?lines=-5", "", "", 400},
		"long name":         {"GET", "/v1/clusters/" + strings.Repeat("a", 1000), "", "", 400},
		"no route":          {"GET", "/v2/clusters", "", "", 404},
		"no method":         {"PATCH", "/v1/clusters", "", "", 404},
		"dots":              {"GET", "/v1/clusters/..%2f..%2fetc", "", "", 404},
		"bad event":         {"GET", "/v1/events?follow=0", "", "", 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := ask(t, s, "", try.method, try.path, try.kind, try.body)
			if a.status != try.want {
				t.Fatalf("status %d, want %d: %.300s", a.status, try.want, a.body)
			}
			if try.want == 200 {
				return
			}
			var e muster.Error
			if err := json.Unmarshal([]byte(a.body), &e); err != nil || e.Code == "" || e.Message == "" {
				t.Errorf("not an error of ours: %.300s", a.body)
			}
			if !strings.HasPrefix(a.header.Get("Content-Type"), "application/json") {
				t.Errorf("content type %q", a.header.Get("Content-Type"))
			}
			if len(a.body) > 8<<10 {
				t.Errorf("%d bytes of answer", len(a.body))
			}
		})
	}
	t.Cleanup(func() {
		if list, err := s.Client("").Clusters(t.Context(), clientAll()); len(list) != 0 {
			t.Errorf("something was made: %v, %v", list, err)
		}
	})
}

// A client that sends no end of a body does not hold its connection for ever,
// and does not hold up others.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{})
	conn, err := net.Dial("unix", s.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "POST /v1/clusters HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
	if a := ask(t, s, "", "GET", "/v1/health", "", ""); a.status != http.StatusOK {
		t.Errorf("others wait: %d", a.status)
	}
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusBadRequest {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

func TestHealthNeedsNoToken(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{})
	a := ask(t, s, "mst_bad", "GET", "/v1/health", "", "")
	if a.status != http.StatusOK || !strings.Contains(a.body, `"ok"`) {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func clientAll() client.ClusterFilter { return client.ClusterFilter{All: true} }
