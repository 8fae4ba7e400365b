package converge

import (
	"context"
	"log/slog"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// Images gives a cluster the image that its nodes boot: the one it names, or
// one derived from it with the packages it asks for. Resolve may take minutes,
// and is asked again after a failure; ENotFound, EInvalid, ECorrupt and ENever
// fail the cluster.
type Images interface {
	Resolve(ctx context.Context, c muster.Cluster) (muster.ImageID, error)
}

// Homes keeps the home directories of clusters. Both are idempotent.
type Homes interface {
	// Ensure makes the cluster's home directory and returns its path.
	Ensure(ctx context.Context, c muster.ClusterID) (path string, err error)
	Remove(ctx context.Context, c muster.ClusterID) error
}

// Queue places queued clusters on machines that have become free, in the order
// of the queue.
type Queue interface {
	Place(ctx context.Context) error
}

// Config of a Converger. Store, Providers and Seed are required.
type Config struct {
	Store     *store.DB
	Providers []provider.Provider
	// Seed gives what a machine needs to find the server: URL, authority and
	// trust. The rest is filled in.
	Seed func(m muster.Machine) wire.Seed
	// Presence gives the newest report of a machine's agent; nil when there is
	// none. Nil: there are no agents.
	Presence func(id muster.MachineID) *Report
	Images   Images // nil: clusters name content IDs
	Homes    Homes  // nil: no shared homes
	Queue    Queue  // nil: nothing queues
	Clock    muster.Clock
	Log      *slog.Logger
	Limits   Limits
	// BootWindow limits how many machines of a provider boot at once, by the
	// provider's name. 0 or absent: 64.
	BootWindow map[string]int
	// Sweep is how often all machines are discovered and observed. 0: 30 s.
	Sweep time.Duration
	// CallTimeout limits one provider call; cleaning has CleanTimeout. 0: 2
	// minutes and an hour.
	CallTimeout, CleanTimeout time.Duration
	// BackoffMin and BackoffMax bound the waits after errors. 0: 100 ms, 30 s.
	BackoffMin, BackoffMax time.Duration
	// TokenLife is how long a machine has to use its token. 0: an hour; the
	// boot deadline ends an attempt sooner.
	TokenLife time.Duration
}
