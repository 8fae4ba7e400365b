package pki_test

import (
	"testing"

	"github.com/muster-hpc/muster/pki"
	"golang.org/x/crypto/ssh"
)

// The inside key of a node is the same whenever it is made again, and that of no other node.
func TestInsideKey(t *testing.T) {
	t.Parallel()
	one, _, err := pki.NewHostKey()
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := pki.NewHostKey()
	if err != nil {
		t.Fatal(err)
	}
	text, pub, err := pki.InsideKey([]byte(one))
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.ParsePrivateKey([]byte(text))
	if err != nil || signer.PublicKey().Type() != ssh.KeyAlgoECDSA256 || pki.Line(signer.PublicKey()) != pki.Line(pub) {
		t.Errorf("%v: %s", err, pki.Line(pub))
	}
	if again, _, err := pki.InsideKey([]byte(one)); err != nil || again != text {
		t.Errorf("made again it is another one: %v", err)
	}
	if text2, _, err := pki.InsideKey([]byte(other)); err != nil || text2 == text {
		t.Errorf("two nodes have one key: %v", err)
	}
	if _, _, err := pki.InsideKey([]byte("nothing")); err == nil {
		t.Error("a key was made of nothing")
	}
}

// The authority of host keys is made once and kept.
func TestHostAuthorityIsKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() + "/keys"
	a, err := pki.OpenHostAuthority(dir)
	if err != nil {
		t.Fatal(err)
	}
	b, err := pki.OpenHostAuthority(dir)
	if err != nil || a.PublicLine() == "" || a.PublicLine() != b.PublicLine() {
		t.Errorf("%v; %q, %q", err, a.PublicLine(), b.PublicLine())
	}
}
