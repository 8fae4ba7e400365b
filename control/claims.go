package control

import (
	"fmt"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// claimant has claimed what one machine only can have: a registered one, or, counted from 0,
// one of the request.
type claimant struct {
	id         muster.MachineID
	registered bool
	number     int
}

// claims are those of registered machines and of a request's.
type claims struct{ muster.Claims[claimant] }

// claimed are the claims of machines that a request does not register anew. One that came by
// itself, and waits, may be one of the request's.
func claimed(tx *store.Tx, request []wire.BareMachine) (claims, error) {
	list, err := tx.Registrations(store.RegistrationFilter{})
	if err != nil {
		return claims{}, err
	}
	anew := make(map[muster.MachineID]bool, len(request))
	for _, b := range request {
		anew[b.Name] = true
	}
	c := claims{muster.Claims[claimant]{}}
	for _, r := range list {
		if !anew[r.ID] && r.State != muster.RegistrationWaiting {
			c.Add(r, claimant{id: r.ID, registered: true})
		}
	}
	return c, nil
}

// add adds what a machine of the request claims, and reports what another one claims already.
func (c claims) add(r muster.Registration, number int) (problems []muster.Problem) {
	for _, taken := range c.Add(r, claimant{id: r.ID, number: number}) {
		p := muster.Problem{Field: taken.Field, Reason: muster.ReasonGivenTwice}
		switch by := taken.Owner; {
		case by.registered:
			p.Reason, p.Message = muster.ReasonAddressTaken, fmt.Sprintf("%s is that of machine %s already", taken.What, by.id)
			p.Hint = fmt.Sprintf("%s; correct the wrong one of the two, or `muster machine delete %s` if that one is gone", taken.Hint, by.id)
		case by.number == number:
			p.Message, p.Hint = taken.What+" stands there twice", taken.Hint
		default:
			p.Message = fmt.Sprintf("%s is that of machine %s, too, in machines[%d].%s of this request", taken.What, by.id, by.number, taken.OwnerField)
			p.Hint = taken.Hint + "; change the request: one of the two is wrong"
		}
		problems = append(problems, p)
	}
	return problems
}
