package cli

import (
	"errors"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/inventory"
	"github.com/muster-hpc/muster/wire"
)

// listedMachine is a machine of a file.
type listedMachine struct {
	wire.BareMachine
	entry inventory.Entry
}

// inventory reads a file of machines, and the files of passwords and certificates that it
// names.
func (a *app) inventory(name string) ([]listedMachine, error) {
	body, err := a.readUpTo(name, inventory.MaxBytes, "a list of machines")
	if err != nil {
		return nil, err
	}
	entries, err := inventory.Decode(name, body)
	var wrong *muster.Error // its files of passwords are looked at all the same: everything is told at once
	if err != nil && (!errors.As(err, &wrong) || len(wrong.Problems) == 0) {
		return nil, err
	}
	var problems []muster.Problem
	machines := make([]listedMachine, len(entries))
	for i, e := range entries {
		m := e.Machine
		machines[i] = listedMachine{wire.BareMachine{
			Name: m.ID, NICs: m.NICs, Power: m.Power, Password: string(e.Password), PowerKey: string(e.PowerKey), Class: m.Class, Rack: m.Rack, Position: m.Position,
			Chassis: m.Chassis, Service: m.Service, Serial: m.Serial, UUID: m.UUID, MinTrust: m.MinTrust,
		}, e}
		unreadable := func(field string, err error) {
			p := muster.Problem{Field: e.Called + "." + field, Place: e.At(field), Reason: muster.ReasonOf(err), Message: err.Error()}
			var known *muster.Error
			if errors.As(err, &known) {
				p.Message, p.Hint = known.Message, known.Hint
			}
			problems = append(problems, p)
		}
		if e.PasswordFile != "" {
			if machines[i].Password, err = a.secretLine(e.PasswordFile, "password"); err != nil {
				unreadable("power.password_file", err)
				e.PasswordFile = ""
			}
		}
		if e.PowerKeyFile != "" {
			if machines[i].PowerKey, err = a.secretLine(e.PowerKeyFile, "key"); err != nil {
				unreadable("power.key_file", err)
				e.PowerKeyFile = ""
			}
		}
		if e.AuthorityFile != "" {
			if machines[i].Power.Authority, err = a.authority(e.AuthorityFile); err != nil {
				unreadable("power.authority_file", err)
				e.AuthorityFile = ""
			}
		}
		problems = append(problems, e.CheckRead(machines[i].Password, machines[i].PowerKey, machines[i].Power.Authority)...)
	}
	if wrong != nil {
		if len(problems) > 0 {
			wrong = wrong.Because(muster.ReasonHasProblems)
			wrong.Message += ", and files that it names cannot be used"
		}
		return machines, wrong.Listing(append(wrong.Problems, problems...))
	}
	if len(problems) > 0 {
		e := muster.Errorf(muster.EInvalid, "%s rejected: files that it names cannot be used", name).Because(muster.ReasonHasProblems).WithHint("nothing was changed; fix the errors and retry")
		return machines, e.Listing(problems)
	}
	return machines, nil
}
