package lab

import (
	"testing"

	"github.com/muster-hpc/muster/document/documenttest"
)

func TestDocuments(t *testing.T) {
	documenttest.Check(t, configDoc)
}
