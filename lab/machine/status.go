package machine

import (
	"net/netip"
	"time"

	"github.com/muster-hpc/muster/internal/document"
)

// Status is how a machine is. Its JSON is what 'muster lab status -o json' prints:
// fields are only added.
type Status struct {
	Machine  string     `json:"machine"`
	State    State      `json:"state"`
	Since    time.Time  `json:"since,omitzero"` // of the state
	Class    string     `json:"class"`
	Cores    int        `json:"cores"`
	Memory   int64      `json:"memory_bytes"` // bytes
	Rack     string     `json:"rack"`
	Position int        `json:"position"`
	PowerOns int        `json:"power_ons"` // since the lab was made
	Cause    string     `json:"cause,omitempty"`
	NICs     []NIC      `json:"nics"`
	BMC      netip.Addr `json:"bmc,omitzero"`
	Console  string     `json:"console"` // file with what it printed
	Faults   []Fault    `json:"faults,omitempty"`
	Problem  string     `json:"problem,omitempty"` // why it is not what it should be
	PID      int        `json:"pid,omitempty"`     // of the machine's process
	QEMU     int        `json:"qemu,omitempty"`    // of QEMU, while it is on
}

// MAC is the address of the card with this use; "" when there is none.
func (s Status) MAC(use string) string {
	for _, n := range s.NICs {
		if n.Use == use {
			return n.MAC
		}
	}
	return ""
}

// memo is what a machine remembers when its process ends.
type memo struct {
	PowerOns int       `json:"power_ons"`
	Cause    string    `json:"cause,omitempty"`
	Since    time.Time `json:"since"`
	BootOnce string    `json:"boot_once,omitempty"`
	Faults   []Fault   `json:"faults,omitempty"`
}

const memoDoc document.Kind[memo] = "lab-machine-state/1"
