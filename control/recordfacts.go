package control

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/factsdiff"
	"github.com/muster-hpc/muster/pki/attest"
	"github.com/muster-hpc/muster/store"
)

// Codes of the conditions of bare machines that tell what was found of them. They stay
// until an administrator approves the machine again, or it is as it was.
const (
	hardwareChanged = muster.ConditionHardwareChanged
	tpmChanged      = muster.ConditionTPMChanged
)

// byMuster is who asks that a machine is drained which lost something.
const byMuster = "muster"

const (
	// seenEvery is how exactly it is kept when a machine booted, as long as it says
	// nothing new: boots write the database no more often.
	seenEvery = time.Hour
	// shownEvery is how often another TPM is written down. Who shows one is not
	// believed yet.
	shownEvery = time.Minute
)

// RecordFacts takes what a machine of the site says at a boot of what it is made of. What
// differs from before is a finding: words in its registration and a condition of the
// machine, until an administrator approves the machine again. A machine that lost
// something is not given to new clusters meanwhile. Nothing is written when there is
// nothing new.
//
// Errors: ENotFound for a machine that is not registered, EUnavailable of the store.
func (s *Service) RecordFacts(ctx context.Context, id muster.MachineID, f muster.Facts, trust muster.Trust, at time.Time) error {
	f = factsdiff.Bounded(f)
	var r muster.Registration
	err := s.Store.View(ctx, muster.System(), func(tx *store.Tx) (err error) {
		r, err = tx.Registration(id)
		return err
	})
	if err != nil {
		return err
	}
	if _, write := told(r, f, trust, at); !write {
		return nil
	}
	return s.Store.Update(ctx, muster.System(), func(tx *store.Tx) error {
		old, err := tx.Registration(id)
		if err != nil {
			return err
		}
		next, write := told(old, f, trust, at)
		if !write {
			return nil
		}
		text := "" // that it booted is nothing for the audit
		switch {
		case old.Facts == nil:
			text = "reported its hardware"
		case !slices.Equal(old.Changed, next.Changed) && len(next.Changed) == 0:
			text = "its hardware is unchanged"
		case !slices.Equal(old.Changed, next.Changed):
			text = "its hardware changed: " + strings.Join(next.Changed, "; ")
		}
		if err := tx.PutRegistration(next, text); err != nil {
			return err
		}
		if slices.Equal(old.Changed, next.Changed) {
			return nil
		}
		m, err := tx.Machine(id)
		if muster.CodeOf(err) == muster.ENotFound {
			return nil // nothing has it yet
		}
		if err != nil {
			return err
		}
		return s.putFindings(tx, m, next, lacks(next))
	})
}

// told is a registration with what its machine says, and whether that is to be
// written down.
func told(r muster.Registration, f muster.Facts, trust muster.Trust, at time.Time) (next muster.Registration, write bool) {
	next = r
	next.Seen, next.Trust = at.UTC(), trust
	if r.Facts == nil {
		next.Facts = &f
		return next, true
	}
	f = factsdiff.Kept(*r.Facts, f)
	next.Facts = &f
	base := r.Facts
	if r.Accepted != nil {
		base = r.Accepted
	}
	next.Accepted, next.Changed = nil, nil
	if list := factsdiff.Compare(*base, f); len(list) > 0 {
		next.Accepted, next.Changed = base, factsdiff.Words(*base, f, list)
	}
	write = !factsdiff.Same(*r.Facts, f) || !slices.Equal(r.Changed, next.Changed) || r.Trust != trust ||
		at.Sub(r.Seen) >= seenEvery || !r.Asked.IsZero() && !r.Seen.After(r.Asked) && at.After(r.Asked)
	return next, write
}

// lacks reports whether a machine has less than it had when an administrator accepted it.
func lacks(r muster.Registration) bool {
	return r.Accepted != nil && r.Facts != nil && factsdiff.Missing(factsdiff.Compare(*r.Accepted, *r.Facts))
}

