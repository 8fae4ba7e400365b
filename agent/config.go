package agent

import (
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Config is what an agent works with. Only Seed and Configurer are needed; an
// agent without the rest still joins, applies and keeps in touch.
type Config struct {
	// Bootstrap says where the server is. Its Token may be empty when Store holds
	// a credential already.
	Bootstrap wire.Bootstrap
	// Spent is called once the token is worthless, to remove it from where it
	// came from; nil for nothing. An error is logged and tried no more.
	Spent func() error
	// Store keeps the credential and the configuration in force across
	// restarts of the agent; nil keeps nothing. It must belong to this machine
	// and this boot.
	Store Store
	// Configurer applies configurations.
	Configurer Configurer
	// Stages happened before the agent started: "kernel", "init".
	Stages []muster.Stage
	// BootID is of the running kernel.
	BootID string
	// Facts reads the machine's hardware, once after each start; nil for none.
	Facts func(Links) muster.Facts
	// Topology reads how the machine is built, once after each start, when the first
	// configuration was applied; nil for none.
	Topology func(context.Context) *muster.Topology
	// Usage takes a sample, once for each interval; nil for none.
	Usage func(Links) (wire.Usage, error)
	// Seconds makes a sampler of how many cores are busy in user mode and in the kernel,
	// and wait for input and output, on average since it was asked last; not ok if that
	// was too short ago to say. It is asked each second while the node is measured, by
	// one goroutine. nil for none.
	Seconds func() func(now time.Time) (user, system, wait float64, ok bool)
	// Journal follows the node's journal from the entry after cursor, or from
	// the start for "", until ctx ends. It is started once the node is ready,
	// so that it does not slow the boot; nil for none.
	Journal func(ctx context.Context, cursor string, put func(line wire.JournalLine, cursor string))
	// Host is the serial port by which a virtual machine's host says what time it is, and which boot it is; SetClock
	// sets this machine's clock. nil: there is none.
	Host     io.Reader
	SetClock func(time.Time) error
	// SetLinks gives this machine's cards the addresses that its host says where it went on from its saved memory,
	// and Became keeps who it is then, with its token. nil: nothing is done.
	SetLinks func([]wire.BootLink) error
	Became   func(wire.Bootstrap) error
	// Goodbye tells, when the agent is told to end, whether the machine goes
	// down in order: GoodbyeReboot, GoodbyePowerOff, or "" when it stays. nil:
	// it stays.
	Goodbye func(ctx context.Context) string
	// PowerOff switches this machine off, and returns nil when the agent is told to end
	// meanwhile, as by a shutdown; an error when the machine stays on. It is called when
	// the server wants that, or has said for a while that it has no use for the machine.
	// nil: the machine is not one that may be switched off, such as a slice of a host.
	PowerOff func(ctx context.Context) error
	// Hibernate writes this machine's memory to an area of its disk and switches it off, after a call
	// of last, which says so to the server. It returns when the machine goes on, with which boot it is
	// then, or an error when the machine stayed on. nil: it is not one that can.
	Hibernate func(ctx context.Context, area wire.MemoryArea, last func()) (wire.HostJoin, error)
	// Reach tries whether another node's message address answers, for a server
	// that does not hear that node; nil looks for an SSH server.
	Reach func(ctx context.Context, address string) error
	// Launch runs a program that measures on several nodes, and returns how that
	// went and what was printed; nil: the image has nothing to measure with.
	Launch func(ctx context.Context, o wire.LaunchOrder) (wire.LaunchEnd, *os.File)
	// Root writes the node's root file system as a tar; nil: this node's is not its own.
	Root func(ctx context.Context, to io.Writer) error
	// NoWatch leaves the long poll out: a new configuration is then seen with
	// the next report. It halves the connections of an agent.
	NoWatch bool
	// Dial opens connections; nil for the ordinary way.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Clock is nil for the system's.
	Clock muster.Clock
	// Log is nil for silence. It gets changes of state, not every failure.
	Log *slog.Logger
	// Version of the program, told to the server.
	Version string
	// Status is called when what a person would want to know has changed, at
	// most once a second; nil for nobody.
	Status func(Status)
}

// Links tells the sources which interface is for what, and what the node may
// use.
type Links struct {
	Message    string // interface names
	Management string
	Memory     int64 // bytes; 0: unknown
}

// Status is what an agent knows of itself, without secrets.
type Status struct {
	Version     string           `json:"version"`
	Server      string           `json:"server"`
	Machine     muster.MachineID `json:"machine"`
	Attempt     int64            `json:"attempt"`
	Trust       muster.Trust     `json:"trust"`
	State       string           `json:"state"` // joining, configuring, ready, failed
	Generation  int64            `json:"generation"`
	Started     time.Time        `json:"started"`
	LastContact time.Time        `json:"last_contact,omitzero"`
	// Trouble is the last error of the connection; "" while it works.
	Trouble   string         `json:"trouble,omitempty"`
	Expires   time.Time      `json:"credential_expires,omitzero"`
	Stages    []muster.Stage `json:"stages,omitempty"`
	Checks    []wire.Check   `json:"checks,omitempty"`
	Waiting   int            `json:"journal_waiting"` // lines not yet sent
	Dropped   int64          `json:"journal_dropped"`
	UpdatedAt time.Time      `json:"updated_at"`
}

// States of a node as the server hears them.
const (
	StateJoining     = "joining" // only in Status: there is no report before
	StateConfiguring = "configuring"
	StateReady       = "ready"
	StateFailed      = "failed"
)
