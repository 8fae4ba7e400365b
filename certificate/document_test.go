package certificate

import (
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/certificate/canonical"
	"github.com/muster-hpc/muster/internal/document/documenttest"
)

// What is signed keeps its bytes, whatever its fields are called in Go.
func TestDocuments(t *testing.T) {
	documenttest.CheckOwn(t, "certificate", muster.CertificateVersion, func(c *muster.Certificate) ([]byte, error) { return canonical.Marshal(c) })
}
