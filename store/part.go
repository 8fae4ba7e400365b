package store

import (
	"database/sql"
	"errors"
	"slices"

	"github.com/muster-hpc/muster"
)

// partClaims is what a change of a machine means for the parts of its host. A machine takes
// its parts when it is allocated or tested, and gives them back once it is certainly off:
// what is cleaned or suspected keeps what it has.
type partClaims struct {
	id         muster.MachineID
	take, drop []string
}

// claimsOf looks at a change before it is written. It is EConflict where another machine has
// one of the parts.
func (tx *Tx) claimsOf(m, old muster.Machine) (c partClaims, err error) {
	same := slices.Equal(m.Facts.Parts, old.Facts.Parts)
	if len(m.Facts.Parts) == 0 && len(old.Facts.Parts) == 0 || m.Phase == old.Phase && same {
		return c, nil
	}
	had, err := tx.heldParts(m.ID)
	if err != nil {
		return c, err
	}
	var want []string
	switch {
	case m.Phase.Held(), m.Phase == muster.MachineTesting, m.Phase.UsesParts() && len(had) > 0:
		want = m.Facts.Parts
	}
	c.id = m.ID
	for _, part := range had {
		if !slices.Contains(want, part) {
			c.drop = append(c.drop, part)
		}
	}
	for _, part := range want {
		if slices.Contains(had, part) {
			continue
		}
		other, err := tx.holderOf(part)
		if err != nil {
			return c, err
		}
		if other != "" && other != m.ID {
			return c, muster.Errorf(muster.EConflict, "machine %s has part %s, of which machine %s is made, too", other, part, m.ID).Because(muster.ReasonPartInUse).
				WithHint("machines that share a part are not in use at once: wait until %s is free", other)
		}
		c.take = append(c.take, part)
	}
	return c, nil
}

// holdParts records it. The key of the table refuses what somebody else has, whatever was seen
// before.
func (tx *Tx) holdParts(c partClaims) error {
	for _, part := range c.drop {
		if _, err := tx.s.exec(`DELETE FROM held_parts WHERE part = ? AND machine = ?`, part, string(c.id)); err != nil {
			return err
		}
	}
	for _, part := range c.take {
		if _, err := tx.s.exec(`INSERT INTO held_parts (part, machine) VALUES (?, ?)`, part, string(c.id)); err != nil {
			return err
		}
	}
	return nil
}

// holderOf is the machine that has a part; "" when none does.
func (tx *Tx) holderOf(part string) (holder muster.MachineID, err error) {
	err = tx.s.each(func(r *sql.Rows) error { return r.Scan(&holder) }, `SELECT machine FROM held_parts WHERE part = ?`, part)
	return holder, err
}

// RivalOf is a machine that has a part of another one; "": none does.
func (tx *Tx) RivalOf(m muster.Machine) (muster.MachineID, error) {
	for _, part := range m.Facts.Parts {
		other, err := tx.holderOf(part)
		if err != nil {
			return "", err
		}
		if other != "" && other != m.ID {
			return other, nil
		}
	}
	return "", nil
}

func (tx *Tx) heldParts(id muster.MachineID) (parts []string, err error) {
	err = tx.s.each(func(r *sql.Rows) error {
		var part string
		if err := r.Scan(&part); err != nil {
			return err
		}
		parts = append(parts, part)
		return nil
	}, `SELECT part FROM held_parts WHERE machine = ? ORDER BY part`, string(id))
	return parts, err
}

// PartTaken reports whether a machine could not be recorded since another one has a part of it.
func PartTaken(err error) bool {
	var e *muster.Error
	return errors.As(err, &e) && e.Reason == muster.ReasonPartInUse
}
