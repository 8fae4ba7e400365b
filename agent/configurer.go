package agent

import (
	"context"

	"github.com/muster-hpc/muster/wire"
)

// Configurer makes a node what its configuration says: names, users, keys,
// mounts, services. Package agent/configure has the real one.
type Configurer interface {
	// Apply is idempotent. It returns nil once the node does what c says and
	// its own checks pass. An error with a method Incomplete that is true tells of
	// parts that could not be applied, on a node that serves all the same. It is called again with the same c after an error
	// and after a restart of the agent, and with a newer one when the server
	// has it; ctx then ends the older call first. Two calls never overlap.
	//
	// What watches the node afterwards (the head's view of the scheduler)
	// lives on in goroutines of the Configurer until the next Apply or until
	// the Reporter's Context ends.
	Apply(ctx context.Context, c *wire.NodeConfig, r Reporter) error
}

// Reporter takes what a Configurer has to say. All methods are safe for
// concurrent use, return at once, and may be called after Apply has returned.
type Reporter interface {
	// Stage notes that a named moment of the boot is reached now: "sshd",
	// "scheduler". The first call of a name counts, later ones do nothing.
	Stage(name string)
	// Check notes the latest result of a check; the name is its identity.
	Check(c wire.Check)
	// Scheduler notes the head's view of all nodes; it is sent at once.
	Scheduler(s wire.SchedulerState)
	// Context ends when the agent does.
	Context() context.Context
}