// putFindings writes into the record of a machine what was found of it. One that is
// less than it was is drained; one that is as it was comes back, unless somebody else
// wants something of it.
func (s *Service) putFindings(tx *store.Tx, m muster.Machine, r muster.Registration, less bool) error {
	if m.Phase == muster.MachineRetired {
		return nil
	}
	now, intent := s.Clock.Now().UTC(), m.Intent
	var texts []string
	was := m.Conditions
	note := func(code muster.ConditionCode, text, hint string) {
		i := slices.IndexFunc(was, func(c muster.Condition) bool { return c.Code == code })
		m.Conditions = slices.DeleteFunc(slices.Clone(m.Conditions), func(c muster.Condition) bool { return c.Code == code })
		switch {
		case text == "":
			if i >= 0 {
				texts = append(texts, "settled: "+was[i].Text)
			}
			return
		case i >= 0 && was[i].Text == text:
			m.Conditions = append(m.Conditions, was[i]) // since when it is so
			return
		}
		m.Conditions = append(m.Conditions, muster.Condition{Code: code, Text: text, Hint: hint, Since: now})
		texts = append(texts, text)
	}
	changed := strings.Join(r.Changed, "; ")
	hint := "`muster machine approve " + string(m.ID) + "` accepts what it is made of now"
	if less {
		hint = "look at it; no new cluster gets it until it is as it was, or " + hint
	}
	note(hardwareChanged, changed, hint)
	note(tpmChanged, otherTPM(r), "if its board was exchanged, `muster machine approve "+string(m.ID)+"` enrols the new one; otherwise another machine speaks in its name")
	mine := m.Intent == muster.IntentDrain && m.IntentBy == byMuster
	switch {
	case less && m.Intent == muster.IntentNone || less && mine:
		m.Intent, m.IntentBy, m.IntentWhy = muster.IntentDrain, byMuster, "it has less than it had: "+changed
	case !less && mine:
		m.Intent, m.IntentBy, m.IntentWhy = muster.IntentNone, "", ""
	}
	text := strings.Join(texts, "; ")
	if err := tx.PutMachine(m, text); err != nil || text == "" || m.Intent != intent {
		return err // a change of intent is in its history with the text
	}
	return tx.PutMachineEvent(muster.MachineEvent{Machine: m.ID, At: now, Kind: store.EventHardware, Text: text})
}

// otherTPM says that a machine shows another TPM than the one that was enrolled; "" when
// it does not.
func otherTPM(r muster.Registration) string {
	if len(r.EndorsementKey) == 0 || len(r.ObservedEK) == 0 || bytes.Equal(r.EndorsementKey, r.ObservedEK) {
		return ""
	}
	return "it shows the TPM " + attest.Fingerprint(r.ObservedEK) + ", and " + attest.Fingerprint(r.EndorsementKey) + " was enrolled: it is not trusted"
}

// RecordObservedEK takes the endorsement key that a machine of the site shows at a boot. It is
// not proven: it is kept to be enrolled when an administrator approves the machine, and
// one that is not the enrolled one is a finding.
//
// Errors: EInvalid for what is no such key, ENotFound for a machine that is not
// registered, EUnavailable of the store.
func (s *Service) RecordObservedEK(ctx context.Context, id muster.MachineID, key []byte) error {
	var r muster.Registration
	err := s.Store.View(ctx, muster.System(), func(tx *store.Tx) (err error) {
		r, err = tx.Registration(id)
		return err
	})
	if err != nil || bytes.Equal(r.ObservedEK, key) {
		return err
	}
	if key, err = attest.Enrol(key); err != nil {
		return err
	}
	if !s.shown.Allow(id) {
		return nil // the next hello says it again
	}
	return s.Store.Update(ctx, muster.System(), func(tx *store.Tx) error {
		r, err := tx.Registration(id)
		if err != nil || bytes.Equal(r.ObservedEK, key) {
			return err
		}
		r.ObservedEK = key
		text := "it shows the TPM " + attest.Fingerprint(key) + ", which is not enrolled"
		if differs := otherTPM(r); differs != "" {
			text = differs
		}
		if err := tx.PutRegistration(r, text); err != nil {
			return err
		}
		m, err := tx.Machine(id)
		if muster.CodeOf(err) == muster.ENotFound {
			return nil
		}
		if err != nil {
			return err
		}
		return s.putFindings(tx, m, r, lacks(r))
	})
}
