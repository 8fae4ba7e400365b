package metal

import (
	"testing"

	"github.com/muster-hpc/muster/document/documenttest"
)

func TestDocuments(t *testing.T) {
	documenttest.Check(t, recordDoc)
	documenttest.Check(t, vlansDoc)
	documenttest.Check(t, bootDoc)
	documenttest.Check(t, workDoc)
}
