package wire

import (
	"time"

	"github.com/muster-hpc/muster"
)

// Where the word on how a machine is built is from.
const (
	TopologyFromAgent       = "agent"       // its agent answers
	TopologyFromCertificate = "certificate" // its newest certificate
	TopologyFromHost        = "host"        // the host that it is a part of
)

// MachineTopology is how a machine is built.
type MachineTopology struct {
	Machine   muster.MachineID `json:"machine"`
	Processor string           `json:"processor,omitempty"`
	Sockets   int              `json:"sockets,omitempty"`
	Cores     int              `json:"cores,omitempty"`
	Threads   int              `json:"threads,omitempty"`
	Memory    int64            `json:"memory_bytes,omitempty"`
	// From is whose word it is, agent, certificate or host, and At when it was last heard, or
	// measured.
	From        string               `json:"from"`
	At          time.Time            `json:"at,omitzero"`
	Certificate muster.CertificateID `json:"certificate,omitempty"`
	Topology    muster.Topology      `json:"topology"`
}
