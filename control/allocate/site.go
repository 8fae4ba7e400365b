package allocate

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/admit"
	"github.com/muster-hpc/muster/control/calendar"
	"github.com/muster-hpc/muster/control/place"
	"github.com/muster-hpc/muster/control/topology"
	"github.com/muster-hpc/muster/store"
)

// Site is what there is to give, as it was at one moment, and when. One goroutine uses it.
type Site struct {
	snap     admit.Snapshot
	placer   place.Planner
	turnover *turnover
	images   Images
	clusters map[muster.ClusterID]*muster.Cluster // living ones
	// ahead are those that wait, in their order; scheduled is what the calendar has for
	// them, once somebody asked.
	ahead     []admit.Waiting
	scheduled []admit.Scheduled
	// binding is the calendar without the queue; windows are those of maintenance in it.
	binding *calendar.Timetable
	windows []muster.MaintenanceWindow
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
	living, err := sys.Clusters(store.ClusterFilter{Living: true})
	if err != nil {
		return nil, err
	}
	parts := partsOf(machines, a.Providers)
	a.parts.Store(&parts)
	placer, err := a.placerOf(sys, machines)
	if err != nil {
		return nil, err
	}
	machines = withoutPast(machines, a.Clock.Now())
	held := place.HeldParts(machines)
	placer.Blocks = place.BlocksOf(machines, held)
	s := &Site{placer: placer, images: a.Images, clusters: make(map[muster.ClusterID]*muster.Cluster, len(living)), turnover: newTurnover(sys, parts)}
	var queued []muster.Cluster
	for i := range living {
		c := &living[i]
		if _, waits := c.Waits(); waits {
			queued = append(queued, *c)
		}
		s.clusters[c.ID] = c
		if c.PromiseAhead() != nil && len(c.Spec.Volumes) > 0 {
			specs = append(specs, c.Spec)
		}
	}
	if ahead == nil {
		if queued, err = a.ordered(sys, queued); err != nil {
			return nil, err
		}
		ahead = a.Waiting(queued)
	}
	s.ahead = ahead
	for _, w := range ahead {
		specs = append(specs, w.Spec)
	}
	drivers, err := driversOf(sys, specs)
	if err != nil {
		return nil, err
	}
	high, err := a.highUIDs(sys)
	if err != nil {
		return nil, err
	}
	s.snap = admit.Snapshot{
		Now: a.Clock.Now(), Machines: machines, Held: held, Silence: a.Silence, Providers: a.Providers, Drivers: drivers, HighUIDs: high, Turnover: s.turnover.of, Spread: s.turnover.spread(),
		Centres: placer.Tree != nil && placer.Tree.Centres() > 1,
	}
	if s.snap.ReservedForRepair, err = a.kept(sys, machines); err != nil {
		return nil, err
	}
	if s.windows, err = a.maintenance(sys); err != nil {
		return nil, err
	}
	s.binding = s.timetable(s.windows)
	s.snap.Times = s.binding
	return s, s.turnover.err
}

// placerOf knows where the machines stand.
func (a *Allocator) placerOf(sys *store.Tx, machines []muster.Machine) (place.Planner, error) {
	placer := a.placer
	described, err := sys.SiteTree()
	if err != nil {
		return placer, err
	}
	if !topology.Plain(described, machines) {
		placer.Tree = topology.New(described, machines)
	}
	return placer, nil
}

// highUIDs are the people whose number does not exist on the machines of every provider.
func (a *Allocator) highUIDs(sys *store.Tx) (map[string]int, error) {
	least := 0
	for _, c := range a.Providers {
		if c.LargestUID > 0 && (least == 0 || c.LargestUID < least) {
			least = c.LargestUID
		}
	}
	if least == 0 {
		return map[string]int{}, nil
	}
	return sys.UIDsAbove(least)
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
		ref := c.Spec.Image
		if c.Phase == muster.ClusterPaused && c.Image != "" {
			ref = string(c.Image) // it goes on with what it had
		}
		img, known := images[ref]
		if !known {
			if found, err := a.Images.Resolve(ref); err == nil {
				img = found
			}
			images[ref] = img
		}
		list = append(list, admit.Waiting{Cluster: c.ID, Spec: c.Needs(), Image: img})
	}
	return list
}

