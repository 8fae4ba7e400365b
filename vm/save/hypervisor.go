package save

import "context"

// Status is what a machine of the cluster does.
type Status string

// Statuses.
const (
	Gone    Status = "gone"    // it has no QEMU
	Running Status = "running" // its processors execute
	Stopped Status = "stopped" // they do not, and it has its memory
	Partial Status = "partial" // a QEMU that was to load a state, and has not
)

// State is what was saved of a machine.
type State struct {
	SHA256 string `json:"sha256"`     // of the file
	Size   int64  `json:"size_bytes"` // of the file
	On     Host   `json:"on"`         // where it was written
}

// Hypervisor is what is done with single machines, by the names of their nodes. All may be repeated, and all but Observe
// may be cut short at any point.
type Hypervisor interface {
	Observe(ctx context.Context, node string) (Status, error)
	// Stop stops the processors of a machine that runs, and Continue lets them go on.
	Stop(ctx context.Context, node string) error
	Continue(ctx context.Context, node string) error
	// Save writes the state of a stopped machine, in place of one written before.
	Save(ctx context.Context, node string) (State, error)
	// Verify reports whether what was saved is there, complete, and as it was.
	Verify(ctx context.Context, node string, s State) error
	// End ends the machine's QEMU, and returns nil only when that is proven.
	End(ctx context.Context, node string) error
	// Load starts a QEMU, has it read a state, which it leaves as it is, and leaves it stopped.
	Load(ctx context.Context, node string, s State) error
	// SetClock sets the clock of a machine that runs, and says to its agent what else is another one than before.
	SetClock(ctx context.Context, node string) error
	// Erase erases the state of a machine, and proves it. There may be none.
	Erase(ctx context.Context, node string) error
}

// Volumes serve the machines what they mount over the network, and take a lock from whoever says nothing for longer than a
// lease. So they are not served while machines stand still. Both may be repeated, and may be cut short at any point.
type Volumes interface {
	// Hold ends serving. The machines wait for what they ask. still: none of them ran since they were held.
	Hold(ctx context.Context, still bool) error
	// Serve serves again, and gives the machines the time to claim what they had. still: none of them runs, and that time
	// must be before them.
	Serve(ctx context.Context, still bool) error
}

// Journal is where the sequence records what it does. Put returns when the record is durable.
type Journal interface {
	Get(ctx context.Context) (Record, error)
	Put(ctx context.Context, r Record) error
}
