package control_test

import (
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
)

// A machine whose accelerators no image has a driver for can be used, and is shown with
// their name and with a note.
func TestAcceleratorsAreShownByName(t *testing.T) {
	t.Parallel()
	s, _ := metalSite(t)
	h100 := []muster.Device{{Kind: "gpu", Model: "10de:2330", Count: 8}}
	put(t, s, func(tx *store.Tx) error {
		m, err := tx.Machine("r1-n01")
		if err != nil {
			return err
		}
		m.Facts = muster.Facts{Architecture: "amd64", CPULevel: 3, Cores: 4, Threads: 4, Memory: 64 << 30, Accelerators: h100,
			Modalias: []string{"pci:v000010DEd00002330sv000010DEsd000016C1bc03sc02i00"}}
		return tx.PutMachine(m, "")
	})
	m, err := s.Control.Machine(t.Context(), root(), "r1-n01")
	if err != nil {
		t.Fatal(err)
	}
	if a := m.Facts.Accelerators; len(a) != 1 || a[0].Name != "NVIDIA H100 SXM5 80GB" || a[0].Model != "10de:2330" {
		t.Errorf("%+v", a)
	}
	if len(m.Images) == 0 || !strings.Contains(m.Note, "NVIDIA H100") {
		t.Errorf("images %v, note %q", m.Images, m.Note)
	}
	if h100[0].Name != "" {
		t.Error("the name came into the record")
	}
}
