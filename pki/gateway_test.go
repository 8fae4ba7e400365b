package pki

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/muster-hpc/muster"
)

func TestGatewayKeyStays(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "keys")
	first, err := OpenGatewayKey(dir)
	if err != nil {
		t.Fatal(err)
	}
	again, err := OpenGatewayKey(dir)
	if err != nil || !bytes.Equal(first.PublicKey().Marshal(), again.PublicKey().Marshal()) {
		t.Errorf("another key: %v", err)
	}
	path := filepath.Join(dir, gatewayFile)
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenGatewayKey(dir); muster.ReasonOf(err) != muster.ReasonInsecureFile {
		t.Errorf("others may read it: %v", err)
	}
	if err := os.WriteFile(path, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	_ = os.Chmod(path, 0o600)
	if _, err := OpenGatewayKey(dir); muster.CodeOf(err) != muster.ECorrupt {
		t.Errorf("damaged: %v", err)
	}
}
