package control

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/allocate"
	"github.com/muster-hpc/muster/control/series"
	"github.com/muster-hpc/muster/internal/lastcontact"
	"github.com/muster-hpc/muster/internal/ratelimit"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/storage/image"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
	"golang.org/x/time/rate"
)

// Images is what the use cases need of the image store.
type Images interface {
	List() ([]*muster.Image, error)
	Names() map[string]muster.ImageID
	// Resolve finds an image by name, ID or the beginning of an ID; ENotFound
	// says which name may have been meant.
	Resolve(ref string) (*muster.Image, error)
	// ResolveForUse is that for whoever records next that it uses the image.
	ResolveForUse(ref string) (*muster.Image, error)
	// Contains reports whether an image's root has a file, where that is known.
	Contains(id muster.ImageID, path string) (there, known bool)
	// Versions are the contents of a recipe's image, the newest first.
	Versions(name string) ([]*muster.Image, error)
	Pins() (map[muster.ImageID]image.Pin, error)
	Pin(id muster.ImageID, p image.Pin) error
	Unpin(id muster.ImageID) (was bool, err error)
	PruneVersions(ctx context.Context, k image.KeepVersions, users image.Users) ([]muster.Image, error)
	Verify(ctx context.Context, id muster.ImageID) (*muster.Image, error)
	Remove(ctx context.Context, id muster.ImageID, users image.Users) error
	// Askers are the projects that asked for each derived image, sorted.
	Askers() map[muster.ImageID][]string
}

// Agents is what is known of nodes without asking the store.
type Agents interface {
	// Usage is the newest n samples of the machine that fills a node, oldest
	// first.
	Usage(id muster.MachineID, n int) []wire.Usage
	// Topology is how a machine is built, by the word of its agent since this server
	// started, and when that last spoke; nil if it did not say so.
	Topology(id muster.MachineID) (*muster.Topology, time.Time)
	// Lines is the newest lines of a node's journal that are wanted, oldest
	// first.
	Lines(cluster muster.ClusterID, node string, q wire.LogQuery) []wire.JournalLine
	// Follow passes on the lines of a cluster's nodes as they come, until leave
	// is called; lost reports how many were left out since it was asked last.
	Follow(cluster muster.ClusterID) (lines <-chan wire.LogLine, lost func() int64, leave func())
}

// Boots is what bare machines boot for now. Its methods answer from memory.
type Boots interface {
	// BootOf is the last boot of a machine; false if there is none.
	BootOf(id muster.MachineID) (wire.MachineBoot, bool)
	// Queue is who waits in a rack, in order; "": in any.
	Queue(rack string) []wire.QueuedBoot
}

// Dialer connects to a port of a machine's management address.
type Dialer interface {
	Dial(ctx context.Context, machine muster.Machine, port int) (net.Conn, error)
}

// DialFunc is a function that dials.
type DialFunc func(ctx context.Context, machine muster.Machine, port int) (net.Conn, error)

// Dial calls f.
func (f DialFunc) Dial(ctx context.Context, machine muster.Machine, port int) (net.Conn, error) {
	return f(ctx, machine, port)
}

