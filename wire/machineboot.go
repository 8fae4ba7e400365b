package wire

import (
	"time"

	"github.com/muster-hpc/muster"
)

// MachineBoot is how far a bare machine is with what it was ordered to boot for.
type MachineBoot struct {
	Machine muster.MachineID `json:"machine"`
	Rack    string           `json:"rack,omitempty"`
	Kind    BootKind         `json:"kind" doc:"boot (become a node), discover, test, clean"`
	Step    string           `json:"step" doc:"queued, starting (is switched on), booting (is on, and has said nothing), heard, running (has its order), again (started again by itself), leaving (goes off), done, failed"`
	Attempt int64            `json:"attempt,omitempty"`
	Ordered time.Time        `json:"ordered,omitzero"`
	Since   time.Time        `json:"since,omitzero" doc:"When it came to this step"`
	// Queue is where it stands; nil unless it is queued.
	Queue   *BootPlace      `json:"queue,omitempty"`
	Trust   muster.Trust    `json:"trust,omitempty" doc:"How far it is believed: tpm, port, network"`
	Address string          `json:"address,omitempty" doc:"That it has on the management network"`
	Doing   string          `json:"doing,omitempty" doc:"The stage that its first program is in"`
	Stages  []BootStage     `json:"stages,omitempty" doc:"Those behind it, by the machine's own clock"`
	Failure *BootFailure    `json:"failure,omitempty" doc:"Why it does not go on"`
	Done    *BootTaskResult `json:"done,omitempty" doc:"What became of a discovery, a test or a cleaning"`
}

// Over reports whether nothing more comes of it.
func (b MachineBoot) Over() bool { return b.Step == "done" || b.Step == "failed" }

// BootPlace is a place in the queue of a rack.
type BootPlace struct {
	Place int       `json:"place" doc:"From 1: the next"`
	ETA   time.Time `json:"eta,omitzero" doc:"When it is likely to be switched on"`
}

// QueuedBoot is a machine that waits for its turn in its rack.
type QueuedBoot struct {
	Machine muster.MachineID `json:"machine"`
	Rack    string           `json:"rack,omitempty"`
	Kind    BootKind         `json:"kind"`
	Ordered time.Time        `json:"ordered,omitzero"`
	BootPlace
}

// BootQuery narrows a listing of boots.
type BootQuery struct {
	Rack string // only those of this rack
	Page
}

// MachineBoots are the boots of a site.
type MachineBoots struct {
	Boots []MachineBoot `json:"boots" doc:"Under way or failed, by rack"`
	Queue []QueuedBoot  `json:"queue" doc:"Those that wait, by rack, in their order"`
	More
}
