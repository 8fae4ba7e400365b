package api_test

import (
	"crypto/ed25519"
	"net/http"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/wire"
	"golang.org/x/crypto/ssh"
)

// A user of another project, whom an administrator lets into a cluster, uses
// it as herself and changes nothing.
func TestAGuestUsesAndDoesNotChange(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 4, Build: true})
	alice, eve := s.User("alice", "bio"), s.User("eve", "chem")
	c, other := create(t, s, alice, "cfd"), create(t, s, alice, "own")
	guest, ctx := s.Client(eve), t.Context()
	public, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	line, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	key := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(line)))
	if _, err := guest.Cluster(ctx, "cfd"); muster.CodeOf(err) != muster.ENotFound {
		t.Fatalf("before: %v", err)
	}
	share := func(r wire.ShareRequest) {
		t.Helper()
		if _, err := s.Control.Share(ctx, muster.Actor{Name: "root", Admin: true}, string(c.ID), r); err != nil {
			t.Fatal(err)
		}
	}
	share(wire.ShareRequest{Add: []string{"eve"}})

	seen, err := guest.Cluster(ctx, "cfd")
	if err != nil || seen.ID != c.ID || len(seen.Nodes) == 0 || len(seen.Volumes) != 0 {
		t.Fatalf("she sees %+v, %v", seen, err)
	}
	if list, err := guest.Clusters(ctx, client.ClusterFilter{}); err != nil || len(list) != 1 || list[0].ID != c.ID {
		t.Errorf("her list: %+v, %v", list, err)
	}
	if _, err := guest.Cluster(ctx, string(other.ID)); muster.CodeOf(err) != muster.ENotFound {
		t.Errorf("the other cluster: %v", err)
	}
	if list, err := guest.Volumes(ctx, wire.VolumeQuery{All: true}); err != nil || len(list) != 0 {
		t.Errorf("volumes: %+v, %v", list, err)
	}
	access, err := guest.Access(ctx, "cfd", wire.AccessRequest{PublicKey: key})
	if err != nil || access.User != "eve" {
		t.Errorf("access: %+v, %v", access, err)
	}
	for _, name := range []string{"alice", "root"} {
		if _, err := guest.Access(ctx, "cfd", wire.AccessRequest{PublicKey: key, User: name}); muster.CodeOf(err) != muster.EForbidden {
			t.Errorf("as %s: %v", name, err)
		}
	}
	tunnel, err := guest.Tunnel(ctx, "cfd", "n01")
	switch {
	case err == nil:
		_ = tunnel.Close()
	case muster.CodeOf(err) != muster.EUnavailable: // no machine listens here
		t.Errorf("tunnel: %v", err)
	}
	for _, call := range []struct{ method, path, body string }{
		{http.MethodDelete, "/v1/clusters/cfd", ""},
		{http.MethodDelete, "/v1/clusters/cfd?erase=true", ""},
		{http.MethodPost, "/v1/clusters/cfd/scale", `{"nodes": 2}`},
		{http.MethodPost, "/v1/clusters/cfd/extend", `{"by": "1h"}`},
		{http.MethodPost, "/v1/clusters/cfd/users", `{"add": ["eve"]}`},
		{http.MethodPost, "/v1/clusters/cfd/users", `{"remove": ["alice"]}`},
	} {
		if a := ask(t, s, eve, call.method, call.path, "application/json", call.body); a.status != http.StatusForbidden {
			t.Errorf("%s %s %s: %d %s", call.method, call.path, call.body, a.status, a.body)
		}
	}
	share(wire.ShareRequest{Remove: []string{"eve"}})
	if _, err := guest.Cluster(ctx, "cfd"); muster.CodeOf(err) != muster.ENotFound {
		t.Errorf("after: %v", err)
	}
	if _, err := guest.Access(ctx, "cfd", wire.AccessRequest{PublicKey: key}); muster.CodeOf(err) != muster.ENotFound {
		t.Errorf("access after: %v", err)
	}
}
