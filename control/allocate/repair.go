package allocate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/admit"
	"github.com/muster-hpc/muster/control/calendar"
	"github.com/muster-hpc/muster/control/place"
	"github.com/muster-hpc/muster/control/topology"
	"github.com/muster-hpc/muster/store"
)

// Chooser chooses other machines for nodes that lost theirs.
type Chooser interface {
	// Choose chooses a free machine for the node: of the class of the one that it had,
	// or what the cluster's request allows when its nodes may differ; one that can run
	// the cluster's image; the nearest to the lost one and to the rest of the cluster.
	// A head that takes no jobs may go to another class when there is none of its own.
	// Machines in not are left out: the node was tried on them, or others get them.
	//
	// The ID is empty when there is none; why says then in one line what is missing. Of a
	// machine it says where it stands beside the lost one, "" where that is not known.
	// The same records give the same machine.
	Choose(c muster.Cluster, nodes []muster.Node, lost muster.Node, not []muster.MachineID) (m muster.Machine, why string, err error)
	// Free is when the next machine of the class of the one that the node had should come
	// free, where there is none now. Zero: nobody knows.
	Free(c muster.Cluster, lost muster.Node) (time.Time, error)
}

// Repairs chooses, inside tx, machines for nodes that need another one. The site is
// looked at once, when the first is chosen: none of them is taken meanwhile.
func (a *Allocator) Repairs(tx *store.Tx) Chooser { return &repairs{a: a, tx: tx} }

// repairs looks at the site when it is asked first.
type repairs struct {
	a  *Allocator
	tx *store.Tx
	p  *sparer
}

// Choose chooses one machine.
func (r *repairs) Choose(c muster.Cluster, nodes []muster.Node, lost muster.Node, not []muster.MachineID) (muster.Machine, string, error) {
	if err := r.look(); err != nil {
		return muster.Machine{}, "", err
	}
	m, why := r.p.choose(c, nodes, lost, not)
	return m, why, nil
}

// Free is when a machine should come free.
func (r *repairs) Free(c muster.Cluster, lost muster.Node) (time.Time, error) {
	if err := r.look(); err != nil {
		return time.Time{}, err
	}
	return r.p.free(c, lost)
}

// look looks at the site, once.
func (r *repairs) look() error {
	if r.p != nil {
		return nil
	}
	sys := r.tx.AsSystem()
	machines, err := sys.Site()
	if err != nil {
		return err
	}
	r.p, err = r.a.spares(sys, machines)
	return err
}

// sparer chooses several spares among the same machines.
type sparer struct {
	a        *Allocator
	sys      *store.Tx
	machines []muster.Machine
	byID     map[muster.MachineID]int
	placer   place.Planner
	images   map[string]*muster.Image
	found    map[spareKey]*fitting
	// promises is the calendar of promises alone, and site what is known of times; nil: not
	// looked at yet.
	promises *calendar.Timetable
	site     *Site
}

// spareKey is what decides which machines come into question.
type spareKey struct {
	cluster muster.ClusterID
	wish    muster.Constraints
	head    muster.HeadMode
}

// fitting are the free machines that come into question, and why others do not.
type fitting struct {
	free   []muster.Machine
	answer muster.Answer
}

func (a *Allocator) spares(sys *store.Tx, machines []muster.Machine) (*sparer, error) {
	placer, err := a.placerOf(sys, machines)
	machines = withoutPast(machines, a.Clock.Now())
	p := &sparer{a: a, sys: sys, placer: placer, machines: machines, byID: make(map[muster.MachineID]int, len(machines)), images: map[string]*muster.Image{}, found: map[spareKey]*fitting{}}
	for i, m := range machines {
		p.byID[m.ID] = i
	}
	return p, err
}

