package volume

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Query narrows a list of volumes. Zero values ask for everything.
type Query struct {
	Phases  []muster.VolumePhase
	Cluster muster.ClusterID
}

// Records are where volumes are on record. Every method is one transaction.
type Records interface {
	Volumes(ctx context.Context, q Query) ([]muster.Volume, error)
	Volume(ctx context.Context, id muster.VolumeID) (muster.Volume, error)
	// Add puts a new volume. EConflict: its name is taken, or its cluster has
	// one of that kind.
	Add(ctx context.Context, v muster.Volume, text string) error
	// Change reads a volume and writes what change makes of it, unless change
	// returns false. text goes to the audit; "" leaves no line unless the
	// phase changes.
	Change(ctx context.Context, id muster.VolumeID, change func(v *muster.Volume) (text string, ok bool)) error
	// Cluster is one cluster, also a deleted one.
	Cluster(ctx context.Context, id muster.ClusterID) (muster.Cluster, error)
}

// Config of a Manager. Records and Drivers are required.
type Config struct {
	Records Records
	Drivers map[muster.VolumeDriver]Driver
	// Host is where strays are looked for. nil: nowhere.
	Host *HostPath
	// Default is the driver of volumes that Muster makes by itself. Empty:
	// hostpath.
	Default muster.VolumeDriver
	// NeedsNetworkMounts reports whether machines of a cluster have kernels of their own, and
	// mount over the network what this server has. nil: none does.
	NeedsNetworkMounts func(ctx context.Context, c muster.Cluster) (bool, error)
	// Export is how such machines of a cluster mount an export of this server. Required with
	// NeedsNetworkMounts.
	Export func(ctx context.Context, c muster.Cluster, e Export, target string, readOnly bool) (wire.Mount, error)
	Clock  muster.Clock
	Log    *slog.Logger
	// Measure is how often what a volume holds is measured. 0: ten minutes.
	Measure time.Duration
	// Retry is how long after a failure erasing is tried again. 0: a minute.
	Retry time.Duration
}

// Manager makes, keeps and erases volumes.
type Manager struct {
	Config
	kick chan struct{}

	mu      sync.Mutex
	failing map[muster.VolumeID]error
}

