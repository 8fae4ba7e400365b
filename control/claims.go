package control

import (
	"fmt"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// claims are the controllers and switch ports of bare machines, and whose each is. That a
// machine is off, or cut off, is proven by them: one that stands at two machines proves it of
// neither.
type claims map[string]muster.MachineID

// claimed are the claims of machines that a request does not register anew. One that came by
// itself, and waits, may be one of the request's.
func claimed(tx *store.Tx, request []wire.BareMachine) (claims, error) {
	list, err := tx.Registrations(store.RegistrationFilter{})
	if err != nil {
		return nil, err
	}
	anew := make(map[muster.MachineID]bool, len(request))
	for _, b := range request {
		anew[b.Name] = true
	}
	c := claims{}
	for _, r := range list {
		if !anew[r.ID] && r.State != muster.RegistrationWaiting {
			c.add(r)
		}
	}
	return c, nil
}

// add adds what a machine claims, and reports what another one claims already.
func (c claims) add(r muster.Registration) (problems []muster.Problem) {
	claim := func(field, what, hint string) {
		switch owner, taken := c[what]; {
		case taken && owner == r.ID:
			problems = append(problems, muster.Problem{Field: field, Reason: muster.ReasonGivenTwice, Message: what + " stands there twice", Hint: hint})
		case taken:
			problems = append(problems, muster.Problem{
				Field: field, Reason: muster.ReasonAddressTaken, Message: fmt.Sprintf("%s is that of machine %s already", what, owner),
				Hint: fmt.Sprintf("%s; correct the wrong one of the two, or `muster machine delete %s` if that one is gone", hint, owner),
			})
		default:
			c[what] = r.ID
		}
	}
	if r.Power.HasController() {
		address := r.Power.Address
		if canonical, ok := muster.CanonicalController(r.Power.Kind, address); ok {
			address = canonical
		}
		// A controller of several systems is several machines', each with its own; one that
		// names no system may mean any of them.
		what := "controller " + address
		for taken, owner := range c {
			of, system, named := strings.Cut(strings.TrimPrefix(taken, "controller "), " ")
			if "controller "+of == what && owner != r.ID && (system == r.Power.System || !named || r.Power.System == "") {
				what = taken
			}
		}
		if c[what] == "" && r.Power.System != "" {
			what += " " + r.Power.System
		}
		claim("power.address", what, "each machine has a controller of its own")
	}
	for i, n := range r.NICs {
		if n.Switch != "" && n.Port != "" {
			claim(fmt.Sprintf("nics[%d].port", i), "port "+n.Port+" of switch "+n.Switch, "one cable is in one port")
		}
	}
	return problems
}