// Ask answers a demand. The same site and demand give the same answer.
func (s *Site) Ask(d Demand) muster.Answer {
	if d.As != nil {
		s = s.with(d.As)
	}
	snap := s.snap
	var placer admit.Placer = s.placer
	switch d.Purpose {
	case Scale:
		// Its own machines come not into question, not even later; and it needs the
		// others no longer than it lives.
		own := make(map[muster.MachineID]bool, len(d.Near))
		for _, m := range d.Near {
			own[m.ID] = true
		}
		snap.Machines = slices.DeleteFunc(slices.Clone(snap.Machines), func(m muster.Machine) bool { return own[m.ID] })
		snap.Kept = kept(s.placer, s.snap.Machines, d)
		placer = place.ScaleOut{Planner: s.placer, Near: d.Near, Logins: d.Role == muster.RoleLogin}
		d.Spec.Start = muster.Start{}
		if c := s.clusters[d.Cluster]; c != nil && !c.Expires.IsZero() {
			d.Spec.Walltime = muster.Duration(max(time.Second, c.Expires.Sub(snap.Now)))
		}
		snap = s.afterQueue(snap)
	case Benchmark:
		snap.Machines = slices.DeleteFunc(slices.Clone(snap.Machines), func(m muster.Machine) bool { return !slices.Contains(d.Only, m.ID) })
		d.Spec.Walltime = muster.Duration(benchmarkTime) // it ends whenever somebody wants its machines
	default:
		snap.Alternatives = d.Alternatives
		snap = s.afterQueue(snap)
	}
	ask := func(snap admit.Snapshot) muster.Answer { return admit.Answer(d.Cluster, d.Spec, d.Image, snap, placer) }
	answer := ask(snap)
	if d.Purpose != Benchmark {
		answer = s.exchanged(d, answer, ask, snap)
	}
	return answer
}

// kept is what a cluster that grows cannot leave; nil: nothing.
func kept(placer place.Planner, machines []muster.Machine, d Demand) *admit.Kept {
	where := placer.Kept(d.Spec.Within, d.Near)
	if where == "" {
		return nil
	}
	k := &admit.Kept{Where: where, Has: func(m *muster.Machine) bool { return placer.Reaches(m, d.Spec.Within, d.Near) }}
	for i := range machines {
		if m := &machines[i]; m.Phase != muster.MachineRetired && k.Has(m) {
			k.All++
			if m.Cluster == d.Cluster {
				k.Own++
			}
		}
	}
	return k
}

// Kept is what the cluster of a demand for Scale cannot leave; nil: nothing.
func (a *Allocator) Kept(tx *store.Tx, d Demand) (*admit.Kept, error) {
	sys := tx.AsSystem()
	machines, err := a.machines(sys)
	if err != nil {
		return nil, err
	}
	placer, err := a.placerOf(sys, machines)
	if err != nil {
		return nil, err
	}
	return kept(placer, machines, d), nil
}

// with is the site once a cluster is what is said.
func (s *Site) with(c *muster.Cluster) *Site {
	next := *s
	next.clusters = maps.Clone(s.clusters)
	next.clusters[c.ID] = c
	next.binding, next.scheduled = next.timetable(s.windows), nil
	next.snap.Times = next.binding
	next.ahead = slices.DeleteFunc(slices.Clone(s.ahead), func(w admit.Waiting) bool { return w.Cluster == c.ID })
	return &next
}

// benchmarkTime is how long a benchmark of idle machines takes at most.
const benchmarkTime = 10 * time.Minute

// afterQueue is the snapshot in which the requests that wait have their places.
func (s *Site) afterQueue(snap admit.Snapshot) admit.Snapshot {
	s.Schedule()
	snap.Times, snap.Ahead, snap.Position = s.snap.Times, nil, len(s.scheduled)
	for i := range s.scheduled {
		if s.scheduled[i].Blocks {
			snap.Ahead = append(snap.Ahead, s.scheduled[i].Waiting)
			snap.Position--
		}
	}
	return snap
}

// Schedule is what the calendar has for the requests that wait, in their order.
func (s *Site) Schedule() []admit.Scheduled {
	if s.scheduled == nil && len(s.ahead) > 0 {
		s.snap.Times = s.binding.Clone()
		s.scheduled = admit.Schedule(s.snap, s.ahead, s.placer)
	}
	return s.scheduled
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
			s.snap.Times.Block(m.ID, s.snap.Now, time.Time{})
		}
	}
	s.snap.Held = place.HeldParts(s.snap.Machines)
	s.placer.Blocks = place.BlocksOf(s.snap.Machines, s.snap.Held)
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
