// Package provider is the contract between Muster and the places machines come
// from. Drivers live in provider/<name>; provider/providertest is the suite
// that each of them passes.
//
// Operations are desired-state and idempotent: they start work and return, are
// safe to repeat after a crash, and Observe reports what came of them. They work
// in batches because a site has thousands of machines.
package provider

import (
	"context"
	"io"
	"net"
	"net/netip"
	"time"

	"filippo.io/age"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/vm/save"
	"github.com/muster-hpc/muster/wire"
)

// Power is what a machine should be doing.
type Power string

// Powers.
const (
	PowerBoot Power = "boot"
	PowerOff  Power = "off"
	// PowerFreeze stops every processor of a machine that runs; its memory stays. PowerThaw
	// lets it go on. Both do nothing to one that is off. A machine that is told to boot
	// another attempt, or to go off, need not be thawed first. See muster.Capabilities.
	PowerFreeze Power = "freeze"
	PowerThaw   Power = "thaw"
)

// DesiredState is the desired state of one machine.
type DesiredState struct {
	Machine muster.MachineID
	Power   Power
	// Boot is set when Power is boot. A machine that already runs this
	// attempt is left alone; one that runs another is switched off first.
	Boot *Boot
	// VM: the boot is that of a virtual machine, with the image's own kernel; nil: it is not. Others than parts of
	// this host have none.
	VM *muster.VMOptions
	// Incoming: it is a virtual machine whose memory was saved: it waits for that, and is given no task.
	Incoming bool
}

// Boot is how to start a machine. It holds a one-time token: never log it.
type Boot struct {
	Attempt   int64            `json:"attempt"`
	Cluster   muster.ClusterID `json:"cluster"`
	Hostname  string           `json:"hostname"`
	Image     muster.ImageID   `json:"image"`
	Bootstrap wire.Bootstrap   `json:"seed"`
	// Message is how the NICs for messages are on the cluster's network; nil: not at all.
	Message *Attachment `json:"message,omitempty"`
	Shares  []BindMount `json:"shares,omitempty"`
	// Memory is the end of a disk that gets no file system: the machine may write its memory there when it hibernates.
	// With a key, it goes on from what it wrote there, as this boot, and reads no image. nil: nothing is kept.
	Memory *wire.MemoryArea `json:"memory,omitempty"`
	// Shape is the part of the machine that the node has; nil: all of it. Machines that run
	// on the kernel of their host have it from their provider; others boot with its kernel
	// arguments, and their agents take the rest offline.
	Shape *muster.Shape `json:"shape,omitempty"`
}

// Attachment plugs a machine's message NICs into a network: all that it has.
type Attachment struct {
	Network Network      `json:"network"`
	Address netip.Prefix `json:"address"` // address and prefix length of the node
}

// Network isolates one cluster from all others.
type Network struct {
	Cluster muster.ClusterID `json:"cluster"`
	Index   int              `json:"index"` // small, unique among living clusters: names are made from it
	Subnet  netip.Prefix     `json:"subnet,omitzero"`
	Egress  muster.Egress    `json:"egress,omitempty"`
	Speed   int64            `json:"speed_bps,omitempty"` // bits/s to shape links to; 0: as fast as they go
}

// BindMount is a directory of the server that the machine mounts (a volume). Path
// is on the server; owners are the numbers as seen inside.
type BindMount struct {
	Path     string `json:"path"`
	Target   string `json:"target"`
	ReadOnly bool   `json:"read_only,omitempty"`
	// Seed: what the image has at Target is copied into the share before it is
	// mounted there, once in the life of the share.
	Seed bool `json:"seed,omitempty"`
}

// State is what a provider sees of a machine.
type State string

// States.
const (
	StateOff     State = "off"
	StateRunning State = "running"
	StateStuck   State = "stuck" // neither; see Seen.Err
	StateUnknown State = "unknown"
)

// Observation is an observation.
type Observation struct {
	Machine    muster.MachineID
	State      State
	Attempt    int64           // that it runs, when running
	Frozen     bool            // it stands still, when running
	VM         *muster.VMFacts // how it is set up, when it runs as a virtual machine and that was read back
	Management netip.Addr
	Since      time.Time
	Err        error // what went wrong with the last Ensure, if anything
}

// Saver is a provider whose virtual machines can be saved; see muster.Capabilities.
type Saver interface {
	// Saver are virtual machines of one cluster, by the names of their nodes. One that was ended by
	// it is off, as any other, and is cleaned as any other.
	Saver(s Saving) save.Hypervisor
}

// Saving is what is known of a save, or of a resume.
type Saving struct {
	// States is where states are kept, for the key of this pause.
	States *save.Store
	Key    *age.X25519Identity
	// Boots are those that machines run, or will run with a state in place of an image.
	Boots map[string]DesiredState
	// Token is a one-time token with which the agent of a node joins; "": it needs none.
	Token func(ctx context.Context, node string) (string, error)
	// Erased is given the receipt of each state that was erased, of several at once.
	Erased func(node string, r save.Receipt)
}

// Provider makes machines do things. Methods return one error per machine
// where they take a batch; nil slices mean that all went well. All are safe
// for concurrent use.
type Provider interface {
	// Name is the driver's name: local, fake, metal.
	Name() string
	// Capabilities are what its machines can do and what they share.
	Capabilities() muster.Capabilities
	// Discover lists the machines with their facts. Only machines that answer
	// are listed.
	Discover(ctx context.Context) ([]muster.Machine, error)
	// EnsureNetworks makes these networks exist; others are left alone.
	EnsureNetworks(ctx context.Context, networks []Network) error
	// RemoveNetworks removes the networks of these clusters if they exist.
	RemoveNetworks(ctx context.Context, clusters []muster.ClusterID) error
	// Networks lists the clusters that have a network now, so that a restart
	// can remove what nobody owns.
	Networks(ctx context.Context) ([]muster.ClusterID, error)
	// Ensure starts what is needed to reach the wants and returns when it was
	// started (a local machine: when its init runs).
	Ensure(ctx context.Context, wants []DesiredState) []error
	// Observe reports on these machines, or on all when ids is empty.
	Observe(ctx context.Context, ids []muster.MachineID) ([]Observation, error)
	// Fence makes certain that the machine can neither compute nor speak. The
	// error is nil only when that is proven; the record says how.
	Fence(ctx context.Context, id muster.MachineID) (muster.FenceRecord, error)
	// Test starts the machine by itself, for nobody, and tries whether its
	// processors, memory, disk and networks do what they should. The machine
	// must be off, and is off afterwards. Effort says for how long: 1 is as
	// usual, 2 twice as long. An error means that it could not be tried, not
	// that it failed.
	Test(ctx context.Context, id muster.MachineID, effort int) (muster.TestRecord, error)
	// Console connects to the machine's console, which works when its network
	// and its agent do not. With shell it is a root shell inside the machine;
	// without, what the machine printed, and what it prints from now on.
	Console(ctx context.Context, id muster.MachineID, shell bool) (io.ReadWriteCloser, error)
	// Clean erases what a user left and verifies it. The machine must be off.
	Clean(ctx context.Context, id muster.MachineID) (muster.CleanRecord, error)
	// Changes delivers IDs of machines whose state changed (a machine died, a
	// boot ended). It may drop and repeat; Observe is the truth.
	Changes() <-chan muster.MachineID
	// Dial opens a connection to a port of the machine's management address.
	Dial(ctx context.Context, id muster.MachineID, port int) (net.Conn, error)
	// Close lets go of the provider. Machines go on running.
	Close() error
}
