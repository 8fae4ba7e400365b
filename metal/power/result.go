package power

import (
	"time"

	"github.com/muster-hpc/muster"
)

// Result reports what was done to a machine's power and how that was checked.
type Result struct {
	Machine muster.MachineID
	State   State
	Proof   Proof
	At      time.Time
	Took    time.Duration
	// Steps are the evidence, in order, as a fence's or a cleaning's record
	// keeps it.
	Steps []muster.CleanStep
}

// Proven reports whether the machine is without power for certain, so that
// another may take its place.
func (r Result) Proven() bool { return r.State == Off && r.Proof == ProofController }

func (r *Result) step(what, check string, ok bool) {
	r.Steps = append(r.Steps, muster.CleanStep{What: what, Check: check, OK: ok})
}

func (r *Result) reading(at Reading) { r.State, r.Proof = at.State, at.Proof }
