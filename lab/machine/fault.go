package machine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
)

// FaultKind is a way in which a machine is broken.
type FaultKind string

// Faults. What they do stands in docs/operators/lab.md.
const (
	Hang           FaultKind = "hang"            // its processors stand still
	Crash          FaultKind = "crash"           // it is on and dead, until it is switched off
	NICDown        FaultKind = "nic-down"        // its cable is out
	SlowNIC        FaultKind = "slow-nic"        // its link is slow
	BMCUnreachable FaultKind = "bmc-unreachable" // its controller does not answer
	BMCFalseAck    FaultKind = "bmc-false-ack"   // its controller says done and does nothing
	BootLoop       FaultKind = "boot-loop"       // it starts anew whenever a system has come up
	PowerCut       FaultKind = "power-cut"       // no mains: no card listens, no controller answers
	// DiskFails: its NVMe disk works, and says of itself that it is not reliable any more.
	DiskFails FaultKind = "disk-failing"
)

// FaultKinds lists them in the order in which people are told of them.
func FaultKinds() []FaultKind {
	return []FaultKind{Hang, Crash, NICDown, SlowNIC, BMCUnreachable, BMCFalseAck, BootLoop, PowerCut, DiskFails}
}

// Fault is one fault of a machine, as it was asked for.
type Fault struct {
	Kind  FaultKind       `json:"kind"`
	NIC   string          `json:"nic,omitempty"`           // nic-down, slow-nic: one use; empty: both cards
	Rate  int64           `json:"rate_bps,omitempty"`      // slow-nic: bits/s
	After muster.Duration `json:"after_seconds,omitempty"` // boot-loop: reset so long after each start; 0: when a system has come up
}

// Check says what is wrong with a fault, all at once.
func (f Fault) Check(c Config) error {
	e := muster.Errorf(muster.EInvalid, "the fault cannot be made")
	bad := func(field, message, hint string) {
		e.Problems = append(e.Problems, muster.Problem{Field: field, Message: message, Hint: hint})
	}
	if !slices.Contains(FaultKinds(), f.Kind) {
		var kinds []string
		for _, k := range FaultKinds() {
			kinds = append(kinds, string(k))
		}
		bad("fault", fmt.Sprintf("%.40q is not a fault", string(f.Kind)), "write one of "+strings.Join(kinds, ", "))
	}
	if f.NIC != "" && f.NIC != Management && f.NIC != Message {
		bad("nic", f.NIC+" is not a card", "write management or message, or leave it out for both")
	}
	if f.NIC != "" && f.Kind != NICDown && f.Kind != SlowNIC {
		bad("nic", string(f.Kind)+" is not a fault of a card", "leave it out")
	}
	if f.Rate < 0 || f.Rate > 0 && f.Kind != SlowNIC || f.Rate > 0 && f.Rate < 1e5 {
		bad("rate", "only slow-nic has a speed, of 100 Kb/s at least", "write it like 100Mb/s")
	}
	if f.After < 0 || f.After > 0 && f.Kind != BootLoop {
		bad("after", "only boot-loop has a time, and it is positive", "write it like 20s")
	}
	if (f.Kind == BMCUnreachable || f.Kind == BMCFalseAck) && !c.BMC.IsValid() {
		bad("fault", c.Name+" has no management controller", "make the lab without --no-bmc")
	}
	if f.Kind == DiskFails && c.NVMe == 0 {
		bad("fault", c.Name+" has no disk that tells how it is", "make the lab with --machines 4,nvme=64MiB")
	}
	if len(e.Problems) > 0 {
		return e
	}
	return nil
}

// touches reports whether a fault is one of the card with this use.
func (f Fault) touches(use string) bool { return f.NIC == "" || f.NIC == use }