// Config is what the use cases need.
type Config struct {
	Store  *store.DB
	Images Images
	Agents Agents
	Dialer Dialer
	Clock  muster.Clock
	Log    *slog.Logger

	// Applied reports where a cluster's newest configuration is in force; nil: nobody can.
	Applied func(ctx context.Context, id muster.ClusterID) (wire.Applied, error)

	Version  string
	Instance string
	// Epoch is that of the records.
	Epoch int64
	// Superseded reports why nothing may be changed here any more; nil: it may. Nil: always.
	Superseded func() error
	// AbandonedImages are the images of clusters that run and are not in the records, with
	// their names. Nil: there are none.
	AbandonedImages func(ctx context.Context) (map[muster.ImageID][]string, error)
	// Policy is what the site allows, and its defaults; see SetPolicy.
	Policy
	// Contacts are when machines were last heard. Nil: nobody listens.
	Contacts *lastcontact.Contacts
	// Providers are what the machines of each provider can do.
	Providers muster.Providers
	// Registrar is the provider of the machines that administrators register.
	Registrar string
	// Unusable returns what of a registration cannot be used on this server, such as a
	// program that is not there. Nil: nothing is looked at.
	Unusable func(muster.Registration) []muster.Problem
	// LicencePortsTaken are ports at which nodes find the server itself.
	LicencePortsTaken []int
	// Listen reports where the API is served over TLS. Nil or "": nowhere.
	Listen func() string
	// Health are more parts of the server to look at.
	Health []func(context.Context) wire.HealthPart
	// Changed is called after a cluster was created, promoted or given back,
	// so that work on it begins at once. It must not block.
	Changed func(muster.ClusterID)
	// Console connects to the console of a machine. Nil: there is none.
	Console ConsoleFunc
	// Scheduler is what the machine of a head last said of the scheduler; nil
	// when it has not. Nil: nobody knows.
	Scheduler func(muster.MachineID) *wire.SchedulerState
	// CanMeasure reports whether a machine has what measuring needs. Nil: all have.
	CanMeasure func(muster.MachineID) bool
	// VolumeManager makes and erases volumes. Nil: they are only records.
	VolumeManager Volumes
	// WritesAllowed reports why nothing new may be recorded now: the disk is nearly full,
	// and what is left is for giving back. Nil: there is always room.
	WritesAllowed func() error
	// RoomForStates refuses a save of virtual machines with so many bytes of memory. Nil: nobody does.
	RoomForStates func(memory int64) error
	// KeepsLocks reports whether a cluster's nodes keep their locks of files on volumes that only it mounts, while it is
	// saved. Nil: none does.
	KeepsLocks func(id muster.ClusterID) bool
	// HomeFree is how many bytes are free where homes lie; -1 if nobody knows. Nil:
	// nobody does.
	HomeFree func() int64
	// Series is what was measured over time. Nil: nothing is kept.
	Series *series.Store
	// SigningKeys are the public keys that sign and signed certificates. Nil:
	// there are none.
	SigningKeys func() []muster.SigningKey
	// ChangeKey makes another key sign from now on; stolen names one that must not be
	// believed any more. Nil: it cannot be changed.
	ChangeKey func(stolen string) error
	// Boots is what bare machines boot for. Nil: there are none.
	Boots Boots
	// SaveRoot makes an image of a node's root file system, which comes as a tar. Nil: it
	// cannot be done here.
	SaveRoot func(ctx context.Context, o image.SaveOptions, tree io.Reader) (*muster.Image, image.TreeChanges, error)
	// Speak makes a node's agent report at once. Nil: it does when it does.
	Speak func(cluster muster.ClusterID, node string)
	// RunUse samples the processors of nodes while programs run there. Nil: nobody does.
	RunUse RunUse
	// Hosts signs host keys under the names of doors. The zero value: nobody does.
	Hosts pki.SSHAuthority
	// Routed is the address by which this host reaches a machine itself; the zero value: it does
	// not. Nil: no machine.
	Routed func(muster.Machine) netip.Addr
	// Gateway is where users come in by SSH. Nil: this server has none.
	Gateway Gateway
	// Figures are what other parts of the server count, for administrators.
	// Nil: nothing.
	Figures func() []wire.Metric
}

// Service carries out the use cases. It is safe for concurrent use.
type Service struct {
	Config
	// Allocator finds machines and gives them to nodes.
	Allocator *allocate.Allocator
	policy    atomic.Pointer[Policy]
	processes gatewayProcesses
	directory gatewayDirectory
	started   time.Time
	hub       hub
	saves     saves
	fits      fitCache
	cores     coreCount
	// tried is when idle machines were last given to a measurement. Of RunIdleBenchmarks.
	tried map[muster.MachineID]time.Time
	// shown bounds how often another TPM of a machine is written down.
	shown *ratelimit.Keyed[muster.MachineID]
	// recordDiscovered bounds how often each machine that comes by itself is, sources how often new ones
	// of one source are, and fresh how often new ones are.
	recordDiscovered, sources *ratelimit.Keyed[string]
	fresh                     *rate.Limiter
}

// maxShown is how many machines the limits above remember: more than a site has.
const maxShown = 1 << 16

// New makes a service.
func New(c Config) *Service {
	if c.Clock == nil {
		c.Clock = muster.SystemClock{}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Changed == nil {
		c.Changed = func(muster.ClusterID) {}
	}
	if c.HomeFree == nil {
		c.HomeFree = func() int64 { return -1 }
	}
	if c.WritesAllowed == nil {
		c.WritesAllowed = func() error { return nil }
	}
	if c.Superseded == nil {
		c.Superseded = func() error { return nil }
	}
	if c.Listen == nil {
		c.Listen = func() string { return "" }
	}
	s := &Service{
		Config: c, started: c.Clock.Now(),
		shown:            ratelimit.New[muster.MachineID](ratelimit.Config{Now: c.Clock.Now, Every: shownEvery, Burst: 1, Most: maxShown, Strict: true}),
		recordDiscovered: ratelimit.New[string](ratelimit.Config{Now: c.Clock.Now, Every: foundEvery, Burst: 1, Most: maxShown, Strict: true}),
		sources:          ratelimit.New[string](ratelimit.Config{Now: c.Clock.Now, Every: newEvery, Burst: 1, Most: maxShown, Strict: true}),
		fresh:            rate.NewLimiter(rate.Every(anyEvery), 1),
	}
	s.SetPolicy(c.Policy)
	s.Policy = Policy{} // nobody reads what it was at the start
	s.Allocator = allocate.New(allocate.Config{
		Store: c.Store, Images: c.Images, Providers: c.Providers, Seen: c.Contacts.Answered, Requests: requests{s}, Clock: c.Clock, Log: c.Log,
	})
	return s
}
