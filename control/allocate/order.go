package allocate

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
)

// The order of the queue: docs/users/admission.md tells people of it.
const (
	// useHalfLife is after how long use counts half: as in Slurm's fair share.
	useHalfLife = 7 * 24 * time.Hour
	// useWindow is how old a cluster may be whose use counts.
	useWindow = 4 * useHalfLife
	// waitWeight is how much waiting outweighs the whole of fair share. It grows without
	// bound: whoever waits that much longer than anybody else goes first.
	waitWeight = 24 * time.Hour
	// ownerWeight is how much of the fair share is that of the owner; the rest is that of
	// the project.
	ownerWeight = 0.3
	// useKept is how long what was counted is good for.
	useKept = time.Minute
)

// Use is how much of the site projects and people had lately, in decayed machine-seconds.
type Use struct {
	at       time.Time
	total    float64
	projects map[string]float64
	owners   map[owner]float64
}

type owner struct{ project, name string }

// NewUse counts from a time back.
func NewUse(at time.Time) *Use {
	return &Use{at: at, projects: map[string]float64{}, owners: map[owner]float64{}}
}

// Add counts a cluster.
func (u *Use) Add(c *muster.Cluster) {
	from, to := c.BuildStarted, u.at
	if from.IsZero() {
		from = c.Ready
	}
	switch {
	case c.Benchmark:
		return
	case !c.Deleted.IsZero():
		to = c.Deleted
	case c.Phase == muster.ClusterPaused:
		to = c.PhaseSince
	}
	if from.IsZero() || !to.After(from) {
		return
	}
	// The integral of 2^(-age/half-life) over its life.
	decay := func(at time.Time) float64 { return math.Exp2(-u.at.Sub(at).Seconds() / useHalfLife.Seconds()) }
	if before := time.Duration(c.UsedBefore); before > 0 {
		from = from.Add(-before) // what it used before its pauses, as if just before
	}
	seconds := useHalfLife.Seconds() / math.Ln2 * (decay(to) - decay(from)) * float64(c.Spec.TotalNodes())
	u.total += seconds
	u.projects[c.Project] += seconds
	u.owners[owner{c.Project, c.Owner}] += seconds
}

// share is between 1, for who had nothing, and 0: 2 to the power of minus how many times the
// fair share was used.
func share(used, total float64, sharers int) float64 {
	if total <= 0 || sharers == 0 {
		return 1
	}
	return math.Exp2(-used / total * float64(sharers))
}

// used counts what everybody had lately.
func (a *Allocator) used(sys *store.Tx) (*Use, error) {
	now := a.Clock.Now()
	a.mu.Lock()
	known := a.use
	a.mu.Unlock()
	if known != nil && now.Sub(known.at).Abs() < useKept {
		return known, nil
	}
	u := NewUse(now)
	since := now.Add(-useWindow)
	lately, err := sys.Clusters(store.ClusterFilter{After: store.CreatedCursor(since)})
	if err != nil {
		return nil, err
	}
	living, err := sys.Clusters(store.ClusterFilter{Living: true})
	if err != nil {
		return nil, err
	}
	for i := range lately {
		u.Add(&lately[i])
	}
	for i := range living {
		if !living[i].Created.After(since) {
			u.Add(&living[i])
		}
	}
	a.mu.Lock()
	a.use = u
	a.mu.Unlock()
	return u, nil
}

// score is higher the sooner a cluster's turn comes.
func (u *Use) score(c *muster.Cluster) float64 {
	byProject := share(u.projects[c.Project], u.total, len(u.projects))
	byOwner := share(u.owners[owner{c.Project, c.Owner}], u.projects[c.Project], u.ownersOf(c.Project))
	since, _ := c.Waits()
	waited := u.at.Sub(since) + time.Duration(c.Raised)
	return (1-ownerWeight)*byProject + ownerWeight*byOwner + waited.Seconds()/waitWeight.Seconds()
}

func (u *Use) ownersOf(project string) int {
	n := 0
	for o := range u.owners {
		if o.project == project {
			n++
		}
	}
	return n
}

// ordered is the queue in its order: fair share by decayed use, raises, and waiting.
// Preemptible requests come after all others.
func (a *Allocator) ordered(sys *store.Tx, queued []muster.Cluster) ([]muster.Cluster, error) {
	if len(queued) < 2 {
		return queued, nil
	}
	u, err := a.used(sys)
	if err != nil {
		return nil, err
	}
	return u.Order(queued), nil
}

// Order sorts requests that wait: who goes first stands first. Preemptible ones come last.
func (u *Use) Order(queued []muster.Cluster) []muster.Cluster {
	type scored struct {
		c     *muster.Cluster
		score float64
	}
	list := make([]scored, len(queued))
	for i := range queued {
		list[i] = scored{&queued[i], u.score(&queued[i])}
	}
	slices.SortStableFunc(list, func(x, y scored) int {
		return cmp.Or(cmp.Compare(x.c.Spec.Priority, y.c.Spec.Priority), cmp.Compare(y.score, x.score), x.c.Created.Compare(y.c.Created))
	})
	out := make([]muster.Cluster, len(list))
	for i, s := range list {
		out[i] = *s.c
	}
	return out
}
