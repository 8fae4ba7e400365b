package wire

import (
	"time"

	"github.com/muster-hpc/muster"
)

// MachinePlan is how a machine would be set up as a virtual machine, or as the host of one.
type MachinePlan struct {
	Machine   muster.MachineID `json:"machine"`
	Processor string           `json:"processor,omitempty"`
	// From, At and Certificate are whose word it is how the machine is built, as of
	// MachineTopology.
	From        string               `json:"from"`
	At          time.Time            `json:"at,omitzero"`
	Certificate muster.CertificateID `json:"certificate,omitempty"`
	Options     muster.VMOptions     `json:"options"`
	Plan        muster.VMPlan        `json:"plan"`
	// Arguments are those of QEMU that the plan decides; none where something lacks.
	Arguments []string `json:"arguments"`
}
