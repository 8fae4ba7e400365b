package cli_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/pki"
	"golang.org/x/crypto/ssh"
)

// openGateway has one session that can be ended.
type openGateway struct {
	session muster.GatewaySession
	killed  chan string
}

func (g openGateway) Sessions() map[muster.GatewaySessionID]muster.GatewaySession {
	live := g.session
	live.Sent = 3 << 20
	return map[muster.GatewaySessionID]muster.GatewaySession{live.ID: live}
}

func (g openGateway) Kill(id muster.GatewaySessionID, text string) bool {
	if id == g.session.ID {
		g.killed <- text
	}
	return id == g.session.ID
}

func (openGateway) Ticket(context.Context, muster.DoorTicketRequest) (muster.DoorTicket, error) {
	return muster.DoorTicket{}, muster.Errorf(muster.EUnavailable, "none here")
}

func (openGateway) Address() string { return "[::]:2222" }
func (openGateway) Names() []string { return []string{"gw.example.org"} }
func (openGateway) HostKey() string { return "ssh-ed25519 AAAA" }

func TestGatewayCommands(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 1, Build: true})
	w := at(t, s).with("MUSTER_TOKEN", s.User("alice", "bio"))
	w.refused(7, muster.ReasonNoGateway, "gateway", "known-hosts", "gw")
	hosts, err := pki.NewSSHAuthority()
	if err != nil {
		t.Fatal(err)
	}
	s.Control.Hosts = hosts
	w.run("gateway", "known-hosts").want(t, 0, `^@cert-authority \*,!\*\.\*\.\*,!\*:\* ssh-ed25519 AAAA\S+\n$`)
	w.run("gateway", "sessions").want(t, 0, `^No sessions`)
	ready(t, s, w, "cfd", "-n", "1", "--head", "shared")
	g := openGateway{killed: make(chan string, 1), session: muster.GatewaySession{
		ID: "g-2222222222", User: "alice", Fingerprint: "SHA256:abcdefghijkl", From: "192.0.2.7:50000", Door: muster.DoorPlain,
		Cluster: "c-2222222222", ClusterName: "cfd", Project: "bio", Node: "n01", Login: "alice", Began: time.Now().Add(-time.Minute),
	}}
	s.Control.Gateway = g
	if err := s.Control.GatewayBegin(t.Context(), g.session); err != nil {
		t.Fatal(err)
	}
	w.run("gateway", "known-hosts", "gw.example.org").want(t, 0, `(?m)^\[gw\.example\.org\]:2222 ssh-ed25519 AAAA$`,
		`(?m)^@cert-authority \[gw\.example\.org\]:2222 ssh-ed25519 AAAA`, `(?m)^@cert-authority \*,!\*\.\*\.\*,!\*:\* ssh-ed25519 AAAA`)
	w.run("ssh-config", "--known-hosts").want(t, 0, `(?m)^cfd\.n01,cfd\.n01\+bio,cfd,cfd\+bio,c-[a-z0-9]+\.n01,\S+ ssh-ed25519 AAAA`)
	w.run("ssh-config", "--known-hosts", "cfd", "n01").want(t, 0, `^n01,cfd\.n01,\S+ ssh-ed25519 AAAA\S+\n$`)
	w.refused(3, muster.ReasonNoSuchNode, "ssh-config", "--known-hosts", "cfd", "n09")
	if text := w.run("gateway", "known-hosts", "other.example.org").out; strings.Contains(text, "@cert-authority [other") {
		t.Errorf("its certificate does not name it: %s", text)
	}
	w.run("gateway", "known-hosts", "gw.example.org:22").want(t, 0, `(?m)^gw\.example\.org ssh-ed25519 AAAA$`)
	w.run("gateway", "known-hosts", "gw:22").want(t, 0, `(?m)^@cert-authority \*,!\*\.\*\.\*,!\*:\*,!gw ssh`)
	w.refused(2, muster.ReasonBadUsage, "gateway", "known-hosts", "a,b")
	w.run("gateway", "sessions").want(t, 0, `g-2222222222 +alice +SHA256:abcdefgh +192\.0\.2\.7:50000 +plain +cfd +n01 .* 3 MiB`)
	w.run("gateway", "log", "--user", "alice", "-o", "json").want(t, 0, `"received_bytes": 0`, `"sent_bytes": 3145728`)
	w.run("gateway", "log", "--cluster", "cfd").want(t, 0, `^No sessions`) // this one was to a cluster before it
	at(t, s).with("MUSTER_TOKEN", s.User("bob", "bio")).run("gateway", "log").want(t, 0, `^No sessions`)
	w.run("gateway", "kill", "g-2222222222").want(t, 0, `ended`)
	if text := <-g.killed; text != "ended by alice" {
		t.Errorf("%q", text)
	}
	w.refused(3, muster.ReasonNoSuchObject, "gateway", "kill", "g-none")
}

func TestKeysHaveTerms(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{})
	w := at(t, s).with("MUSTER_TOKEN", s.User("alice", "bio"))
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "id.pub")
	if err := os.WriteFile(file, ssh.MarshalAuthorizedKey(key), 0o600); err != nil {
		t.Fatal(err)
	}
	w.run("key", "add", file, "--ttl", "30d", "--purpose", "nightly transfers").want(t, 0, `nightly transfers`)
	w.run("key", "list").want(t, 0, `SHA256:\S+ +ssh-ed25519 +- +nightly transfers +20\d\d-`)
	w.run("key", "list", "-o", "json").want(t, 0, `"purpose": "nightly transfers"`, `"expires": "20`)
	w.refused(2, muster.ReasonBadValue, "key", "add", file, "--ttl", "soon")
	w.run("key", "remove", ssh.FingerprintSHA256(key)).want(t, 0, `alice has no keys`)
}
