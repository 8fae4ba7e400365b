package cli

import (
	"testing"

	"github.com/muster-hpc/muster/internal/document/documenttest"
)

func TestDocuments(t *testing.T) {
	documenttest.Check(t, knownGatewaysDoc)
}
