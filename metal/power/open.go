package power

import "github.com/muster-hpc/muster"

// Maker is what a driver's package gives.
type Maker struct {
	// New makes the driver of a machine that was checked. It does not speak to the
	// controller yet.
	New func(t Target, parts Deps) (Driver, error)
	// Unusable returns what of an address without problems cannot be used on this server as
	// it is now, by fields such as power.address. Nil: nothing can be seen before the first
	// command.
	Unusable func(muster.PowerAddress) []muster.Problem
}

// Drivers are those that a site has, by kind.
type Drivers map[muster.PowerKind]Maker

// Open makes the driver of a machine. EINVALID names all problems of its address.
func (d Drivers) Open(t Target, parts Deps) (Driver, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	maker, ok := d[t.Address.Kind]
	if !ok {
		return nil, muster.Errorf(muster.EInvalid, "no driver of kind %s is built in", t.Address.Kind).Because(muster.ReasonNoProvider)
	}
	return maker.New(t, parts)
}

// Unusable returns what of an address cannot be used on this server. It speaks to nobody.
func (d Drivers) Unusable(a muster.PowerAddress) []muster.Problem {
	maker, ok := d[a.Kind]
	if !ok || maker.Unusable == nil || len(a.Check()) > 0 {
		return nil
	}
	return maker.Unusable(a)
}
