package api_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/internal/errortest"
	"github.com/muster-hpc/muster/wire"
	"golang.org/x/crypto/ssh"
)

// publicLine is the line of a fresh key's .pub file.
func publicLine(t *testing.T, key crypto.PublicKey) string {
	t.Helper()
	pub, err := ssh.NewPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(pub)))
}

// skLine is the public line of a FIDO2 key.
func skLine(t *testing.T) string {
	t.Helper()
	pub, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.ParsePublicKey(ssh.Marshal(struct {
		Name        string
		Key         []byte
		Application string
	}{ssh.KeyAlgoSKED25519, pub, "ssh:"}))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}

func TestKeysHaveTermsAndWeakOnesAreRefused(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 2})
	alice, bob, root := s.Client(s.User("alice", "bio")), s.Client(s.User("bob", "bio")), s.Client("")
	ed, _, _ := ed25519.GenerateKey(rand.Reader)
	ec, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	strong, err := rsa.GenerateKey(rand.Reader, 3072)
	if err != nil {
		t.Fatal(err)
	}
	weak, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for _, good := range []string{publicLine(t, ed) + " laptop", publicLine(t, &ec.PublicKey), publicLine(t, &strong.PublicKey), skLine(t)} {
		if _, err := alice.AddKey(t.Context(), "alice", wire.KeyRequest{Key: good}); err != nil {
			t.Errorf("%.30s: %v", good, err)
		}
	}
	for _, bad := range []wire.KeyRequest{
		{Key: publicLine(t, &weak.PublicKey)}, {Key: "ssh-ed25519 AAAA"}, {Key: `command="sh" ` + publicLine(t, ed)},
		{Key: publicLine(t, ed) + "\n" + publicLine(t, ed)},
	} {
		_, err := alice.AddKey(t.Context(), "alice", bad)
		if muster.ReasonOf(err) != muster.ReasonBadSSHKey {
			t.Errorf("%.40s: %v", bad.Key, err)
		}
	}
	_, err = alice.AddKey(t.Context(), "alice", wire.KeyRequest{Key: publicLine(t, &weak.PublicKey), TTL: "soon", Purpose: strings.Repeat("x", 101)})
	if list := errortest.Listed(err); len(list) != 3 || list[0].Field != "key" || !strings.Contains(list[0].Message, "2048") || !strings.Contains(list[0].Hint, "ssh-keygen") {
		t.Errorf("not every problem, or not its cure: %+v", list)
	}
	// Added again, a key has the terms that it was given last, each.
	for _, r := range []wire.KeyRequest{{TTL: "30d"}, {Purpose: "nightly"}, {}} {
		r.Key = publicLine(t, ed)
		if _, err := alice.AddKey(t.Context(), "alice", r); err != nil {
			t.Fatal(err)
		}
	}
	keys, err := alice.Keys(t.Context(), "alice")
	if err != nil || len(keys) != 4 {
		t.Fatalf("%d keys, %v", len(keys), err)
	}
	for _, k := range keys {
		if k.Comment != "laptop" {
			continue
		}
		if k.Purpose != "nightly" || k.Expires.Sub(k.Added).Hours() < 30*24-1 || !k.Used.IsZero() {
			t.Errorf("%+v", k)
		}
	}
	if _, err := bob.Keys(t.Context(), "alice"); muster.CodeOf(err) != muster.EForbidden {
		t.Errorf("bob sees the keys of alice: %v", err)
	}
	if _, err := bob.AddKey(t.Context(), "alice", wire.KeyRequest{Key: publicLine(t, ed)}); muster.CodeOf(err) != muster.EForbidden {
		t.Errorf("bob adds a key to alice: %v", err)
	}
	if list, err := root.Keys(t.Context(), "alice"); err != nil || len(list) != 4 {
		t.Errorf("an administrator sees %d, %v", len(list), err)
	}
	if _, err := alice.RemoveKey(t.Context(), "alice", "laptop"); err != nil {
		t.Fatal(err)
	}
	if _, err := alice.RemoveKey(t.Context(), "alice", "laptop"); muster.ReasonOf(err) != muster.ReasonNoSuchKey {
		t.Errorf("removed twice: %v", err)
	}
}
