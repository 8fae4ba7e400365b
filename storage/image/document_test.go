package image

import (
	"errors"
	"os"
	"strings"
	"testing"

	muster "github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/document/documenttest"
)

func TestDocuments(t *testing.T) {
	documenttest.Check(t, aliasDoc)
	documenttest.Check(t, derivationDoc)
	documenttest.Check(t, pinDoc)
	documenttest.Check(t, factDoc)
	documenttest.Check(t, timingsDoc)
	documenttest.CheckOwn(t, "image-manifest", Format, EncodeManifest)
}

// A manifest of another format is told from a damaged one, whatever keys it has.
func TestManifestOfAnotherFormat(t *testing.T) {
	t.Parallel()
	_, err := DecodeManifest([]byte(`{"format":99,"unheard-of":1}`))
	var e *muster.Error
	if !errors.As(err, &e) || e.Reason != muster.ReasonOtherVersion || !strings.Contains(e.Message, "99") {
		t.Errorf("it is refused with %v", err)
	}
}

// A name that another version wrote means nothing until its image is built again.
func TestNameOfAnotherVersion(t *testing.T) {
	t.Parallel()
	s := open(t)
	put(t, s, "hpc", "root")
	b, err := os.ReadFile(s.aliasPath("hpc"))
	if err != nil {
		t.Fatal(err)
	}
	other := strings.Replace(string(b), string(aliasDoc), "image-name/2", 1)
	if err := os.WriteFile(s.aliasPath("hpc"), []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	if m, err := s.Resolve("hpc"); muster.CodeOf(err) != muster.ENotFound {
		t.Errorf("it means %v, %v", m, err)
	}
	put(t, s, "hpc", "root")
	if _, err := s.Resolve("hpc"); err != nil {
		t.Error(err)
	}
}
