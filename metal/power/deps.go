package power

import (
	"context"
	"time"

	"github.com/muster-hpc/muster"
)

// Deps are what others can do about a machine. Each may be nil: then nobody
// can.
type Deps struct {
	Clock       muster.Clock // nil: the computer's own
	Agent       Agent
	ManualFence ManualFencing
	SwitchPort  SwitchPort
	Liveness    LivenessSource
}

// Agent asks a machine's own agent to switch it off, for machines without a
// controller. nil says that the agent was asked, and no more: a tenant's agent
// may take no notice, and nothing rests on it. EUNAVAILABLE: it does not answer.
type Agent interface {
	Off(ctx context.Context, m muster.MachineID) error
}

// ManualFencing asks an administrator to go and switch a machine off.
type ManualFencing interface {
	// Off returns who says that it is done: that the machine has no power, or is
	// cut off. It returns EUNAVAILABLE when nobody has answered yet, and when the
	// machine was heard after the answer; to ask again is no new question.
	Off(ctx context.Context, m muster.MachineID, why string) (by string, err error)
	// Forget takes the question back, and what was answered: the machine is about
	// to be switched on, or is off for certain anyhow.
	Forget(ctx context.Context, m muster.MachineID) error
}

// SwitchPort is the machine's place at a switch: all its ports together.
type SwitchPort interface {
	// Link reports whether any port has a link.
	Link(ctx context.Context, m muster.MachineID) (Link, error)
	// Close shuts the ports and reads back that they are shut. nil means
	// that nothing leaves the machine any more.
	Close(ctx context.Context, m muster.MachineID) error
}

// Link is what a switch sees of a machine.
type Link struct {
	Up bool
	// Asleep: the link is up, but as slow as a sleeping network card keeps it
	// to be woken.
	Asleep bool
	// Closed: the port was shut on this side, so that no link says nothing
	// about the machine.
	Closed bool
	// Unknown: nobody knows which port is the machine's, so that no link says
	// nothing either.
	Unknown bool
}

// LivenessSource reports when a machine was last heard, by any way that reaches this
// server: its agent, its answer to a question of the network, its DHCP.
type LivenessSource interface {
	// Heard returns the time, zero for never.
	Heard(ctx context.Context, m muster.MachineID) (time.Time, error)
}

func (p Deps) clock() muster.Clock {
	if p.Clock == nil {
		return muster.SystemClock{}
	}
	return p.Clock
}
