package control

import (
	"fmt"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/admit"
	"github.com/muster-hpc/muster/internal/pcinames"
)

// nameAccelerators adds what accelerators are called to what they say they are.
func nameAccelerators(f *muster.Facts) {
	f.Accelerators = slices.Clone(f.Accelerators)
	for i := range f.Accelerators {
		f.Accelerators[i].Name = pcinames.Accelerator(f.Accelerators[i].Model)
	}
}

// undriven says which accelerators of a machine no image has a driver for; "": none. The
// machine works without.
func (f *fitCache) undriven(m muster.Machine, images []*muster.Image) string {
	if len(m.Facts.Accelerators) == 0 {
		return ""
	}
	key := fmt.Sprint(m.Facts.Modalias)
	for _, img := range images {
		key += "\x00" + string(img.ID)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.notes) > 1000 || f.notes == nil {
		f.notes = map[string]string{}
	}
	note, ok := f.notes[key]
	if !ok {
		var names []string
		for _, device := range admit.Undriven(images, m.Facts.Modalias) {
			names = append(names, pcinames.OfModalias(device))
		}
		if len(names) > 0 {
			note = "no image has a driver for " + strings.Join(names, ", ")
		}
		f.notes[key] = note
	}
	return note
}