func (p *sparer) choose(c muster.Cluster, nodes []muster.Node, lost muster.Node, not []muster.MachineID) (muster.Machine, string) {
	former := p.former(c, lost)
	spec := spareSpec(c, former, lost.Role != muster.RoleCompute)
	var near, peers []muster.Machine // peers are those of compute nodes
	providers := map[string]bool{}
	for _, n := range nodes {
		i, ok := p.byID[n.Machine]
		if !ok || n.Name == lost.Name || n.Phase == muster.NodeGone || n.Phase == muster.NodeDraining {
			continue
		}
		near = append(near, p.machines[i])
		providers[p.machines[i].Provider] = true
		if n.Role == muster.RoleCompute {
			peers = append(peers, p.machines[i])
			if c.Spec.Within == muster.WithinRack && lost.Role == muster.RoleCompute {
				spec.Machine.Rack = p.machines[i].Facts.Rack
			}
		}
	}
	if spec.Machine.Provider == "" || strings.ContainsAny(spec.Machine.Provider, "*?") {
		for name := range providers { // no message network crosses two, so there is one
			spec.Machine.Provider = name
		}
	}
	reach := func(m *muster.Machine) bool {
		if lost.Role != muster.RoleCompute && c.Spec.Within != muster.WithinAnySite {
			return p.placer.Reaches(m, "", near)
		}
		return p.placer.Reaches(m, c.Spec.Within, peers)
	}
	behind, avoids := "", func(*muster.Machine) bool { return false }
	if anywhere := reach; p.avoids(lost) {
		behind, avoids = p.blamed(c, nodes, lost)
		reach = func(m *muster.Machine) bool { return anywhere(m) && !avoids(m) }
	}
	all := near
	// The rack of the lost machine counts more than all others.
	if former.Facts.Rack != "" || former.ID != "" && p.placer.Tree != nil {
		for range len(near) + 1 {
			all = append(all, former)
		}
	}
	m, fits := p.ask(c, spec, all, reach, not)
	if m.ID == "" && lost.Role != muster.RoleCompute && spec.Machine.Class != "" {
		// It takes no jobs: any machine will do that its image runs on.
		spec.Machine.Class, spec.Head = "", muster.HeadSeparate
		m, fits = p.ask(c, spec, all, reach, not)
	}
	if m.ID != "" {
		return m, p.stands(former, m, behind, fits.free, avoids)
	}
	outside := 0
	for i := range fits.free {
		if !reach(&fits.free[i]) {
			outside++
		}
	}
	why := noSpare(spec.Machine.Class, fits.answer, len(fits.free)-outside)
	if outside > 0 {
		why = fmt.Sprintf("%s, %d outside what the cluster is kept within (%s)", why, outside, cmp.Or(c.Spec.Within, muster.WithinSite))
	}
	return m, why
}

// avoids reports whether a node gets no machine behind the switch that it was not reached behind. A node that has left its
// machine is not kept waiting by that for longer than the switch is held against others: nobody may be left who could
// say that it is back.
func (p *sparer) avoids(lost muster.Node) bool {
	i := slices.IndexFunc(lost.Conditions, func(c muster.Condition) bool { return c.Code == muster.ConditionUnreached })
	if i < 0 {
		return false
	}
	down := muster.Condition{Code: muster.ConditionSwitchDown, Since: lost.Conditions[i].Since}
	return lost.Phase != muster.NodeFenced || p.a.Clock.Now().Before(down.WithWaiting().Deadline)
}

// UnreachedMachine is the machine on which a node was not reached over the message network, which it has left if
// it moves, or has moved and is not known to be reached yet; "": it is reached.
func UnreachedMachine(n muster.Node) muster.MachineID {
	i := slices.IndexFunc(n.Conditions, func(c muster.Condition) bool { return c.Code == muster.ConditionUnreached })
	if i < 0 {
		return ""
	}
	switch n.Phase {
	case muster.NodeReady:
		if n.Conditions[i].Stand != "" {
			return n.PreviousMachine
		}
		return n.Machine
	case muster.NodeUnreachable, muster.NodeFencing:
		return n.Machine
	}
	return n.PreviousMachine
}

