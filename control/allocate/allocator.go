package allocate

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/place"
	"github.com/muster-hpc/muster/store"
)

// Images finds images.
type Images interface {
	// Resolve finds an image by name, ID or the beginning of an ID.
	Resolve(ref string) (*muster.Image, error)
}

// Config is what an Allocator needs to know.
type Config struct {
	Store  *store.DB
	Images Images
	// Providers are what the machines of each provider can do.
	Providers muster.Providers
	// Seen is when a machine itself was last heard, beside what its record says; zero:
	// not. Nil: nobody listens.
	Seen func(muster.MachineID) time.Time
	// Silence is how long a machine may go unheard before it counts as not answering.
	// 0: every machine that is not set aside answers.
	Silence time.Duration
	// Requests records what comes of requests that wait. Nil: none is promoted.
	Requests Requests
	Clock    muster.Clock
	Log      *slog.Logger
}

// Allocator finds machines and gives them to nodes. It is safe for concurrent use.
type Allocator struct {
	Config
	placer place.Planner
	// promoting keeps promotions one at a time, and guards first: when each waiting cluster
	// should have had its machines by its first estimate.
	promoting sync.Mutex
	first     map[muster.ClusterID]time.Time

	// parts are the classes whose machines are parts of a host, as a Site last saw them.
	parts atomic.Pointer[map[string]bool]

	mu        sync.Mutex
	next      time.Time
	estimates map[muster.ClusterID]Estimate
	use       *Use
}

// New makes an Allocator.
func New(c Config) *Allocator {
	if c.Clock == nil {
		c.Clock = muster.SystemClock{}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Seen == nil {
		c.Seen = func(muster.MachineID) time.Time { return time.Time{} }
	}
	return &Allocator{Config: c, placer: place.Planner{Providers: c.Providers}, first: map[muster.ClusterID]time.Time{}}
}
