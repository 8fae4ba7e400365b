package api_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/wire"
)

// answer is what a request got.
type answer struct {
	status int
	body   string
	header http.Header
}

func (a answer) code(t *testing.T) muster.Code {
	t.Helper()
	var e muster.Error
	if err := json.Unmarshal([]byte(a.body), &e); err != nil {
		t.Fatalf("not an error: %d %s", a.status, a.body)
	}
	return e.Code
}

// ask makes one request over the site's socket.
func ask(t *testing.T, s *controltest.Site, token, method, path, contentType, body string, header ...string) answer {
	t.Helper()
	h := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", s.Socket)
	}}}
	req, err := http.NewRequestWithContext(t.Context(), method, "http://muster"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := h.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, string(out), resp.Header}
}

const goodKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGJV7OjMgZzPYxXSpkKqcVNvgvIhgqNl8cEvnE2U0u3c x"

// bodies are what routes want to be sent before they look at anything else.
func bodies() map[string]string {
	return map[string]string{
		"access":          `{"public_key": "` + goodKey + `"}`,
		"add-key":         `{"key": "` + goodKey + `"}`,
		"put-user":        `{"name": "mallory"}`,
		"create-token":    `{"user": "alice"}`,
		"scale-cluster":   `{"nodes": 2}`,
		"extend-cluster":  `{"by": "2h"}`,
		"share-cluster":   `{"add": ["bob"]}`,
		"measure-cluster": `{}`,
		"pause-cluster":   `{}`,
		"resume-cluster":  `{}`,
		"change-cluster":  `{"nodes": 2}`,
		"save-cluster":    `{"name": "x"}`,
		"start-run":       `{"program": "ep"}`,
		"set-doors":       `{"doors": ["jump"]}`,
	}
}

// Every route that names something: what belongs to another project answers
// as what does not exist.
func TestForbiddenLooksLikeAbsent(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 3, Build: true})
	alice, bob := s.User("alice", "bio"), s.User("bob", "chem")
	created := create(t, s, alice, "cfd")
	var doc struct {
		Paths map[string]map[string]struct {
			OperationID string `json:"operationId"`
		}
	}
	if err := json.Unmarshal(describe(t), &doc); err != nil {
		t.Fatal(err)
	}
	aliceTokens, err := s.Client(alice).Tokens(t.Context(), "")
	if err != nil || len(aliceTokens) != 1 {
		t.Fatal(aliceTokens, err)
	}
	real := map[string][]string{"cluster": {string(created.ID), "cfd"}, "user": {"alice"}, "token": {aliceTokens[0].ID}}
	absent := map[string][]string{"cluster": {"c-zzzzzzzzzz", "cfx"}, "user": {"alicx"}, "token": {"t-zzzzzzzz"}}
	walked := 0
	for path, methods := range doc.Paths {
		for _, kind := range []string{"cluster", "user", "token"} {
			if !strings.Contains(path, "{"+kind+"}") {
				continue
			}
			for method, op := range methods {
				for i := range real[kind] {
					walked++
					get := func(name, token string) answer {
						p := strings.ReplaceAll(strings.ReplaceAll(path, "{"+kind+"}", name), "{node}", "n01")
						if op.OperationID == "remove-key" {
							p += "?key=x"
						}
						if strings.HasSuffix(op.OperationID, "events") {
							p += "?follow=0"
						}
						upgrade := "muster-tunnel"
						if strings.HasSuffix(op.OperationID, "console") {
							upgrade = "muster-console"
						}
						a := ask(t, s, token, strings.ToUpper(method), p, "application/json", bodies()[op.OperationID], "Upgrade", upgrade, "Connection", "Upgrade")
						a.body = strings.ReplaceAll(a.body, name, "NAME")
						return a
					}
					forbidden, missing := get(real[kind][i], bob), get(absent[kind][i], bob)
					want := http.StatusNotFound
					if op.OperationID == "remove-user" {
						want = http.StatusForbidden // nobody but administrators, whoever it is
					}
					if forbidden.status != want || forbidden.status != missing.status || forbidden.body != missing.body {
						t.Errorf("%s %s with %s:\n  forbidden %d %s\n  absent    %d %s", method, path, real[kind][i], forbidden.status, forbidden.body, missing.status, missing.body)
					}
				}
			}
		}
	}
	if walked < 15 {
		t.Errorf("only %d requests were tried: the walk is broken", walked)
	}
	// And the lists: nothing of alice's.
	for path := range doc.Paths {
		if strings.Contains(path, "{") || doc.Paths[path]["get"].OperationID == "" {
			continue
		}
		query := ""
		if strings.HasSuffix(path, "events") {
			query = "?follow=0"
		}
		if op := doc.Paths[path]["get"].OperationID; op == "history" || op == "compare" || op == "compare-platforms" { // of what is named
			get := func(name string) answer {
				a := ask(t, s, bob, http.MethodGet, path+"?of="+name+map[bool]string{true: "&of=" + name}[op != "history"], "", "")
				a.body = strings.ReplaceAll(a.body, name, "NAME")
				return a
			}
			for i, name := range real["cluster"] {
				if forbidden, missing := get(name), get(absent["cluster"][i]); forbidden.status != http.StatusNotFound || forbidden.body != missing.body {
					t.Errorf("GET %s of %s:\n  forbidden %d %s\n  absent    %d %s", path, name, forbidden.status, forbidden.body, missing.status, missing.body)
				}
			}
			continue
		}
		a := ask(t, s, bob, http.MethodGet, path+query, "", "")
		if path == "/v1/gateways" { // processes of the site
			if a.status != http.StatusForbidden {
				t.Errorf("GET %s: %d %s", path, a.status, a.body)
			}
			continue
		}
		if a.status != http.StatusOK {
			t.Errorf("GET %s: %d %s", path, a.status, a.body)
		}
		if regexp.MustCompile(`alice|cfd|`+string(created.ID)).MatchString(a.body) && !strings.Contains(path, "openapi") {
			t.Errorf("GET %s shows bob something of alice's: %s", path, a.body)
		}
	}
	if c, err := s.Client(alice).Cluster(t.Context(), "cfd"); err != nil || c.Status == muster.ClusterDeleting {
		t.Errorf("alice's cluster afterwards: %s, %v", c.Status, err)
	}
}

