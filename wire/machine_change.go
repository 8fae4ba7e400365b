package wire

import (
	"time"

	"github.com/muster-hpc/muster"
)

// MachineAction is what an administrator does with machines.
type MachineAction string

// The actions.
const (
	MachineDrain       MachineAction = "drain"       // no new cluster gets it
	MachineUndrain     MachineAction = "undrain"     // back into use, whatever was wanted of it
	MachineMaintenance MachineAction = "maintenance" // set aside once no cluster has it
	MachineTest        MachineAction = "test"        // tested once no cluster has it
	MachineRetire      MachineAction = "retire"      // out of service for good, once no cluster has it
	MachineNote        MachineAction = "note"        // a remark, shown with the machine
)

// MachineChange is the body of a change of machines.
type MachineChange struct {
	Why  string `json:"why,omitempty" maxLength:"500" doc:"Shown with the machine and kept in its history"`
	Test bool   `json:"test,omitempty" doc:"undrain: test it before it is used again"`
	Note string `json:"note,omitempty" maxLength:"1000" doc:"note: the remark; empty takes it away"`
}

// MachineChanged reports what a change means for one machine.
type MachineChanged struct {
	ID     muster.MachineID    `json:"id"`
	Status muster.MachinePhase `json:"status"`
	Intent muster.Intent       `json:"intent,omitempty"` // what is wanted of it now
	Text   string              `json:"text"`             // what happens next
}

// MachinesChanged is the reply to a change of machines.
type MachinesChanged struct {
	Machines []MachineChanged `json:"machines"`
}

// MachineHistory is the newest part of a machine's history, newest first.
type MachineHistory struct {
	Machine muster.MachineID      `json:"machine"`
	Events  []muster.MachineEvent `json:"events"`
	More
}

// MachineCare is what is known of a machine's health and what is wanted of it.
type MachineCare struct {
	Intent      muster.Intent         `json:"intent,omitempty"` // drain, maintenance, test, retire
	IntentBy    string                `json:"intent_by,omitempty"`
	IntentWhy   string                `json:"intent_why,omitempty"`
	LastTest    *muster.TestRecord    `json:"last_test,omitempty"`
	TestsFailed int                   `json:"tests_failed,omitempty"` // in a row
	Faults      []time.Time           `json:"faults,omitempty"`       // when it failed, oldest first
	ETA         time.Time             `json:"eta,omitzero"`           // when its cleaning or test should be over
	History     []muster.MachineEvent `json:"history,omitempty"`      // the newest events; of a single machine only
}
