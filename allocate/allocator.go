package allocate

import (
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/place"
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
	Clock   muster.Clock
}

// Allocator finds machines and gives them to nodes. It is safe for concurrent use.
type Allocator struct {
	Config
	placer place.Planner
}

// New makes an Allocator.
func New(c Config) *Allocator {
	if c.Clock == nil {
		c.Clock = muster.SystemClock{}
	}
	if c.Seen == nil {
		c.Seen = func(muster.MachineID) time.Time { return time.Time{} }
	}
	return &Allocator{Config: c, placer: place.Planner{Providers: c.Providers}}
}
