package admit

import (
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/wildcard"
)

// drivers reports for which devices an image has a driver. An image's table has
// some twenty thousand patterns; the distinct devices of a site are few, so
// each is looked up once.
type drivers struct {
	patterns []pattern
	seen     map[string]bool
}

type pattern struct{ literal, text string }

func newDrivers(aliases []string) *drivers {
	d := &drivers{patterns: make([]pattern, len(aliases)), seen: make(map[string]bool)}
	for i, a := range aliases {
		literal := a
		if j := strings.IndexAny(a, "*?["); j >= 0 {
			literal = a[:j]
		}
		d.patterns[i] = pattern{literal: literal, text: a}
	}
	return d
}

// has reports whether some driver takes the device.
func (d *drivers) has(modalias string) bool {
	if ok, known := d.seen[modalias]; known {
		return ok
	}
	ok := false
	for _, p := range d.patterns {
		if strings.HasPrefix(modalias, p.literal) && wildcard.Match(p.text, modalias) {
			ok = true
			break
		}
	}
	d.seen[modalias] = ok
	return ok
}

// missing are the devices without a driver, of those that a node cannot do without.
func (d *drivers) missing(devices []string) (list []string) {
	for _, m := range devices {
		if !isAccelerator(m) && !d.has(m) {
			list = append(list, m)
		}
	}
	return list
}

// isAccelerator reports whether a device is one by the class that its modalias says. A
// node boots and computes without its accelerators, and their drivers often come with the
// image's own programs, of which its table knows nothing.
func isAccelerator(modalias string) bool {
	if !strings.HasPrefix(modalias, "pci:") {
		return false
	}
	for _, class := range []string{"bc03sc", "bc12sc", "bc0Bsc40"} {
		if strings.Contains(modalias, class) {
			return true
		}
	}
	return false
}

// Undriven are the accelerators among the devices of a machine for which none of the
// images has a driver.
func Undriven(images []*muster.Image, devices []string) []string {
	var list []string
	for _, m := range devices {
		if isAccelerator(m) && !slices.Contains(list, m) {
			list = append(list, m)
		}
	}
	for _, image := range images {
		if len(list) == 0 {
			break
		}
		d := newDrivers(image.Modaliases)
		list = slices.DeleteFunc(list, d.has)
	}
	return list
}
