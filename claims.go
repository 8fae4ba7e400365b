package muster

import "strconv"

// Claims are the interfaces, controllers and switch ports of bare machines, and whose each is.
// That a machine is off, or cut off, is proven by them: one that stands at two machines proves
// it of neither. Owners are told apart by O: a name, or a number in a list.
type Claims[O comparable] map[string]claimed[O]

type claimed[O comparable] struct {
	owner O
	field string
}

// Claim is something that a machine claims, and that was claimed before it.
type Claim[O comparable] struct {
	Field string // of the machine that claims it: nics[0].port
	What  string // port 3 of switch sw1
	Hint  string
	// Owner claimed it before, in its OwnerField. It is the machine itself where that has it
	// twice.
	Owner      O
	OwnerField string
}

// Add adds what a machine claims, and returns what of it was claimed already. A MAC that one
// machine has twice is not among it: Registration.Check reports that.
func (c Claims[O]) Add(r Registration, owner O) (list []Claim[O]) {
	claim := func(field, what, hint string, also ...string) {
		for _, taken := range append(also, what) {
			if first, ok := c[taken]; ok {
				list = append(list, Claim[O]{field, what, hint, first.owner, first.field})
				return
			}
		}
		c[what] = claimed[O]{owner, field}
	}
	if r.Power.HasController() && r.Power.Address != "" {
		address := r.Power.Address
		if canonical, ok := CanonicalController(r.Power.Kind, address); ok {
			address = canonical
		}
		// A controller of several systems is several machines', each with its own; one that
		// names no system may mean any of them.
		const hint = "each machine has a controller of its own"
		whole, any := "controller "+address, "a system of controller "+address
		if r.Power.System == "" {
			claim("power.address", whole, hint, any)
		} else {
			claim("power.address", whole+" "+r.Power.System, hint, whole)
			if _, taken := c[any]; !taken {
				c[any] = claimed[O]{owner, "power.address"}
			}
		}
	}
	for i, n := range r.NICs {
		field := "nics[" + strconv.Itoa(i) + "]"
		mac := "interface " + n.MAC
		if first, taken := c[mac]; n.MAC != "" && !(taken && first.owner == owner) {
			claim(field+".mac", mac, "each interface has an address of its own")
		}
		if n.Switch != "" && n.Port != "" {
			claim(field+".port", "port "+n.Port+" of switch "+n.Switch, "one cable is in one port")
		}
	}
	return list
}
