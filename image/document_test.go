package image

import (
	"testing"

	"github.com/muster-hpc/muster/document/documenttest"
)

func TestDocuments(t *testing.T) {
	documenttest.Check(t, aliasDoc)
	documenttest.Check(t, factDoc)
	documenttest.Check(t, timingsDoc)
	documenttest.CheckOwn(t, "image-manifest", Format, EncodeManifest)
}
