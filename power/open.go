package power

import (
	"sort"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/nearest"
)

// Maker is what a driver's package gives.
type Maker struct {
	// New makes the driver of a machine whose address was checked. It does not
	// speak to the controller yet.
	New func(t Target, parts Parts) (Driver, error)
	// Quirks are the names that an address may carry.
	Quirks []string
}

// Drivers are those that a site has, by kind.
type Drivers map[Kind]Maker

// Check is Address.Check, and also knows the quirks of each driver.
func (d Drivers) Check(a Address) error {
	c := a.check()
	maker, ok := d[a.Kind]
	if a.Quirk != "" && ok && !contains(maker.Quirks, a.Quirk) {
		hint := "leave it out"
		if near := nearest.Of(a.Quirk, maker.Quirks); near != "" {
			hint = "did you mean " + near + "?"
		} else if len(maker.Quirks) > 0 {
			names := append([]string(nil), maker.Quirks...)
			sort.Strings(names)
			hint = strings.Join(names, ", ")
		}
		c.add("quirk", hint, "kind "+string(a.Kind)+" has no quirk of that name")
	}
	if len(c.problems) > 0 {
		return invalid(c.problems)
	}
	return nil
}

// Open makes the driver of a machine. EINVALID names all problems of its
// address.
func (d Drivers) Open(t Target, parts Parts) (Driver, error) {
	if err := d.Check(t.Address); err != nil {
		return nil, err
	}
	maker, ok := d[t.Address.Kind]
	if !ok {
		return nil, muster.Errorf(muster.EInvalid, "no driver of kind %s is built in", t.Address.Kind).Because(muster.ReasonNoProvider)
	}
	return maker.New(t, parts)
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}
