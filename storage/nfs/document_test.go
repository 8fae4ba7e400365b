package nfs

import (
	"testing"

	"github.com/muster-hpc/muster/internal/document/documenttest"
)

func TestDocuments(t *testing.T) {
	documenttest.Check(t, stateDoc)
	documenttest.Check(t, ownDoc)
}
