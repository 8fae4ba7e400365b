package api_test

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/client"
	"github.com/muster-hpc/muster/control"
	"github.com/muster-hpc/muster/control/controltest"
	"github.com/muster-hpc/muster/wire"
)

// quiet is a console or a node's port that says nothing and stays.
type quiet struct{ net.Conn }

func (quiet) Resize(int, int) error { return nil }

// A right that ends takes every living session by it along, within five seconds; who
// keeps the right keeps the session.
func TestSessionsEndWithTheirRight(t *testing.T) {
	t.Parallel()
	root := muster.Actor{Name: "root", Admin: true}
	for name, end := range map[string]func(t *testing.T, s *controltest.Site, id muster.ClusterID){
		"the token is revoked": func(t *testing.T, s *controltest.Site, _ muster.ClusterID) {
			list, err := s.Control.Tokens(t.Context(), root, "bob")
			if err != nil || len(list) == 0 {
				t.Fatal(list, err)
			}
			for _, k := range list {
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
			s := controltest.Start(t, controltest.Options{Machines: 3, Build: true, Control: func(c *control.Config) {
				silent := func() net.Conn {
					near, far := net.Pipe()
					go func() { _, _ = io.Copy(io.Discard, far) }()
					return near
				}
				c.Console = func(context.Context, muster.Machine, bool) (io.ReadWriteCloser, error) { return quiet{silent()}, nil }
				c.Dialer = control.DialFunc(func(context.Context, muster.Machine, int) (net.Conn, error) { return silent(), nil })
			}})
			alice, bob := s.User("alice", "bio"), s.User("bob", "chem") // of another project: the cluster alone lets bob in
			c := create(t, s, alice, "cfd")
			if _, err := s.Control.Share(t.Context(), root, string(c.ID), wire.ShareRequest{Add: []string{"bob"}}); err != nil {
				t.Fatal(err)
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
				wait("console", func() error { _, err := console.Read(make([]byte, 1)); return err })
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
				case <-ch:
				case <-time.After(8 * time.Second): // five, and a slow host
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
