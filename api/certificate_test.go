package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control"
	"github.com/muster-hpc/muster/control/controltest"
)

// Whoever wants to verify a certificate needs no account here.
func TestSigningKeysAreForEverybody(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Control: func(c *control.Config) {
		c.SigningKeys = func() []muster.SigningKey { return []muster.SigningKey{{ID: "sha256:ab", Key: "AA=="}} }
	}})
	a := ask(t, s, "mst_bad", "GET", "/v1/certificates/keys", "", "")
	if a.status != http.StatusOK || !strings.Contains(a.body, `"sha256:ab"`) || strings.Contains(a.body, "until") {
		t.Fatalf("status %d: %s", a.status, a.body)
	}
	if a := ask(t, s, "mst_bad", "GET", "/v1/server", "", ""); a.status != http.StatusUnauthorized {
		t.Fatalf("status %d: %s", a.status, a.body)
	}
}
