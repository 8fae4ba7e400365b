package api_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// A token that only reads walks all routes: it sees everything that an administrator sees,
// but for what may hold secrets, and changes nothing.
func TestReadOnlyTokenOnAllRoutes(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 6})
	root := s.Client("")
	alice := s.Client(s.User("alice", "aero"))
	s.User("watch", "site")
	if _, err := alice.CreateToken(t.Context(), wire.TokenRequest{ReadOnly: true}); muster.ReasonOf(err) != muster.ReasonAdminOnly {
		t.Errorf("a user makes a token that reads everything: %v", err)
	}
	token, err := root.CreateToken(t.Context(), wire.TokenRequest{User: "watch", ReadOnly: true})
	if err != nil || !token.ReadOnly {
		t.Fatal(token, err)
	}
	c, err := alice.CreateCluster(t.Context(), client.Create{Format: "yaml", Body: []byte("name: cfd\nnodes: 1")})
	if err != nil {
		t.Fatal(err)
	}
	var secrets []string
	err = s.Store.View(t.Context(), muster.System(), func(tx *store.Tx) error {
		for _, name := range []string{muster.SecretHostCA, muster.SecretUserCA, muster.SecretMungeKey} {
			text, err := tx.Secret(c.ID, name)
			if err != nil {
				return err
			}
			secrets = append(secrets, strings.TrimSpace(string(text)))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	secrets = append(secrets, token.Secret)
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", s.Socket)
	}}
	defer transport.CloseIdleConnections()
	ask := func(method, path string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), method, "http://muster"+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token.Secret)
		req.Header.Set("Content-Type", "application/json")
		resp, err := (&http.Client{Transport: transport}).Do(req)
		if err != nil {
			t.Fatal(method, path, err)
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(text)
	}
	before := history(t, s)
	forPeople := []string{"/tunnel", "/console", "/logs", "/logs/stream"}
	reads, writes := 0, 0
	fill := strings.NewReplacer("{cluster}", string(c.ID), "{machine}", "fake-01", "{user}", "alice", "{node}", "n01", "{image}", "hpc", "{project}", "aero",
		"{token}", token.ID, "{volume}", "cfd-home", "{name}", "aero")
	paths := contract(t).Paths
	paths["/metrics"] = map[string]operation{"get": {}}
	for path, methods := range paths {
		for method := range methods {
			url := fill.Replace(path)
			if strings.HasSuffix(path, "events") {
				url += "?follow=0"
			}
			status, text := ask(strings.ToUpper(method), url)
			barred := slices.ContainsFunc(forPeople, func(end string) bool { return strings.HasSuffix(path, end) })
			var refused wire.Refused
			_ = json.Unmarshal([]byte(text), &refused)
			switch {
			case method != "get" || barred:
				writes++
				reason := muster.ReasonReadOnly
				if strings.Contains(path, "/gateway/work/") { // for a gateway's token only
					reason = muster.ReasonNoAccess
				}
				if status != http.StatusForbidden || refused.Reason != reason {
					t.Errorf("%s %s: %d %s", method, url, status, text)
				}
			default:
				reads++
				if status == http.StatusForbidden || status == http.StatusUnauthorized || status >= 500 {
					t.Errorf("%s %s: %d %s", method, url, status, text)
				}
			}
			for _, secret := range secrets {
				if strings.Contains(text, secret) {
					t.Errorf("%s %s shows a secret", method, url)
				}
			}
		}
	}
	if after := history(t, s); after != before {
		t.Errorf("%d changes were made", after-before)
	}
	if reads < 25 || writes < 40 {
		t.Errorf("only %d reads and %d others were tried", reads, writes)
	}
	for path, want := range map[string]string{"/v1/clusters": string(c.ID), "/v1/machines": string(c.ID), "/metrics": `name="cfd"`, "/v1/events?follow=0": string(c.ID), "/v1/tokens": `"read_only":true`, "/v1/server": `"read_only":true`} {
		if status, text := ask("GET", path); status != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%s: %d %.300s, want %s", path, status, text, want)
		}
	}
	// Below the API, too.
	watch, err := s.Store.Authenticate(t.Context(), pki.HashToken(token.Secret))
	if err != nil || !watch.ReadOnly {
		t.Fatal(watch, err)
	}
	if _, err := s.Control.DeleteCluster(t.Context(), watch, string(c.ID)); muster.ReasonOf(err) != muster.ReasonReadOnly {
		t.Errorf("deleted: %v", err)
	}
}

// history counts the audit lines of a site.
func history(t *testing.T, s *controltest.Site) (n int) {
	t.Helper()
	err := s.Store.View(t.Context(), muster.System(), func(tx *store.Tx) error {
		list, err := tx.Audits(store.AuditFilter{})
		n = len(list)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