// blamed names what the machine of a node that is not reached over the message network stands in, and the others
// that are not reached, and nobody who is; and reports which machines are behind that, or behind the head's own
// switch if that is to blame.
func (p *sparer) blamed(c muster.Cluster, nodes []muster.Node, lost muster.Node) (behind string, avoids func(*muster.Machine) bool) {
	tree := p.placer.Tree
	if tree == nil { // only racks are known
		tree = topology.New(nil, p.machines)
	}
	former := cmp.Or(UnreachedMachine(lost), p.former(c, lost).ID)
	gone, reached, head := []muster.MachineID{former}, []muster.MachineID(nil), muster.MachineID("")
	for _, n := range nodes {
		switch id := UnreachedMachine(n); {
		case n.Head:
			head = n.Machine
		case n.Name == lost.Name || n.Role != muster.RoleCompute || n.Phase == muster.NodeGone || n.Phase == muster.NodeDraining:
		case id != "":
			gone = append(gone, id)
		case n.Phase == muster.NodeReady && !n.Down && !n.Hold:
			reached = append(reached, n.Machine)
		}
	}
	a := tree.Apart(head, gone, reached)
	stand, own := a.Stand(former), a.Head()
	return tree.Stands[stand].Name, func(m *muster.Machine) bool { return tree.Inside(m.ID, stand) || tree.Inside(m.ID, own) }
}

// stands says where a spare is beside the machine that it replaces, and why not nearer.
func (p *sparer) stands(former, m muster.Machine, behind string, free []muster.Machine, avoids func(*muster.Machine) bool) string {
	tree := p.placer.Tree
	if tree == nil || former.ID == "" {
		return ""
	}
	here, there := tree.Location(m.ID), tree.Location(former.ID)
	at, was := here[:len(here)-1], there[:len(there)-1]
	switch {
	case slices.Equal(at, was) && len(at) > 0:
		return "it stands in " + at[len(at)-1] + " like the one before"
	case len(at) == 0 || len(was) == 0:
		return ""
	}
	text := fmt.Sprintf("it stands in %s, %d switches from the one before: ", at[len(at)-1], tree.Switches(m.ID, former.ID))
	for i := range free {
		f := &free[i]
		if tree.Switches(f.ID, former.ID) >= tree.Switches(m.ID, former.ID) {
			continue
		}
		if j := slices.IndexFunc(f.Conditions, func(c muster.Condition) bool { return c.Code == muster.ConditionSwitchDown }); j >= 0 {
			return text + "those that are free and nearer stand behind " + f.Conditions[j].Stand + ", which is not reached"
		}
		if behind != "" && avoids(f) {
			return text + "those that are free and nearer stand behind " + behind + ", which is not reached"
		}
	}
	return text + "no other that is free is nearer to " + was[len(was)-1] + " and the other nodes"
}

