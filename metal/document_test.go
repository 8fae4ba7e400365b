package metal

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/document/documenttest"
)

func TestDocuments(t *testing.T) {
	documenttest.Check(t, recordDoc)
	documenttest.Check(t, vlansDoc)
	documenttest.Check(t, bootDoc)
	documenttest.Check(t, workDoc)
}

// A record of another version reports what may run: it is not taken for a damaged one, whose
// machine would be started anew.
func TestRecordOfAnotherVersion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	boots := filepath.Join(dir, "boots")
	if err := os.Mkdir(boots, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(boots, "n0000.json"), []byte(`{"machine":"n0000","number":"1","kind":"boot"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if list, err := FindBoots(dir); muster.CodeOf(err) != muster.EConflict {
		t.Errorf("found %v, %v", list, err)
	}
	if list, damaged, err := (files{boots}).load(); muster.CodeOf(err) != muster.EConflict || !strings.Contains(err.Error(), "n0000.json") {
		t.Errorf("read %v, damaged %v, %v", list, damaged, err)
	}
}