// New makes a Manager.
func New(c Config) *Manager {
	if c.Default == "" {
		c.Default = muster.DriverHostPath
	}
	if c.Clock == nil {
		c.Clock = muster.SystemClock{}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Measure == 0 {
		c.Measure = 10 * time.Minute
	}
	if c.Retry == 0 {
		c.Retry = time.Minute
	}
	return &Manager{Config: c, kick: make(chan struct{}, 1), failing: map[muster.VolumeID]error{}}
}

func (k *Manager) driver(v muster.Volume) (Driver, error) {
	d := k.Drivers[v.Driver]
	if d == nil {
		return nil, muster.Errorf(muster.EUnavailable, "this server has no driver %q, which volume %s needs", v.Driver, v.Name).Because(muster.ReasonNoProvider).
			WithHint("start the server as it was when the volume was made")
	}
	return d, nil
}

// Ensure makes what the nodes of a cluster mount exist, and reports what they
// mount: the home, the scheduler's state and the volumes that it asked for.
//
// Where some of the cluster's machines have kernels of their own, each mount has NFS,
// for these, and Export where it is this server that is to export it. Share is for the
// others.
//
// Errors: ENotFound for a volume that is gone, EInvalid for one that its machines
// cannot mount; no repetition cures either.
func (k *Manager) Ensure(ctx context.Context, c muster.Cluster) ([]Mount, error) {
	u := user{Cluster: c, driver: k.Default}
	if k.NeedsNetworkMounts != nil {
		var err error
		if u.elsewhere, err = k.NeedsNetworkMounts(ctx, c); err != nil {
			return nil, err
		}
		if u.elsewhere {
			u.driver = muster.DriverManagedNFS
		}
	}
	var out []Mount
	for _, kind := range kindsOf(c) {
		v, err := k.own(ctx, u, kind)
		if err != nil {
			return nil, err
		}
		if out, err = k.mount(ctx, out, u, v, Target(kind), false); err != nil {
			return nil, err
		}
	}
	for _, use := range c.Spec.Volumes {
		v, err := k.Records.Volume(ctx, muster.VolumeID(use.Volume))
		if err == nil && (v.Phase != muster.VolumeReady || v.Project != c.Project || v.Kind != muster.VolumeData) {
			err = muster.Errorf(muster.ENotFound, "volume %s is gone", use.Volume).Because(muster.ReasonVolumeGone).
				WithHint("delete the cluster, and ask for one without it")
		}
		if err != nil {
			return nil, err
		}
		if out, err = k.mount(ctx, out, u, v, use.Target, use.ReadOnly); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func kindsOf(c muster.Cluster) []muster.VolumeKind {
	if c.Spec.Scheduler == muster.SchedulerNone {
		return []muster.VolumeKind{muster.VolumeHome}
	}
	return []muster.VolumeKind{muster.VolumeHome, muster.VolumeScheduler}
}

// own is the cluster's volume of a kind, made when there is none.
func (k *Manager) own(ctx context.Context, c user, kind muster.VolumeKind) (muster.Volume, error) {
	list, err := k.Records.Volumes(ctx, Query{Cluster: c.ID, Phases: []muster.VolumePhase{muster.VolumeReady}})
	if err != nil {
		return muster.Volume{}, err
	}
	for _, v := range list {
		if v.Kind == kind {
			return v, nil
		}
	}
	if kind == muster.VolumeHome && c.Spec.Home != "" {
		return muster.Volume{}, muster.Errorf(muster.ENotFound, "home volume %s is gone", c.Spec.Home).Because(muster.ReasonVolumeGone).
			WithHint("delete the cluster, and ask for one with another home")
	}
	v := muster.Volume{
		ID: muster.NewVolumeID(), Owner: c.Owner, Project: c.Project, Kind: kind, Driver: c.driver,
		Phase: muster.VolumeReady, Cluster: c.ID,
	}
	if kind == muster.VolumeHome {
		v.Quota = c.Spec.HomeQuota
	}
	for n := range 1000 {
		v.Name = freeName(c.Name, kind, n)
		err = k.Records.Add(ctx, v, "made for cluster "+c.Name)
		if muster.CodeOf(err) != muster.EConflict {
			break
		}
	}
	return v, err
}

func (k *Manager) mount(ctx context.Context, to []Mount, c user, v muster.Volume, target string, readOnly bool) ([]Mount, error) {
	d, err := k.driver(v)
	if err != nil {
		return nil, err
	}
	if err := k.create(ctx, d, v); err != nil {
		return nil, err
	}
	m, err := d.Mounts(v, target, readOnly)
	if err == nil && c.elsewhere {
		m, err = k.overNetwork(ctx, c, v, m)
	}
	return append(to, m...), err
}

// Create makes a volume's place, which Ensure does too before each use.
func (k *Manager) Create(ctx context.Context, v muster.Volume) error {
	d, err := k.driver(v)
	if err != nil {
		return err
	}
	return k.create(ctx, d, v)
}

func (k *Manager) create(ctx context.Context, d Driver, v muster.Volume) error {
	enforced, err := d.Create(ctx, v)
	if err != nil || enforced == v.Enforced {
		return err
	}
	return k.Records.Change(ctx, v.ID, func(v *muster.Volume) (string, bool) {
		v.Enforced = enforced
		return "", true
	})
}

// Release ends what a deleted cluster has of volumes: its machines are off. A
// home stays for as long as was asked; one of a cluster that never became ready
// holds nothing and goes. The scheduler's state goes. Only records change;
// erasing happens beside.
func (k *Manager) Release(ctx context.Context, c muster.Cluster) error {
	list, err := k.Records.Volumes(ctx, Query{Cluster: c.ID, Phases: []muster.VolumePhase{muster.VolumeReady}})
	if err != nil {
		return err
	}
	now := k.Clock.Now()
	for _, v := range list {
		err = errors.Join(err, k.Records.Change(ctx, v.ID, func(v *muster.Volume) (string, bool) {
			if v.Phase != muster.VolumeReady || v.Cluster != c.ID {
				return "", false
			}
			switch {
			case v.Kind == muster.VolumeScheduler:
				v.Phase = muster.VolumeDeleting
				return "its cluster is deleted", true
			case v.Kind != muster.VolumeHome:
				return "", false
			case c.Spec.Retain <= 0:
				v.Phase = muster.VolumeDeleting
				return "its cluster is deleted, and was to leave nothing", true
			case c.Ready.IsZero() && c.Spec.Home == "":
				v.Phase = muster.VolumeDeleting
				return "its cluster never became ready: nothing is in it", true
			}
			v.Phase, v.Expires = muster.VolumeRetained, now.Add(time.Duration(c.Spec.Retain))
			return "kept until " + v.Expires.UTC().Format(time.RFC3339), true
		}))
	}
	k.Wake()
	return err
}

// Wake looks at what is to be erased now.
func (k *Manager) Wake() {
	select {
	case k.kick <- struct{}{}:
	default:
	}
}

// Failing reports what cannot be erased, and why.
func (k *Manager) Failing() map[muster.VolumeID]error {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := make(map[muster.VolumeID]error, len(k.failing))
	for id, err := range k.failing {
		out[id] = err
	}
	return out
}
