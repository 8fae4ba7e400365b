package local

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
	documenttest.Check(t, vmNoteDoc)
	documenttest.Check(t, deviceNoteDoc)
}

// A note of another version reports whose a machine is: it is not taken for a damaged one.
func TestNoteOfAnotherVersion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "n01.json"), []byte(`{"document":"local-machine/2","content":{"machine":"n01"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if notes, err := readNotes(dir); muster.CodeOf(err) != muster.EConflict || !strings.Contains(err.Error(), "n01.json") {
		t.Errorf("read %v, %v", notes, err)
	}
	p := &Provider{dir: dir}
	if records, err := p.loadRecords(); muster.CodeOf(err) != muster.EConflict {
		t.Errorf("loaded %v, %v", records, err)
	}
}
