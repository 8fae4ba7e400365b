package admit

import (
	"strings"

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

// missing are the devices without a driver.
func (d *drivers) missing(devices []string) (list []string) {
	for _, m := range devices {
		if !d.has(m) {
			list = append(list, m)
		}
	}
	return list
}
