package store

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
)

// RegistrationFilter narrows a list of bare machines. Zero values ask for all.
type RegistrationFilter struct {
	State muster.RegistrationState
	After muster.MachineID // only those with greater IDs
	Limit int              // so many; 0: all
}

func noRegistration(id muster.MachineID) *muster.Error {
	return muster.Errorf(muster.ENotFound, "no bare machine is registered as %.70q", string(id)).Because(muster.ReasonNotRegistered).
		WithHint("`muster machine list --registered` lists them")
}

// PutRegistration adds a bare machine, or changes what is known of one. text is what
// the audit says; without one nothing is written there, which is for what machines
// say of themselves.
//
// Errors: EInvalid with all that is wrong with it, EConflict when another machine has
// one of its interfaces, ENotFound for those who may not.
func (tx *Tx) PutRegistration(r muster.Registration, text string) error {
	if err := tx.s.usable(true); err != nil {
		return err
	}
	if err := authorize(tx.who, write, record{kind: "registration"}, noRegistration(r.ID)); err != nil {
		return err
	}
	if problems := r.Check(); len(problems) > 0 {
		e := muster.Errorf(muster.EInvalid, "machine %.70q cannot be registered", string(r.ID)).Because(muster.ReasonHasProblems).WithHint("fix the listed errors")
		return e.Listing(problems)
	}
	switch r.State {
	case muster.RegistrationWaiting, muster.RegistrationApproved, muster.RegistrationBlocked:
	default:
		return defect("%q is not a state of a registration", r.State)
	}
	for i, n := range r.NICs {
		switch owner, err := tx.macOwner(n.MAC); {
		case err != nil:
			return err
		case owner != "" && owner != r.ID:
			e := muster.Errorf(muster.EConflict, "interface %s belongs to machine %s", n.MAC, owner).Because(muster.ReasonAddressTaken).WithHint("`muster machine delete %s` if that is gone", owner)
			return e.Listing([]muster.Problem{e.In(fmt.Sprintf("%s.nics[%d].mac", r.ID, i))})
		}
	}
	was, had := "", []identity(nil)
	if old, err := tx.Registration(r.ID); err == nil {
		was, had = string(old.State), identities(old)
	} else if muster.CodeOf(err) != muster.ENotFound {
		return err
	}
	for _, is := range identities(r) {
		if slices.ContainsFunc(had, func(h identity) bool { return h.key == is.key }) {
			continue
		}
		owner, err := tx.macOwner(is.key)
		if err != nil {
			return err
		}
		if owner != "" && owner != r.ID {
			e := muster.Errorf(muster.EConflict, "%s %.70q is that of machine %s", is.name, is.value, owner).Because(muster.ReasonAddressTaken).
				WithHint("`muster machine delete %s` if that is gone; if their vendor gave both the same, leave it out of their records", owner)
			return e.Listing([]muster.Problem{e.In(string(r.ID) + "." + is.field)})
		}
	}
	doc, sum, err := encode(registrationDoc, &r)
	if err != nil {
		return err
	}
	if _, err := tx.s.exec(`INSERT INTO registrations (id, state, sum, doc) VALUES (?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET state = excluded.state, sum = excluded.sum, doc = excluded.doc`, string(r.ID), string(r.State), sum, doc); err != nil {
		return err
	}
	if _, err := tx.s.exec(`DELETE FROM registered_macs WHERE machine = ?`, string(r.ID)); err != nil {
		return err
	}
	for _, n := range r.NICs {
		if _, err := tx.s.exec(`INSERT INTO registered_macs (mac, machine) VALUES (?, ?)`, n.MAC, string(r.ID)); err != nil {
			return err
		}
	}
	for _, is := range identities(r) {
		if _, err := tx.s.exec(`INSERT INTO registered_macs (mac, machine) VALUES (?, ?) ON CONFLICT DO NOTHING`, is.key, string(r.ID)); err != nil {
			return err
		}
	}
	if text == "" && was == string(r.State) {
		return nil
	}
	return tx.log(muster.Audit{Owner: "system", Kind: muster.AuditRegistration, Object: string(r.ID), From: was, To: string(r.State), Text: text})
}

// identity is what besides its interfaces tells one machine from all others. It is kept
// beside them, under a key that no MAC has.
type identity struct{ key, name, field, value string }

