package api_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/control"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/wire"
)

// quiet is a console or a node's port that says nothing and stays.
type quiet struct{ net.Conn }

func (quiet) Resize(int, int) error { return nil }

// silentSite has machines whose consoles and ports say nothing.
func silentSite(t *testing.T) *controltest.Site {
	t.Helper()
	return controltest.Start(t, controltest.Options{Machines: 3, Build: true, Control: func(c *control.Config) {
		silent := func() net.Conn {
			near, far := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, far) }()
			return near
		}
		c.Console = func(context.Context, muster.Machine, bool) (io.ReadWriteCloser, error) { return quiet{silent()}, nil }
		c.Dialer = control.DialFunc(func(context.Context, muster.Machine, int) (net.Conn, error) { return silent(), nil })
	}})
}

// ends waits until a connection ends, and reports whether it did.
func ends(c io.Reader, within time.Duration) bool {
	done := make(chan struct{})
	go func() { _, _ = c.Read(make([]byte, 1)); close(done) }()
	select {
	case <-done:
		return true
	case <-time.After(within):
		return false
	}
}

// Who may still see a cluster, and is not its user any more, loses the root shell and
// keeps what they may read.
func TestAShellEndsWithItsRight(t *testing.T) {
	t.Parallel()
	s := silentSite(t)
	root := muster.Actor{Name: "root", Admin: true}
	alice, bob := s.User("alice", "bio"), s.User("bob", "bio")
	a := ask(t, s, alice, http.MethodPost, "/v1/clusters", "application/yaml", "name: rw\nnodes: 1\nhead: shared\nimage: raw\nusers: [alice, bob]\n")
	if a.status != http.StatusCreated {
		t.Fatal(a.body)
	}
	k := s.Client(bob)
	shell, err := k.NodeConsole(t.Context(), "rw", "head", true)
	if err != nil {
		t.Fatal(err)
	}
	reading, err := k.NodeConsole(t.Context(), "rw", "head", false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = shell.Close(); _ = reading.Close() })
	if _, err := s.Control.Share(t.Context(), root, "rw", wire.ShareRequest{Remove: []string{"bob"}}); err != nil {
		t.Fatal(err)
	}
	if !ends(shell, 8*time.Second) { // five, and a slow host
		t.Error("the root shell goes on")
	}
	if ends(reading, 100*time.Millisecond) {
		t.Error("who may read the console cannot any more")
	}
}

// What the site's stream tells is chosen by what somebody may see: it ends when that
// becomes less, and is asked for anew.
func TestTheSitesStreamEndsWithAProject(t *testing.T) {
	t.Parallel()
	s := silentSite(t)
	bob := s.User("bob", "bio", "chem")
	stream := func() io.Reader {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://muster/v1/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+bob)
		c := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", s.Socket)
		}}}
		answer, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = answer.Body.Close() })
		return answer.Body
	}
	body := stream()
	over := make(chan struct{})
	go func() { _, _ = io.Copy(io.Discard, body); close(over) }()
	time.Sleep(200 * time.Millisecond) // it is there
	if _, err := s.Control.PutUser(t.Context(), muster.Actor{Name: "root", Admin: true}, wire.UserRequest{Name: "bob", Projects: []string{"chem"}}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-over:
	case <-time.After(time.Minute):
		t.Error("it goes on to tell what it told before")
	}
}

// A right that ends takes every living session by it along, within five seconds; who
// keeps the right keeps the session.
func TestSessionsEndWithTheirRight(t *testing.T) {
	t.Parallel()
	root := muster.Actor{Name: "root", Admin: true}
	for name, end := range map[string]func(t *testing.T, s *controltest.Site, id muster.ClusterID){
		"the token is revoked": func(t *testing.T, s *controltest.Site, _ muster.ClusterID) {
			list, err := s.Control.Tokens(t.Context(), root, wire.TokenQuery{User: "bob"})
			if err != nil || len(list.Tokens) == 0 {
				t.Fatal(list, err)
			}
			for _, k := range list.Tokens {
				if err := s.Control.RevokeToken(t.Context(), root, k.ID); err != nil {
					t.Fatal(err)
				}
			}
		},
		"taken off the cluster": func(t *testing.T, s *controltest.Site, id muster.ClusterID) {
			if _, err := s.Control.Share(t.Context(), root, string(id), wire.ShareRequest{Remove: []string{"bob"}}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := silentSite(t)
			alice, bob := s.User("alice", "bio"), s.User("bob", "chem") // of another project: the cluster alone lets bob in
			c := create(t, s, alice, "cfd")
			if _, err := s.Control.Share(t.Context(), root, string(c.ID), wire.ShareRequest{Add: []string{"bob"}}); err != nil {
				t.Fatal(err)
			}
			for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) { // it is built beside
				if got, err := s.Control.Cluster(t.Context(), root, string(c.ID)); err != nil || time.Now().After(end) {
					t.Fatalf("cluster %s is not ready: %v", got.Status, err)
				} else if got.Status == muster.ClusterReady {
					break
				}
			}
			sessions := func(token string) map[string]chan error {
				k, ended := s.Client(token), map[string]chan error{}
				wait := func(kind string, f func() error) {
					ch := make(chan error, 1)
					ended[kind] = ch
					go func() { ch <- f() }()
				}
				tunnel, err := k.Tunnel(t.Context(), string(c.ID), "n01")
				if err != nil {
					t.Fatal(err)
				}
				console, err := k.NodeConsole(t.Context(), string(c.ID), "n01", false)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = tunnel.Close(); _ = console.Close() })
				wait("tunnel", func() error { _, err := tunnel.Read(make([]byte, 1)); return err })
				wait("console", func() error {
					said, err := io.ReadAll(console)
					if err == nil && !strings.Contains(string(said), "this session is ended") {
						err = fmt.Errorf("it ends without a word: %q", said)
					}
					return err
				})
				wait("events", func() error {
					return k.Events(t.Context(), client.EventOptions{Cluster: string(c.ID), Follow: true}, func(wire.Event) error { return nil })
				})
				return ended
			}
			his, hers := sessions(bob), sessions(alice)
			time.Sleep(200 * time.Millisecond) // the streams are there
			end(t, s, c.ID)
			for kind, ch := range his {
				select {
				case err := <-ch:
					if kind == "console" && err != nil {
						t.Errorf("the %s: %v", kind, err)
					}
				case <-time.After(time.Minute): // five seconds, and a slow host
					t.Errorf("the %s goes on", kind)
				}
			}
			for kind, ch := range hers {
				select {
				case err := <-ch:
					t.Errorf("the %s of somebody who may ended: %v", kind, err)
				default:
				}
			}
		})
	}
}
