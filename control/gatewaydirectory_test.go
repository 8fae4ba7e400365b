package control_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/wire"
	"golang.org/x/crypto/ssh"
)

func publicLine(t *testing.T) string {
	t.Helper()
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return pki.Line(key)
}

// Gateways ask all the time; who may reach what is read again only when a record has changed.
func TestTheDirectoryIsMadeOnceForAChange(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 1})
	root := s.Client("")
	_ = s.User("alice", "aero")
	g, err := root.AddGateway(t.Context(), wire.GatewayRequest{Name: "gw1", Hosts: []string{"gw.example.org"}})
	if err != nil {
		t.Fatal(err)
	}
	gateway := s.Client(g.Token)
	host := publicLine(t)
	poll := func(have string) wire.GatewayOrders {
		t.Helper()
		o, err := gateway.GatewayPoll(t.Context(), wire.GatewayPoll{HostKey: host, Have: have, Sessions: []wire.GatewayBytes{}})
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	first := poll("")
	if first.Directory == nil || len(first.Directory.Users) != 0 {
		t.Fatalf("%+v", first)
	}
	for end := time.Now().Add(2 * time.Minute); ; { // the site settles: its machine is cleaned
		made := s.Control.DirectoriesMade()
		for range 20 {
			first = poll(first.Version)
		}
		if s.Control.DirectoriesMade() == made {
			break
		}
		if time.Now().After(end) {
			t.Fatal("it is made for each question")
		}
	}
	key, made := publicLine(t), s.Control.DirectoriesMade()
	if _, err := root.AddKey(t.Context(), "alice", wire.KeyRequest{Key: key}); err != nil {
		t.Fatal(err)
	}
	next := poll(first.Version)
	if next.Directory == nil || len(next.Directory.Users) != 1 || s.Control.DirectoriesMade() == made {
		t.Errorf("a key that was added: %+v", next)
	}
	if _, err := root.RemoveKey(t.Context(), "alice", next.Directory.Users[0].Keys[0].Fingerprint); err != nil {
		t.Fatal(err)
	}
	if next = poll(next.Version); next.Directory == nil || len(next.Directory.Users) != 0 {
		t.Errorf("a key that was removed: %+v", next)
	}
}

// Sessions of gateways that are gone end on record, and nothing of them is kept.
func TestSessionsOfLostGateways(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 1})
	root := s.Client("")
	_ = s.User("alice", "aero")
	g, err := root.AddGateway(t.Context(), wire.GatewayRequest{Name: "gw1", Hosts: []string{"gw.example.org"}})
	if err != nil {
		t.Fatal(err)
	}
	gateway := s.Client(g.Token)
	x := muster.GatewaySession{ID: "g-lost", User: "alice", Fingerprint: "f", Door: muster.DoorJump, Began: time.Now()}
	if err := gateway.GatewayRecords(t.Context(), wire.GatewayRecords{Begun: []muster.GatewaySession{x}, Ended: []muster.GatewaySession{}}); err != nil {
		t.Fatal(err)
	}
	if err := root.KillGatewaySession(t.Context(), "g-lost"); err != nil {
		t.Fatal(err)
	}
	if n := s.Control.KillsKept(); n != 1 {
		t.Errorf("%d kills are kept", n)
	}
	if err := root.RemoveGateway(t.Context(), "gw1"); err != nil {
		t.Fatal(err)
	}
	list, err := root.GatewaySessions(t.Context(), wire.GatewayQuery{})
	if err != nil || len(list) != 1 || list[0].End != muster.GatewayEndLost || list[0].Open() {
		t.Errorf("%+v, %v", list, err)
	}
	if n := s.Control.KillsKept(); n != 0 {
		t.Errorf("%d kills are kept", n)
	}
	if err := root.KillGatewaySession(t.Context(), "g-lost"); muster.ReasonOf(err) != muster.ReasonWrongPhase {
		t.Errorf("ended twice: %v", err)
	}
}
