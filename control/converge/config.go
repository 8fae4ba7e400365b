package converge

import (
	"context"
	"log/slog"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/allocate"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/vm/save"
	"github.com/muster-hpc/muster/wire"
)

// Images gives a cluster the image that its nodes boot: the one it names, or
// one derived from it with the packages it asks for. Resolve may take minutes,
// and is asked again after a failure; ENotFound, EInvalid, ECorrupt and ENever
// fail the cluster.
type Images interface {
	Resolve(ctx context.Context, c muster.Cluster) (muster.ImageID, error)
}

// Machines gives machines to clusters: *allocate.Allocator.
type Machines interface {
	// Promote gives machines to the clusters that wait, and returns how many it served.
	Promote(ctx context.Context) (int, error)
	// Next is when something is due by the calendar, as Promote last saw it; zero: nothing.
	Next() time.Time
	// Repairs chooses, inside tx, other machines for nodes that lost theirs. Nil: they
	// wait.
	Repairs(tx *store.Tx) allocate.Chooser
}

// Config of a Converger. Store, Providers and Seed are required.
type Config struct {
	Store     *store.DB
	Providers []provider.Provider
	// Seed gives what a machine needs to find the server: URL, authority and
	// trust. The rest is filled in.
	Seed func(m muster.Machine) wire.Bootstrap
	// Presence gives the newest report of a machine's agent; nil when there is
	// none. Nil: there are no agents.
	Presence func(id muster.MachineID) *Report
	// States keeps the saved states of virtual machines, and Savers are the providers that can save
	// theirs, by their names. Nil: none is saved.
	States   *save.Store
	Savers   map[string]provider.Saver
	Images   Images   // nil: clusters name content IDs
	Volumes  Volumes  // nil: nothing outlives machines
	Machines Machines // nil: nothing queues, and nodes that lost their machines wait
	// Measures: what clusters want to have measured is measured.
	Measures bool
	// SilentAgents is how many of the site's agents that should report have missed a
	// beat, and how many should report. Whoever gives it wakes the clusters in which an agent
	// falls silent or returns. Nil: clusters look by themselves.
	SilentAgents func() (silent, all int)
	// HeartbeatInterval is how often agents report now. Nil: 10 s, until they say.
	HeartbeatInterval func() time.Duration
	// ListeningSince is since when this server has been listening to agents without a
	// pause. Nil: since it started.
	ListeningSince func() time.Time
	// Probe asks a machine directly, past its agent: nil when something on it
	// is alive. Nil: nobody can.
	Probe  func(ctx context.Context, m muster.Machine) error
	Clock  muster.Clock
	Log    *slog.Logger
	Limits Limits
	// Sweep is how often all machines are discovered and observed; many machines
	// less often. 0: 30 s.
	Sweep time.Duration
	// QueueLook is how often the queue is looked at when nothing wakes it:
	// images come and go without a word. 0: 30 s.
	QueueLook time.Duration
	// CallTimeout limits one provider call; cleaning has CleanTimeout. 0: 2
	// minutes and an hour.
	CallTimeout, CleanTimeout time.Duration
	// BackoffMin and BackoffMax bound the waits after errors. 0: 100 ms, 30 s.
	BackoffMin, BackoffMax time.Duration
	// TokenLife is how long a machine has to use its token. 0: an hour; the
	// boot deadline ends an attempt sooner.
	TokenLife time.Duration
}
