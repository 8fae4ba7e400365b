package pki

import (
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"golang.org/x/crypto/ssh"
)

func newSSH(t testing.TB) (SSHAuthority, *fakeClock) {
	t.Helper()
	s, err := NewSSHAuthority()
	if err != nil {
		t.Fatal(err)
	}
	c := newClock()
	return s.WithClock(c), c
}

func hostKey(t testing.TB) (string, ssh.PublicKey) {
	t.Helper()
	text, pub, err := NewHostKey()
	if err != nil {
		t.Fatal(err)
	}
	return text, pub
}

func TestSSHAuthorityRoundTrip(t *testing.T) {
	t.Parallel()
	s, _ := newSSH(t)
	again, err := ParseSSHAuthority(s.Marshal())
	if err != nil || again.PublicLine() != s.PublicLine() || !strings.HasPrefix(s.PublicLine(), "ssh-ed25519 ") || strings.Contains(s.PublicLine(), "\n") {
		t.Errorf("%v, %v", again, err)
	}
	for _, p := range []string{fmt.Sprint(s), fmt.Sprintf("%+v", s), fmt.Sprintf("%#v", s), fmt.Sprintf("%v", []any{s})} {
		if len(p) > 120 {
			t.Errorf("printing an authority prints %q", p)
		}
	}
	text := string(s.Marshal())
	for name, bad := range map[string]string{
		"empty": "", "text": "x", "twice": text + text, "leading": "x" + text, "cut": text[:200], "flipped": strings.Replace(text, "b3BlbnNzaC", "b3BlbnNzaD", 1),
		"host key of another type": strings.ReplaceAll(text, "OPENSSH PRIVATE", "PRIVATE"),
	} {
		if _, err := ParseSSHAuthority([]byte(bad)); muster.CodeOf(err) != muster.ECorrupt {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := (SSHAuthority{}).SignHost(nil, []string{"a"}, 0); err == nil {
		t.Error("the zero authority signs")
	}
}

// TestSSHSession runs a real handshake with certificates on both sides.
func TestSSHSession(t *testing.T) {
	t.Parallel()
	hosts, _ := newSSH(t)
	users, clock := newSSH(t)
	hosts = hosts.WithClock(clock)
	hostPEM, hostPub := hostKey(t)
	userPEM, userPub := hostKey(t)
	hostCert, err := hosts.SignHost(hostPub, []string{"n01", "10.128.0.10"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	userCert, err := users.SignUser(userPub, "alice", []string{"alice@c-abc"}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	signer := func(text string, c *ssh.Certificate) ssh.Signer {
		k, err := ssh.ParsePrivateKey([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		s, err := ssh.NewCertSigner(c, k)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	isCA := func(ca SSHAuthority) func(ssh.PublicKey) bool {
		return func(k ssh.PublicKey) bool { return Line(k) == ca.PublicLine() }
	}
	try := func(name, principal string, user, host SSHAuthority) error {
		uc := &ssh.CertChecker{IsUserAuthority: isCA(user), Clock: clock.Now}
		server := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, k ssh.PublicKey) (*ssh.Permissions, error) {
			c, ok := k.(*ssh.Certificate)
			if !ok || !uc.IsUserAuthority(c.SignatureKey) {
				return nil, fmt.Errorf("not certified")
			}
			return &c.Permissions, uc.CheckCert(principal, c)
		}}
		server.AddHostKey(signer(hostPEM, hostCert))
		hc := &ssh.CertChecker{IsHostAuthority: func(k ssh.PublicKey, _ string) bool { return isCA(host)(k) }, Clock: clock.Now}
		config := &ssh.ClientConfig{User: "alice", Auth: []ssh.AuthMethod{ssh.PublicKeys(signer(userPEM, userCert))}, HostKeyCallback: hc.CheckHostKey, Timeout: 5 * time.Second}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		go func() {
			if c, err := l.Accept(); err == nil {
				_, _, _, _ = ssh.NewServerConn(c, server)
			}
		}()
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, _, _, err = ssh.NewClientConn(c, name+":22", config)
		return err
	}
	if err := try("n01", "alice@c-abc", users, hosts); err != nil {
		t.Errorf("the right one: %v", err)
	}
	stranger, _ := newSSH(t)
	for what, err := range map[string]error{
		"another host name":      try("n02", "alice@c-abc", users, hosts),
		"another principal":      try("n01", "root@c-abc", users, hosts),
		"another user authority": try("n01", "alice@c-abc", stranger, hosts),
		"another host authority": try("n01", "alice@c-abc", users, stranger),
	} {
		if err == nil {
			t.Errorf("%s gets in", what)
		}
	}
	clock.add(time.Hour)
	if try("n01", "alice@c-abc", users, hosts) == nil {
		t.Error("an expired certificate gets in")
	}
}

func TestSSHSignRefuses(t *testing.T) {
	t.Parallel()
	s, _ := newSSH(t)
	_, pub := hostKey(t)
	cert, err := s.SignUser(pub, "alice", []string{"alice"}, time.Minute, "permit-pty", "permit-port-forwarding")
	if err != nil || len(cert.Extensions) != 2 || len(cert.CriticalOptions) != 0 {
		t.Errorf("%+v, %v", cert, err)
	}
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Skip("this Go makes no weak keys:", err)
	}
	weakPub, err := ssh.NewPublicKey(weak.Public())
	if err != nil {
		t.Fatal(err)
	}
	sign := func(pub ssh.PublicKey, id string, principals []string, ttl time.Duration, ext ...string) error {
		_, err := s.SignUser(pub, id, principals, ttl, ext...)
		return err
	}
	for name, err := range map[string]error{
		"no principal":       sign(pub, "a", nil, time.Minute),
		"empty principal":    sign(pub, "a", []string{""}, time.Minute),
		"principal list":     sign(pub, "a", []string{"a,root"}, time.Minute),
		"principal with *":   sign(pub, "a", []string{"*"}, time.Minute),
		"newline in the ID":  sign(pub, "a\nb", []string{"a"}, time.Minute),
		"no end":             sign(pub, "a", []string{"a"}, 0),
		"too long":           sign(pub, "a", []string{"a"}, 25*time.Hour),
		"unknown extension":  sign(pub, "a", []string{"a"}, time.Minute, "permit-everything"),
		"certificate as key": sign(cert, "a", []string{"a"}, time.Minute),
		"weak key":           sign(weakPub, "a", []string{"a"}, time.Minute),
		"no key":             sign(nil, "a", []string{"a"}, time.Minute),
	} {
		if err == nil {
			t.Errorf("%s is signed", name)
		}
	}
}

func FuzzParseSSHAuthority(f *testing.F) {
	s, _ := newSSH(f)
	f.Add(s.Marshal())
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := ParseSSHAuthority(b)
		if err != nil {
			wantCode(t, err, muster.ECorrupt)
			return
		}
		if again, err := ParseSSHAuthority(s.Marshal()); err != nil || again.PublicLine() != s.PublicLine() {
			t.Errorf("it does not survive: %v", err)
		}
	})
}
