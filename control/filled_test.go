package control_test

import (
	"context"
	"crypto/ed25519"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
	"golang.org/x/crypto/ssh"
)

// A cluster is not named like a machine: an administrator who names the one
// would reach the other.
func TestClusterIsNotNamedLikeAMachine(t *testing.T) {
	t.Parallel()
	s, _ := scaleSite(t, 3, 1, nil)
	for _, dry := range []bool{true, false} {
		call := yaml("name: fake-03; nodes: 1; head: shared; project: bio")
		call.DryRun = dry
		_, err := s.Control.CreateCluster(t.Context(), actor("alice", "bio"), call)
		wantError(t, err, muster.EInvalid, muster.ReasonNameTaken, "fake-03", "name")
	}
}

// The machine of a node that left fills another node now: nobody reaches it
// by the old name.
func TestDepartedNodeReachesNobody(t *testing.T) {
	t.Parallel()
	opened := ""
	s, id := scaleSite(t, 4, 2, func(c *control.Config) {
		c.Console = func(_ context.Context, m muster.Machine, _ bool) (io.ReadWriteCloser, error) {
			opened = string(m.ID)
			near, _ := net.Pipe()
			return near, nil
		}
	})
	_, nodes := load(t, s, id)
	gone := nodes["n01"]
	gone.Name, gone.Index, gone.Head, gone.Role = "login2", 9, false, muster.RoleLogin
	gone.Address, gone.Management = netip.MustParseAddr("10.128.16.99"), netip.Addr{}
	gone.Phase, gone.Machine = muster.NodeAssigned, ""
	system(t, s, func(tx *store.Tx) error { return tx.PutNode(gone, "") })
	gone.Phase, gone.Machine = muster.NodeGone, nodes["n02"].Machine
	system(t, s, func(tx *store.Tx) error { return tx.PutNode(gone, "") })
	s.Agents.PutUsage(gone.Machine, wire.Usage{Load1: 3})
	public, _, _ := ed25519.GenerateKey(nil)
	key, _ := ssh.NewPublicKey(public)
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
	for _, ref := range []string{"cfd", string(id)} {
		_, err := s.Control.NodeConsole(t.Context(), root(), ref, "login2", true)
		wantError(t, err, muster.ENotFound, muster.ReasonNoSuchNode, "login2")
		_, err = s.Control.Tunnel(t.Context(), root(), ref, "login2")
		wantError(t, err, muster.ENotFound, muster.ReasonNoSuchNode, "login2")
		_, err = s.Control.Access(t.Context(), root(), ref, wire.AccessRequest{Node: "login2", PublicKey: line})
		wantError(t, err, muster.ENotFound, muster.ReasonNoSuchNode, "login2")
	}
	if opened != "" || s.Dialer.Last != "" {
		t.Errorf("reached %q %q", opened, s.Dialer.Last)
	}
	u, err := s.Control.Usage(t.Context(), root(), "cfd", 3)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range u.Nodes {
		if want := map[string]int{"n02": 1}[n.Node]; len(n.Samples) != want {
			t.Errorf("%s has %d samples", n.Node, len(n.Samples))
		}
	}
}

// A machine that comes to somebody else while its console is opened is not shown.
func TestConsoleOfAMachineThatMoves(t *testing.T) {
	t.Parallel()
	var move func()
	near, far := net.Pipe()
	s, id := scaleSite(t, 4, 2, func(c *control.Config) {
		c.Console = func(context.Context, muster.Machine, bool) (io.ReadWriteCloser, error) {
			move()
			return near, nil
		}
	})
	_, nodes := load(t, s, id)
	n := nodes["n02"]
	move = func() {
		system(t, s, func(tx *store.Tx) error {
			m, err := tx.Machine(n.Machine)
			if err != nil {
				return err
			}
			m.Phase, m.Cluster, m.Node = muster.MachineCleaning, "", ""
			return tx.PutMachine(m, "taken away")
		})
	}
	_, err := s.Control.NodeConsole(t.Context(), root(), string(id), "n02", true)
	if err == nil {
		t.Fatal("it is open")
	}
	if _, err := far.Write([]byte("x")); err == nil {
		t.Error("it was not closed")
	}
	events, err := s.Control.MachineHistory(t.Context(), root(), n.Machine, wire.Page{Limit: 9})
	if err != nil || len(events.Events) == 0 || strings.Contains(events.Events[0].Text, "shell") {
		t.Errorf("%+v, %v", events, err)
	}
}
