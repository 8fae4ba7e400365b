package allocate

import (
	"context"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/admit"
	"github.com/muster-hpc/muster/place"
	"github.com/muster-hpc/muster/store"
)

// Site is what there is to give, as it was at one moment. One goroutine uses it.
type Site struct {
	snap   admit.Snapshot
	placer place.Planner
	ends   map[muster.ClusterID]time.Time // of clusters that have an end
}

// Site looks at the whole site, inside tx. ahead are the requests that come before
// whatever will be asked; nil: the whole queue. specs are the requests that will be
// asked about: their volumes count.
func (a *Allocator) Site(tx *store.Tx, ahead []admit.Waiting, specs ...muster.Spec) (*Site, error) {
	sys := tx.AsSystem()
	machines, err := a.machines(sys)
	if err != nil {
		return nil, err
	}
	kept, err := a.kept(sys, machines)
	if err != nil {
		return nil, err
	}
	living, err := sys.Clusters(store.ClusterFilter{Living: true})
	if err != nil {
		return nil, err
	}
	s := &Site{placer: a.placer, ends: map[muster.ClusterID]time.Time{}}
	var queued []muster.Cluster
	for _, c := range living {
		if c.Phase == muster.ClusterQueued {
			queued = append(queued, c)
		}
		if !c.Expires.IsZero() {
			s.ends[c.ID] = c.Expires
		}
	}
	if ahead == nil {
		ahead = a.Waiting(queued)
	}
	for _, w := range ahead {
		specs = append(specs, w.Spec)
	}
	drivers, err := driversOf(sys, specs)
	if err != nil {
		return nil, err
	}
	s.snap = admit.Snapshot{
		Now: a.Clock.Now(), Machines: machines, Ahead: ahead, Silence: a.Silence, Providers: a.Providers,
		Kept: kept, Drivers: drivers,
	}
	return s, nil
}

// machines are all of the site, heard as late as anybody knows.
func (a *Allocator) machines(sys *store.Tx) ([]muster.Machine, error) {
	machines, err := sys.Site()
	if err != nil {
		return nil, err
	}
	for i := range machines {
		if seen := a.Seen(machines[i].ID); seen.After(machines[i].LastSeen) {
			machines[i].LastSeen = seen
		}
	}
	return machines, nil
}

// Waiting is the queue as admission sees it. Requests for one image share the
// pointer, so that admission looks at them together.
func (a *Allocator) Waiting(queued []muster.Cluster) []admit.Waiting {
	images := make(map[string]*muster.Image)
	list := make([]admit.Waiting, 0, len(queued))
	for _, c := range queued {
		img, known := images[c.Spec.Image]
		if !known {
			if found, err := a.Images.Resolve(c.Spec.Image); err == nil {
				img = found
			}
			images[c.Spec.Image] = img
		}
		list = append(list, admit.Waiting{Cluster: c.ID, Spec: c.Spec, Image: img})
	}
	return list
}

// FreeAt is when a machine comes free as far as that is known: now, or when the cluster
// that has it ends. Not known: it is out of service, or its cluster has no end.
func (s *Site) FreeAt(m *muster.Machine) (at time.Time, known bool) {
	switch {
	case m.Phase == muster.MachineFree && m.Cluster == "":
		return s.snap.Now, true
	case m.Cluster != "":
		at, known = s.ends[m.Cluster]
		return at, known
	}
	return time.Time{}, false
}

// Ask answers a demand. The same site and demand give the same answer.
func (s *Site) Ask(d Demand) muster.Answer {
	snap := s.snap
	var placer admit.Placer = s.placer
	switch d.Purpose {
	case Scale:
		// Its own machines come not into question, not even later.
		own := make(map[muster.MachineID]bool, len(d.Near))
		for _, m := range d.Near {
			own[m.ID] = true
		}
		snap.Machines = slices.DeleteFunc(slices.Clone(snap.Machines), func(m muster.Machine) bool { return own[m.ID] })
		placer = place.Grower{Planner: s.placer, Near: d.Near, Logins: d.Role == muster.RoleLogin}
	case Benchmark:
		snap.Machines = slices.DeleteFunc(slices.Clone(snap.Machines), func(m muster.Machine) bool { return !slices.Contains(d.Only, m.ID) })
	}
	return admit.Answer(d.Cluster, d.Spec, d.Image, snap, placer)
}

// AskAll answers several demands: what one gets is taken for those after it.
func (s *Site) AskAll(demands []Demand) []muster.Answer {
	answers := make([]muster.Answer, len(demands))
	for i, d := range demands {
		answers[i] = s.Ask(d)
		if p := answers[i].Plan; p != nil && answers[i].Verdict == muster.VerdictNow && i+1 < len(demands) {
			s.taken(d.Cluster, *p)
		}
	}
	return answers
}

// taken notes that the machines of a plan are not free any more.
func (s *Site) taken(id muster.ClusterID, p muster.Plan) {
	has := make(map[muster.MachineID]string, len(p.Assign))
	for _, a := range p.Assign {
		has[a.Machine] = a.Node
	}
	s.snap.Machines = slices.Clone(s.snap.Machines)
	for i, m := range s.snap.Machines {
		if node, ok := has[m.ID]; ok {
			s.snap.Machines[i] = Given(m, id, node, s.snap.Now)
		}
	}
}

// Answer answers a demand with the site of now. Nothing is taken.
func (a *Allocator) Answer(ctx context.Context, d Demand, ahead []admit.Waiting) (muster.Answer, error) {
	var answer muster.Answer
	err := a.Store.View(ctx, muster.System(), func(tx *store.Tx) error {
		site, err := a.Site(tx, ahead, d.Spec)
		if err == nil {
			answer = site.Ask(d)
		}
		return err
	})
	return answer, err
}

// Runs reports whether an image runs on a machine, whatever the machine does now.
func (a *Allocator) Runs(m muster.Machine, img *muster.Image) bool {
	m.Phase, m.Cluster, m.Node, m.Facts.Service = muster.MachineFree, "", "", false
	one := muster.Spec{
		Name: "x", Nodes: 1, Min: 1, Head: muster.HeadShared, Image: img.Name, Scheduler: muster.SchedulerNone,
		Placement: muster.PlaceAny, Validate: muster.ValidateOff, Egress: muster.EgressNone,
	}
	snap := admit.Snapshot{Now: m.LastSeen, Machines: []muster.Machine{m}, Providers: a.Providers}
	return admit.Answer("c-", one, img, snap, a.placer).Fits > 0
}

// driversOf are the drivers of the volumes that requests name. One that is gone has none.
func driversOf(sys *store.Tx, specs []muster.Spec) (admit.Drivers, error) {
	out := admit.Drivers{}
	add := func(id string) error {
		if id == "" || out[id] != "" {
			return nil
		}
		v, err := sys.Volume(muster.VolumeID(id))
		if muster.CodeOf(err) == muster.ENotFound {
			return nil
		}
		if err == nil {
			out[id] = v.Driver
		}
		return err
	}
	for _, r := range specs {
		if err := add(r.Home); err != nil {
			return nil, err
		}
		for _, u := range r.Volumes {
			if err := add(u.Volume); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}
