package gateway_test

import (
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/gateway"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/wire"
	"golang.org/x/crypto/ssh"
)

// authority puts a new authority on record for a user.
func (r *rig) authority(user string, principals ...string) ssh.Signer {
	r.t.Helper()
	ca := newKey(r.t)
	if _, err := r.root.AddKey(r.t.Context(), user, wire.KeyRequest{Key: pki.Line(ca.PublicKey()) + " test", Authority: true, Principals: principals}); err != nil {
		r.t.Fatal(err)
	}
	return ca
}

// certified is a new key with a certificate for alice, good for an hour around at, as change makes it.
func certified(t *testing.T, ca ssh.Signer, at time.Time, change func(*ssh.Certificate)) ssh.Signer {
	t.Helper()
	key := newKey(t)
	c := &ssh.Certificate{
		Key: key.PublicKey(), Serial: 1 << 63, CertType: ssh.UserCert, KeyId: "alice@laptop", ValidPrincipals: []string{"alice"},
		ValidAfter: uint64(at.Add(-time.Hour).Unix()), ValidBefore: uint64(at.Add(time.Hour).Unix()),
		Permissions: ssh.Permissions{Extensions: map[string]string{"permit-pty": "", "permit-port-forwarding": ""}},
	}
	if change != nil {
		change(c)
	}
	if err := c.SignCert(rand.Reader, ca); err != nil {
		t.Fatal(err)
	}
	s, err := ssh.NewCertSigner(c, key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func critical(name, value string) func(*ssh.Certificate) {
	return func(c *ssh.Certificate) { c.CriticalOptions = map[string]string{name: value} }
}

// Certificates of an authority on record let in by both doors at which a key is shown; records say which.
func TestCertificatesOpenDoors(t *testing.T) {
	t.Parallel()
	r := newRig(t, gateway.Limits{})
	r.make("cfd", "alice")
	ca := r.authority("alice")
	for _, d := range doors() {
		key := certified(t, ca, time.Now(), critical("source-address", "127.0.0.0/8"))
		open := r.open(d, "alice", key)
		x := r.newest()
		if x.Door != d || x.Certificate != "alice@laptop" || x.Serial != 1<<63 || x.Fingerprint != ssh.FingerprintSHA256(ca.PublicKey()) || !x.Open() {
			t.Errorf("on record: %+v", x)
		}
		if ended(open) {
			t.Errorf("%s: it ended", d)
		}
	}
	keys, err := r.root.Keys(t.Context(), "alice")
	if err != nil || len(keys) != 1 || !keys[0].Authority || keys[0].Used.IsZero() || keys[0].Principals[0] != "alice" {
		t.Errorf("%+v, %v", keys, err)
	}
	// Strangers' certificates look like strangers' keys, whatever is wrong.
	_, want := r.dial("alice", newKey(t))
	for what, key := range map[string]ssh.Signer{
		"of another":          certified(t, newKey(t), time.Now(), nil),
		"of yesterday":        certified(t, ca, time.Now().Add(-24*time.Hour), nil),
		"of tomorrow":         certified(t, ca, time.Now().Add(24*time.Hour), nil),
		"another's":           certified(t, ca, time.Now(), func(c *ssh.Certificate) { c.ValidPrincipals = []string{"bob"} }),
		"from elsewhere":      certified(t, ca, time.Now(), critical("source-address", "192.0.2.0/24")),
		"from nowhere":        certified(t, ca, time.Now(), critical("source-address", "")),
		"with an option":      certified(t, ca, time.Now(), critical("verify-required", "")),
		"the authority's own": ca,
	} {
		if c, err := r.dial("alice", key); err == nil {
			_ = c.Close()
			t.Errorf("a certificate %s lets in", what)
		} else if err.Error() != want.Error() {
			t.Errorf("%s: %q, others hear %q", what, err, want)
		}
	}
	if _, err := r.dial("bob", certified(t, ca, time.Now(), nil)); err == nil {
		t.Error("alice's authority lets bob in")
	}
}

// What a certificate does not permit is not had; one command only is a reason to lead nowhere.
func TestCertificatesLimit(t *testing.T) {
	t.Parallel()
	r := newRig(t, gateway.Limits{})
	r.make("cfd", "alice")
	ca := r.authority("alice")
	forced := certified(t, ca, time.Now(), critical("force-command", "true"))
	j, err := r.dial("alice", forced)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	_, err = j.Dial("tcp", "cfd:22")
	var refused *ssh.OpenChannelError
	if !errors.As(err, &refused) {
		t.Fatalf("one command at the jump door: %v", err)
	}
	for _, text := range []string{refused.Message, r.nowhere("cfd+alice", forced)} {
		if !strings.Contains(text, "your certificate allows one command only (force-command)") || !strings.Contains(text, "without -O force-command") {
			t.Errorf("%q", text)
		}
	}
	bare := certified(t, ca, time.Now(), func(c *ssh.Certificate) { c.Extensions = nil })
	b, err := r.dial("alice", bare)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if _, err := b.Dial("tcp", "cfd:22"); !errors.As(err, &refused) || !strings.Contains(refused.Message, "permits no forwarding") {
		t.Errorf("the jump door: %v", err)
	}
	p, err := r.dial("cfd+alice", bare)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := p.Dial("tcp", "localhost:80"); !errors.As(err, &refused) || !strings.Contains(refused.Message, "the gateway does not pass this on") {
		t.Errorf("a forward: %v", err)
	}
	if _, err := p.Listen("tcp", "127.0.0.1:0"); err == nil {
		t.Error("a forward back was had")
	}
	s, err := p.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.RequestPty("xterm", 24, 80, nil); err == nil {
		t.Error("a terminal was had")
	}
	if err := s.Run("true"); err != nil {
		t.Errorf("a command: %v", err)
	}
}

// A session ends with its certificate, and with the authority that let it in, in both doors.
func TestTheEndOfACertificateEndsItsSessions(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*rig, *controltest.StoppedClock){
		"certificate": func(_ *rig, c *controltest.StoppedClock) { c.Add(2 * time.Hour) },
		"authority": func(r *rig, _ *controltest.StoppedClock) {
			if _, err := r.root.RemoveKey(r.t.Context(), "alice", "test"); err != nil {
				r.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := controltest.NewStoppedClock()
			r := newRigAt(t, gateway.Limits{}, clock)
			r.make("cfd", "alice")
			ca := r.authority("alice")
			key := certified(t, ca, time.Now(), nil)
			var open []<-chan struct{}
			for _, d := range doors() {
				open = append(open, r.open(d, "alice", key))
			}
			time.Sleep(3 * 50 * time.Millisecond) // it was looked at
			if ended(open[0]) || ended(open[1]) {
				t.Fatal("they ended too soon")
			}
			end(r, clock)
			for i := range open {
				<-open[i]
			}
			r.until("the records", func() bool {
				list, err := r.root.GatewaySessions(t.Context(), wire.GatewayQuery{User: "alice"})
				return err == nil && len(list) == 2 && list[0].End == muster.GatewayEndRight && list[1].End == muster.GatewayEndRight && list[0].Text != ""
			})
		})
	}
}

// A certificate itself can be put on record; what limits it cannot be had otherwise, and its successor takes its place.
func TestACertificateIsAdded(t *testing.T) {
	t.Parallel()
	r := newRig(t, gateway.Limits{})
	r.make("cfd", "alice")
	ca := newKey(t)
	key := certified(t, ca, time.Now(), nil)
	r.addKey("alice", pki.Line(key.PublicKey())+" mine")
	open := r.open(muster.DoorJump, "alice", key)
	if x := r.newest(); x.Certificate != "alice@laptop" {
		t.Errorf("%+v", x)
	}
	if _, err := r.dial("alice", certified(t, ca, time.Now(), nil)); err == nil {
		t.Error("another certificate of its authority lets in")
	}
	cert := key.PublicKey().(*ssh.Certificate)
	add := func(line string) error {
		_, err := r.root.AddKey(t.Context(), "alice", wire.KeyRequest{Key: line})
		return err
	}
	if err := add(pki.Line(cert.Key)); muster.CodeOf(err) != muster.EConflict {
		t.Errorf("the key without its certificate: %v", err)
	}
	later := *cert
	later.Serial, later.ValidBefore = 2, cert.ValidBefore+3600
	if err := later.SignCert(rand.Reader, ca); err != nil {
		t.Fatal(err)
	}
	if err := add(pki.Line(&later)); err != nil {
		t.Fatal(err)
	}
	list, err := r.root.Keys(t.Context(), "alice")
	if err != nil || len(list) != 1 || list[0].Serial != 2 || list[0].Expires.Unix() != int64(later.ValidBefore) {
		t.Errorf("%+v, %v", list, err)
	}
	if ended(open) {
		t.Error("its session ended")
	}
	forced := certified(t, ca, time.Now(), critical("force-command", "true"))
	if err := add(pki.Line(forced.PublicKey())); err == nil || !strings.Contains(err.Error(), "force-command") {
		t.Errorf("%v", err)
	}
}
