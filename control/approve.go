package control

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/pki/attest"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// approve makes a registered machine one of the site. Of one that is, it accepts what
// it is made of now and the TPM that it shows now.
func (s *Service) approve(tx *store.Tx, r muster.Registration) (wire.RegisteredChange, *muster.Problem, error) {
	done := wire.RegisteredChange{Name: r.ID, What: didNothing}
	var did []string
	if len(r.Changed) > 0 {
		did = append(did, "its present hardware is accepted ("+strings.Join(r.Changed, "; ")+")")
		r.Accepted, r.Changed = nil, nil
	}
	if enrol(&r) {
		did = append(did, "its TPM "+attest.Fingerprint(r.EndorsementKey)+" is enrolled")
	}
	text := "approved"
	switch {
	case r.State != muster.RegistrationApproved:
		r.State, done.What = muster.RegistrationApproved, didApprove
	case len(did) == 0:
		return done, nil, nil
	default:
		done.What, text = didAccept, "accepted"
	}
	shared, err := withoutShared(tx, &r)
	if err != nil {
		return done, nil, err
	}
	did = append(did, shared...)
	done.Text = strings.Join(did, "; ")
	if err := tx.PutRegistration(r, strings.TrimSuffix(text+": "+done.Text, ": ")); err != nil {
		return done, nil, err
	}
	return done, nil, s.settleFindings(tx, r)
}

// withoutShared takes out of a registration what the machine said of itself and another,
// which was taken in before, has too: some makers give one number to all nodes of a
// chassis. It tells neither from the other, and what the machine has besides counts.
func withoutShared(tx *store.Tx, r *muster.Registration) (told []string, err error) {
	for _, field := range []struct {
		name  string
		value *string
	}{{"serial number", &r.Serial}, {"UUID", &r.UUID}} {
		if *field.value == "" {
			continue
		}
		only := muster.Registration{ID: r.ID, State: r.State}
		if field.value == &r.Serial {
			only.Serial = r.Serial
		} else {
			only.UUID = r.UUID
		}
		owner, err := tx.SharesIdentity(only)
		if err != nil {
			return nil, err
		}
		if owner != "" {
			told = append(told, fmt.Sprintf("its %s %.64q is that of %s, too, and does not count", field.name, *field.value, owner))
			*field.value = ""
		}
	}
	return told, nil
}

// enrol makes the TPM that a machine showed last vouch for it from now on. It reports
// whether that is another one than before.
func enrol(r *muster.Registration) bool {
	if len(r.ObservedEK) == 0 || bytes.Equal(r.ObservedEK, r.EndorsementKey) {
		return false
	}
	r.EndorsementKey = slices.Clone(r.ObservedEK)
	return true
}

// settleFindings takes what was found of a machine away, once it is accepted.
func (s *Service) settleFindings(tx *store.Tx, r muster.Registration) error {
	m, err := tx.Machine(r.ID)
	if muster.CodeOf(err) == muster.ENotFound {
		return nil
	}
	if err != nil {
		return err
	}
	return s.putFindings(tx, m, r, false)
}

// discoverable reports why a machine cannot tell anew what it is made of.
func discoverable(r muster.Registration, m muster.Machine, used bool) *muster.Problem {
	switch {
	case r.State != muster.RegistrationApproved:
		return &muster.Problem{Reason: muster.ReasonNotApproved, Message: fmt.Sprintf("it is %s", r.State), Hint: "approve it first, which also discovers it: muster machine approve " + string(r.ID)}
	case !used:
		return nil
	case m.Phase.Held():
		return &muster.Problem{
			Reason: muster.ReasonMachineInUse, Message: fmt.Sprintf("cluster %s uses it, and discovery needs a reboot", m.Cluster),
			Hint: "it tells what it is made of at each boot; `muster machine drain " + string(m.ID) + "`, and ask again when the cluster has given it back",
		}
	case m.Phase == muster.MachineSuspect || m.Phase == muster.MachineTesting:
		return &muster.Problem{Reason: muster.ReasonMachineSuspect, Message: "it is suspected of a fault, and being tested", Hint: "see 'muster machine show " + string(m.ID) + "', and ask again afterwards"}
	}
	return nil
}

// discoverText says what a discovery means for a machine.
func discoverText(m muster.Machine, used bool) string {
	once := "it boots once, is inventoried, and powers off"
	switch {
	case !used:
		return once + "; then it is cleaned, and free"
	case m.Phase == muster.MachineNew || m.Phase == muster.MachineCleaning:
		return "once it is clean, " + once
	case m.Phase == muster.MachineFree:
		return once + "; a cluster that gets it first learns it from its boot"
	}
	return once + "; it stays " + string(m.Phase)
}