// free is when the next machine of the class of the former one should come free: of those
// that other clusters give back, and that are being cleaned.
func (p *sparer) free(c muster.Cluster, lost muster.Node) (first time.Time, err error) {
	if _, err := p.until(c); err != nil {
		return time.Time{}, err
	}
	former, now := p.former(c, lost).Facts, p.site.snap.Now
	for i := range p.machines {
		m := &p.machines[i]
		if m.Facts.Class != former.Class || m.Cluster == c.ID {
			continue
		}
		at := time.Time{}
		switch other := p.site.clusters[m.Cluster]; {
		case other != nil:
			at = p.site.gives(other)
		case m.Phase == muster.MachineCleaning:
			at = m.PhaseSince.Add(p.site.turnover.clean(m.Facts.Class))
		}
		if at.After(now.Add(soon)) && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first.Truncate(time.Second), nil
}

// former is the machine that a lost node was on, as far as that is known.
func (p *sparer) former(c muster.Cluster, lost muster.Node) muster.Machine {
	id := lost.Machine
	if id == "" {
		id, _ = p.sys.LastMachine(c.ID, lost.Name)
	}
	if i, ok := p.byID[id]; ok && id != "" {
		return p.machines[i]
	}
	m := muster.Machine{}
	if lost.Role == muster.RoleCompute {
		m.Facts.Class = c.Class
	}
	return m
}

// spareSpec is a request for the one machine.
func spareSpec(c muster.Cluster, former muster.Machine, free bool) muster.Spec {
	spec := muster.Spec{
		Name: c.Name, Nodes: 1, Min: 1, Mixed: true, Image: c.Spec.Image, Head: muster.HeadShared,
		Scheduler: c.Spec.Scheduler, Placement: muster.PlaceAny, Egress: c.Spec.Egress, Allowed: c.Spec.Allowed,
	}
	if free {
		// No request says what carries a head; its class alone counts.
		spec.Machine = muster.Constraints{Class: former.Facts.Class, Provider: former.Provider}
		return spec
	}
	spec.Machine, spec.Shape, spec.LinkRate = c.Spec.Machine, c.Spec.Shape, c.Spec.LinkRate
	if former.Provider != "" {
		spec.Machine.Provider = former.Provider
	}
	if !c.Spec.Mixed && former.Facts.Class != "" {
		spec.Machine.Class = former.Facts.Class
	}
	return spec
}

// ask chooses the nearest of the free machines that fit.
func (p *sparer) ask(c muster.Cluster, spec muster.Spec, near []muster.Machine, reach func(*muster.Machine) bool, not []muster.MachineID) (muster.Machine, *fitting) {
	key := spareKey{c.ID, spec.Machine, spec.Head}
	f := p.found[key]
	if f == nil {
		f = p.fit(c, spec)
		p.found[key] = f
	}
	list := slices.DeleteFunc(slices.Clone(f.free), func(m muster.Machine) bool { return slices.Contains(not, m.ID) || !reach(&m) })
	if got := place.Nearby(p.placer.Tree, list, near, 1); len(got) == 1 {
		return got[0], f
	}
	return muster.Machine{}, f
}

// fit asks admission, which knows every reason, about a cluster of one node.
func (p *sparer) fit(c muster.Cluster, spec muster.Spec) *fitting {
	snap := admit.Snapshot{Now: p.a.Clock.Now(), Machines: p.machines, Silence: p.a.Silence, Providers: p.a.Providers}
	if p.a.Silence > 0 {
		snap.Machines = slices.Clone(p.machines)
		for i := range snap.Machines {
			if seen := p.a.Seen(snap.Machines[i].ID); seen.After(snap.Machines[i].LastSeen) {
				snap.Machines[i].LastSeen = seen
			}
		}
	}
	if end, err := p.until(c); err == nil {
		// A machine that is promised to others before this cluster ends is none for it:
		// only its own loss may move a promise.
		snap.Times = p.promises
		if !end.IsZero() {
			spec.Walltime = muster.Duration(max(time.Second, end.Sub(snap.Now)))
		}
	}
	var all collector
	answer := admit.Answer(c.ID, spec, p.image(c), snap, &all)
	return &fitting{all.free, answer}
}

// until is when others can have the machines of a cluster; zero: never.
func (p *sparer) until(c muster.Cluster) (time.Time, error) {
	if p.site == nil {
		s, err := p.a.times(p.sys)
		if err != nil {
			return time.Time{}, err
		}
		p.site = s
		p.promises = calendar.New(s.snap.Now, p.machines, p.placer)
		for _, other := range s.clusters {
			if q := other.PromiseAhead(); q != nil {
				take, give := s.promised(q)
				p.promises.Take(q.Plan, take, give)
			}
		}
	}
	own := p.site.clusters[c.ID]
	if own == nil {
		own = &c
	}
	return p.site.gives(own), nil
}

// image is what the cluster's nodes boot; nil when nothing is known of it.
func (p *sparer) image(c muster.Cluster) *muster.Image {
	ref := c.Spec.Image
	if c.Image != "" {
		ref = string(c.Image)
	}
	img, known := p.images[ref]
	if !known {
		if found, err := p.a.Images.Resolve(ref); err == nil {
			img = found
		}
		p.images[ref] = img
	}
	return img
}

// collector is a placer that takes note of the machines that fit and are free.
type collector struct{ free []muster.Machine }

// Capacity is 1 when there is any machine.
func (*collector) Capacity(_ muster.Spec, compute, spare []*muster.Machine) int {
	return min(1, len(compute)+len(spare))
}

// Plan takes note.
func (c *collector) Plan(_ muster.ClusterID, _ muster.Spec, compute, spare []*muster.Machine) (muster.Plan, bool) {
	for _, m := range slices.Concat(compute, spare) {
		c.free = append(c.free, *m)
	}
	return muster.Plan{}, len(c.free) > 0
}

// Candidates is never asked: nobody is ahead of a repair.
func (*collector) Candidates(_ muster.Spec, compute, spare []*muster.Machine) []*muster.Machine {
	return slices.Concat(compute, spare)
}

// noSpare says in one line what is missing. Machines of other kinds are of no
// interest; those that would do are counted by what keeps them away.
func noSpare(class string, a muster.Answer, tried int) string {
	text := "no free machine"
	if class != "" && !strings.ContainsAny(class, "*?") {
		text += " of class " + class
	}
	var parts []string
	for _, r := range a.Rejections {
		what := map[string]string{
			admit.ReasonBusy: "busy", admit.ReasonCleaning: "being cleaned", admit.ReasonPartsInUse: "made of what another set uses", admit.ReasonMaintenance: "in maintenance",
			admit.ReasonQuarantined: "in quarantine", admit.ReasonTesting: "under test", admit.ReasonNotAnswering: "not answering", admit.ReasonReserved: "kept for others",
			admit.ReasonFailedHere: "failed under this cluster before",
		}[r.Reason]
		switch {
		case what != "":
		case strings.HasPrefix(r.Reason, "image-"):
			what = "unable to run the image"
		case r.Reason == admit.ReasonClass, r.Reason == admit.ReasonProvider, r.Reason == admit.ReasonRetired:
			continue
		default:
			what = "unfit (" + r.Reason + ")"
		}
		parts = append(parts, fmt.Sprintf("%d %s", r.Count, what))
	}
	if tried > 0 {
		parts = append(parts, fmt.Sprintf("%d tried or meant for other nodes", tried))
	}
	if len(parts) == 0 {
		return text + ": the site has no other"
	}
	return text + ": " + strings.Join(parts, ", ")
}

// keptNodes bounds for how many lost nodes machines are kept at once.
const keptNodes = 64

// kept are the free machines that lost nodes take next. Nobody else may have
// them: repairs go before every request. Machines are kept for nodes that are
// just being fenced, too.
func (a *Allocator) kept(sys *store.Tx, machines []muster.Machine) (map[muster.MachineID]bool, error) {
	lost, err := sys.LostNodes(keptNodes)
	if err != nil || len(lost) == 0 {
		return nil, err
	}
	kept := map[muster.MachineID]bool{}
	p, err := a.spares(sys, machines)
	if err != nil {
		return nil, err
	}
	var not []muster.MachineID
	var c muster.Cluster
	var nodes []muster.Node
	for _, n := range lost {
		if n.Cluster != c.ID {
			if c, err = sys.Cluster(n.Cluster); err != nil {
				return nil, err
			}
			if nodes, err = sys.Nodes(n.Cluster); err != nil {
				return nil, err
			}
		}
		if c.Phase == muster.ClusterDeleting || c.Phase == muster.ClusterDeleted || c.Phase == muster.ClusterFailed {
			continue
		}
		if m, _ := p.choose(c, nodes, n, not); m.ID != "" {
			kept[m.ID] = true
			not = append(not, m.ID)
		}
	}
	return kept, nil
}