// identities are those of a machine that was taken in. What a machine says of itself
// before anybody has looked keeps out no other.
func identities(r muster.Registration) []identity {
	if r.State == muster.RegistrationWaiting {
		return nil
	}
	var out []identity
	if s := muster.CanonicalSerial(r.Serial); s != "" {
		out = append(out, identity{"serial " + s, "serial number", "serial", r.Serial})
	}
	if u := strings.ToLower(r.UUID); !muster.IsPlaceholder(u) {
		out = append(out, identity{"uuid " + u, "UUID", "uuid", r.UUID})
	}
	return out
}

// SharesIdentity names another machine that was taken in with the serial number or the
// UUID of this one; "" for none.
func (tx *Tx) SharesIdentity(r muster.Registration) (muster.MachineID, error) {
	for _, is := range identities(r) {
		if owner, err := tx.macOwner(is.key); err != nil || owner != "" && owner != r.ID {
			return owner, err
		}
	}
	return "", nil
}

func (tx *Tx) macOwner(mac string) (muster.MachineID, error) {
	var id muster.MachineID
	err := tx.s.one([]any{&id}, `SELECT machine FROM registered_macs WHERE mac = ?`, mac)
	if errors.Is(err, errNoRow) {
		return "", nil
	}
	return id, err
}

// Registration returns one bare machine.
func (tx *Tx) Registration(id muster.MachineID) (muster.Registration, error) {
	list, err := tx.registrations(`id = ?`, string(id))
	if err != nil {
		return muster.Registration{}, err
	}
	if len(list) == 0 {
		return muster.Registration{}, noRegistration(id)
	}
	return list[0], nil
}

// RegistrationOf returns the bare machine that has an interface. mac is as
// muster.ParseMAC writes it.
func (tx *Tx) RegistrationOf(mac string) (muster.Registration, error) {
	list, err := tx.registrations(`id = (SELECT machine FROM registered_macs WHERE mac = ?)`, mac)
	if err != nil {
		return muster.Registration{}, err
	}
	if len(list) == 0 {
		return muster.Registration{}, muster.Errorf(muster.ENotFound, "no bare machine has interface %.40q", mac).Because(muster.ReasonNotRegistered).WithHint("`muster machine list --registered` lists them")
	}
	return list[0], nil
}

// Registrations lists bare machines in the order of their names.
func (tx *Tx) Registrations(f RegistrationFilter) ([]muster.Registration, error) {
	w := (&where{cond: "1"}).is("state", string(f.State)).above("id", string(f.After)).by("id", f.Limit)
	return tx.registrations(w.cond, w.args...)
}

// registrations reads rows; whoever may not see them finds none.
func (tx *Tx) registrations(cond string, args ...any) ([]muster.Registration, error) {
	if !allowed(tx.who, read, record{kind: "registration"}) {
		return nil, tx.s.usable(false)
	}
	var list []muster.Registration
	err := tx.s.each(func(rows *sql.Rows) error {
		var id, state, doc string
		var sum int64
		if err := rows.Scan(&id, &state, &sum, &doc); err != nil {
			return err
		}
		r, err := decode(registrationDoc, "the registration of "+id, doc, sum)
		if err != nil {
			return err
		}
		if string(r.ID) != id || string(r.State) != state {
			return corrupt("the registration of "+id, errors.New("row and document disagree"))
		}
		list = append(list, r)
		return nil
	}, `SELECT id, state, sum, doc FROM registrations WHERE `+cond, args...)
	return list, err
}

// DeleteRegistration forgets a bare machine with its secret. It returns ENotFound if
// there is none. That nothing uses the machine is for the caller to know.
func (tx *Tx) DeleteRegistration(id muster.MachineID, text string) error {
	if err := tx.s.usable(true); err != nil {
		return err
	}
	if err := authorize(tx.who, write, record{kind: "registration"}, noRegistration(id)); err != nil {
		return err
	}
	r, err := tx.Registration(id)
	if err != nil {
		return err
	}
	if _, err := tx.s.exec(`DELETE FROM registrations WHERE id = ?`, string(id)); err != nil {
		return err
	}
	return tx.log(muster.Audit{Owner: "system", Kind: muster.AuditRegistration, Object: string(id), From: string(r.State), Text: text})
}