func create(t *testing.T, s *controltest.Site, token, name string) wire.Created {
	t.Helper()
	a := ask(t, s, token, http.MethodPost, "/v1/clusters", "application/yaml", "name: "+name+"\nnodes: 1\nhead: shared\n")
	var out wire.Created
	if err := json.Unmarshal([]byte(a.body), &out); err != nil || a.status != http.StatusCreated || out.ID == "" || out.Status == "" {
		t.Fatalf("%d %s: %v", a.status, a.body, err)
	}
	return out
}

func TestUsersMayNotDoWhatAdministratorsDo(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{})
	alice := s.User("alice", "bio")
	s.User("bob", "bio")
	for _, try := range [][3]string{
		{"POST", "/v1/users", `{"name": "mallory", "admin": true}`},
		{"POST", "/v1/users", `{"name": "alice", "admin": true}`},
		{"DELETE", "/v1/users/bob", ""},
		{"POST", "/v1/users/bob/keys", `{"key": "` + goodKey + `"}`},
		{"POST", "/v1/tokens", `{"user": "bob"}`},
		{"DELETE", "/v1/images/raw", ""},
		{"POST", "/v1/images/raw/verify", ""},
	} {
		if a := ask(t, s, alice, try[0], try[1], "application/json", try[2]); a.status != http.StatusForbidden {
			t.Errorf("%s %s %s: %d %s", try[0], try[1], try[2], a.status, a.body)
		}
	}
	if a := ask(t, s, alice, "POST", "/v1/users/alice/keys", "application/json", `{"key": "`+goodKey+`"}`); a.status != http.StatusOK {
		t.Errorf("her own key: %d %s", a.status, a.body)
	}
}

func TestWhoIsLetIn(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{})
	alice := s.User("alice", "bio")
	you := func(token string) string {
		var out wire.Server
		a := ask(t, s, token, "GET", "/v1/server", "", "")
		_ = json.Unmarshal([]byte(a.body), &out)
		return out.You
	}
	if you("") != "root" || you(alice) != "alice" {
		t.Errorf("the socket's owner is %q, the token's %q", you(""), you(alice))
	}
	for _, bad := range []string{"mst_wrong", "x", strings.Repeat("a", 300), alice + "x"} {
		a := ask(t, s, bad, "GET", "/v1/server", "", "")
		if a.status != http.StatusUnauthorized || a.code(t) != muster.EUnauth || a.header.Get("WWW-Authenticate") == "" {
			t.Errorf("token %q: %d %s", bad, a.status, a.body)
		}
		if strings.Contains(a.body, bad) && len(bad) > 3 {
			t.Errorf("the token is told back: %s", a.body)
		}
	}
	tokens, _ := s.Client(alice).Tokens(t.Context(), "")
	if err := s.Client(alice).RevokeToken(t.Context(), tokens[0].ID); err != nil {
		t.Fatal(err)
	}
	if a := ask(t, s, alice, "GET", "/v1/server", "", ""); a.status != http.StatusUnauthorized {
		t.Errorf("a revoked token: %d %s", a.status, a.body)
	}
}

// Over the network there is no administrator without a token, whatever the
// user ID of the process; and no token without TLS.
func TestNetworkWantsTLSAndToken(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{})
	alice := s.User("alice", "bio")
	get := func(server *httptest.Server, token string) int {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/v1/server", nil)
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode
	}
	secure := httptest.NewUnstartedServer(s.API.Handler())
	secure.Config.ConnContext = api.ConnContext
	secure.TLS = &tls.Config{MinVersion: tls.VersionTLS13}
	secure.StartTLS()
	defer secure.Close()
	plain := httptest.NewUnstartedServer(s.API.Handler())
	plain.Config.ConnContext = api.ConnContext
	plain.Start()
	defer plain.Close()
	got := []int{get(secure, ""), get(secure, "mst_bad"), get(secure, alice), get(plain, ""), get(plain, alice)}
	if want := []int{401, 401, 200, 401, 401}; !slices.Equal(got, want) {
		t.Errorf("statuses %v, want %v", got, want)
	}
}
