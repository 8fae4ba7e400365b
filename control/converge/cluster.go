package converge

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/topology"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/vm/save"
	"github.com/muster-hpc/muster/wire"
)

// cluster runs Decide for one cluster and does what it says.
func (v *Converger) cluster(ctx context.Context, id muster.ClusterID) (time.Duration, error) {
	var view View
	load := func(tx *store.Tx) (err error) {
		view, err = v.view(tx, id)
		return err
	}
	err := v.c.Store.View(ctx, muster.System(), load)
	if muster.CodeOf(err) == muster.ENotFound {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if !view.Cluster.Phase.HoldsMachines() {
		v.forget(id)
		return 0, nil
	}
	var again time.Duration
	view.Slots, again = v.bootLimiter.reserve(id, booting(view), wanted(view), view.Now)
	slots := view.Slots
	actions, next := Decide(view)
	tokens := map[string]string{}
	if slices.ContainsFunc(actions, isRecord) {
		boots := booting(view)
		update := v.c.Store.Update
		if len(actions) > many {
			update = v.c.Store.UpdateMany
		}
		err = update(ctx, muster.System(), func(tx *store.Tx) error {
			// Decided anew: only what the records say now counts.
			if err := load(tx); err != nil {
				return err
			}
			view.Slots = slots
			actions, next = Decide(view)
			clear(tokens)
			return v.record(tx, id, actions, tokens)
		})
		if err != nil {
			for _, waiting := range v.bootLimiter.settle(id, boots) { // others may have the places
				v.Wake(waiting)
			}
			return 0, err
		}
		apply(&view, actions)
		v.noteRepairs(view, actions)
	}
	v.mu.Lock()
	v.workOf(id).hibernate = (&decider{View: view}).hibernateOrders()
	v.mu.Unlock()
	v.note(view)
	v.act(view, actions, tokens)
	if again > 0 && (next == 0 || again < next) {
		next = again
	}
	return next, nil
}

// many record changes have a transaction of their own.
const many = 256

// view reads everything that Decide may know about a cluster.
func (v *Converger) view(tx *store.Tx, id muster.ClusterID) (View, error) {
	view := View{Now: v.c.Clock.Now(), Started: v.started, Limits: v.c.Limits}
	var err error
	if view.Cluster, err = tx.Cluster(id); err != nil {
		return view, err
	}
	c := view.Cluster
	if !c.Phase.HoldsMachines() {
		return view, nil
	}
	if view.Nodes, err = tx.Nodes(id); err != nil {
		return view, err
	}
	held, err := tx.Machines(store.MachineFilter{Cluster: id})
	if err != nil {
		return view, err
	}
	view.Machines = make(map[muster.MachineID]muster.Machine, len(held))
	for _, m := range held {
		view.Machines[m.ID] = m
	}
	view.Observations = v.observations.of(id, view.Nodes, view.Machines, v.c.Presence)
	if view.wantsTree() {
		described, err := tx.AsSystem().SiteTree()
		if err != nil {
			return view, err
		}
		// All of the site: a stand that is not described has its name by what else there is.
		site, err := tx.AsSystem().Site()
		if err != nil {
			return view, err
		}
		view.Tree = topology.New(described, site)
	}
	if c.Phase == muster.ClusterDeleting && len(view.Machines) == 0 {
		if view.Cleaning, err = cleaning(tx, view.Nodes); err != nil {
			return view, err
		}
	}
	if c.Pause != nil && c.Pause.OnPause == muster.PauseSave {
		if view.Save, err = readSave(tx, id); err != nil {
			return view, err
		}
	}
	if c.Pause != nil && c.Pause.OnPause == muster.PauseHibernate {
		if view.Hibernation, err = readHibernation(tx, id); err != nil {
			return view, err
		}
	}
	if view.Times, err = v.times(tx, c); err != nil {
		return view, err
	}
	if c.Phase != muster.ClusterDeleting && c.Phase != muster.ClusterFailed {
		if err = v.spares(tx, &view); err != nil {
			return view, err
		}
		v.watching(&view)
		if v.c.Measures {
			view.Measures, view.MeasurementID, view.MeasurementSeed = true, muster.NewMeasurementID(), rand.Uint64()
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	w := v.workOf(id)
	view.Prepared, view.Dismantled, view.SaveWork = w.prepared, w.dismantled, w.saving
	w.silent = view.Save != nil && view.Save.Phase != save.Live || view.Hibernation != nil && view.Hibernation.asleep()
	if c.Phase == muster.ClusterDeleting {
		view.Dismantled = w.removed
	}
	return view, nil
}

// cleaning counts the machines of nodes that left which are not clean yet.
func cleaning(tx *store.Tx, nodes []muster.Node) (int, error) {
	busy, err := tx.Machines(store.MachineFilter{Phases: []muster.MachinePhase{muster.MachineCleaning}})
	if err != nil || len(busy) == 0 {
		return 0, err
	}
	mine := make(map[muster.MachineID]bool, len(nodes))
	for _, n := range nodes {
		mine[n.Machine] = true
	}
	count := 0
	for _, m := range busy {
		if mine[m.ID] && !hasCondition(m.Conditions, NotAnswering) {
			count++
		}
	}
	return count, nil
}

// historySize is how many past durations an estimate looks at.
const historySize = 20

// times are how long such things took lately; for a build, before it began.
func (v *Converger) times(tx *store.Tx, c muster.Cluster) (Times, error) {
	v.mu.Lock()
	w := v.workOf(c.ID)
	builds := c.Image != "" && (c.Phase == muster.ClusterBuilding || c.Phase == muster.ClusterValidating)
	if !builds {
		w.times = nil
	}
	kept := w.times
	v.mu.Unlock()
	if kept != nil {
		return *kept, nil
	}
	t, err := v.readTimes(tx, c)
	if err == nil && builds {
		v.mu.Lock()
		w.times = &t
		v.mu.Unlock()
	}
	return t, err
}

func (v *Converger) readTimes(tx *store.Tx, c muster.Cluster) (t Times, err error) {
	kinds := map[string]*Span{"boot": &t.Boot, "configure": &t.Configure, "build": &t.Build}
	switch {
	case c.Phase == muster.ClusterDeleting, c.Phase == muster.ClusterFailed:
		t.Delete, err = usual(tx, "delete", c.Class, string(c.Image))
		return t, err
	case c.Scaling != nil:
		kinds["scale"] = &t.Scale
	case c.Phase == muster.ClusterPausing && c.Pause != nil && c.Pause.OnPause == muster.PauseSave:
		if t.Save, err = usual(tx, SaveDuration, c.Class, ""); err != nil {
			return t, err
		}
	}
	for kind, span := range kinds {
		if *span, err = usual(tx, c.Spec.DurationKind(kind), c.Class, string(c.Image)); err != nil {
			return t, err
		}
	}
	return t, nil
}

// usual is how long something took lately.
func usual(tx *store.Tx, kind, class, image string) (Span, error) {
	took, err := tx.Durations(kind, class, image, historySize)
	return SpanOf(took), err
}

// record writes the record changes of a decision. The secrets of new tokens go
// into tokens, by node: the store keeps only their hashes.
func (v *Converger) record(tx *store.Tx, id muster.ClusterID, actions []Action, tokens map[string]string) error {
	for _, a := range actions {
		var err error
		switch a := a.(type) {
		case SetCluster:
			err = tx.PutCluster(a.Cluster, a.Text)
		case SetNode:
			err = tx.PutNode(a.Node, a.Text)
		case SetMachine:
			err = tx.PutMachine(a.Machine, a.Text)
		case KeepClean:
			err = tx.PutClean(a.Record)
		case KeepFence:
			err = tx.PutFence(a.Record, a.Cluster, a.Node)
		case BeginSave:
			err = beginSave(tx, id, a.Record)
		case SetSave:
			err = putSave(tx, id, a.Record)
		case DropSave:
			err = dropSave(tx, id)
		case BeginHibernation:
			err = beginHibernation(tx, id, a.Record)
		case SetHibernation:
			err = putHibernation(tx, id, a.Record)
		case DropHibernation:
			err = tx.DropSecret(id, hibernationSecret)
		case Measure:
			err = tx.PutDuration(a.Kind, a.Class, a.Image, a.Took)
		case Boot:
			n := a.Node
			secret, hash := pki.NewJoinToken()
			tokens[n.Name] = secret
			err = tx.PutJoin(store.Join{
				Hash: hash, Machine: n.Machine, Cluster: n.Cluster, Node: n.Name, Attempt: n.Attempt,
				Expires: v.c.Clock.Now().Add(v.c.TokenLife),
			})
		}
		if err != nil {
			return err
		}
	}
	return recordSwitches(tx, actions) // last: no record of a machine above undoes it
}

// apply brings the view up to what was committed.
func apply(view *View, actions []Action) {
	var at map[string]int // nodes by name
	for _, a := range actions {
		switch a := a.(type) {
		case SetCluster:
			view.Cluster = a.Cluster
		case BeginSave:
			view.Save = &a.Record
		case SetSave:
			view.Save = &a.Record
		case DropSave:
			view.Save = nil
		case BeginHibernation:
			view.Hibernation = &a.Record
		case SetHibernation:
			view.Hibernation = &a.Record
		case DropHibernation:
			view.Hibernation = nil
		case SetNode:
			if at == nil {
				at = make(map[string]int, len(view.Nodes))
				for i, n := range view.Nodes {
					at[n.Name] = i
				}
			}
			if i, ok := at[a.Node.Name]; ok {
				view.Nodes[i] = a.Node
			}
		case SetMachine:
			view.Machines[a.Machine.ID] = a.Machine
		}
	}
}

// note keeps what other objects need to know of this one.
func (v *Converger) note(view View) {
	id := view.Cluster.ID
	for mid, m := range view.Machines {
		v.observations.own(mid, m.Cluster)
		if m.Cluster == "" { // given back: what its agent said is history
			v.loop.Wake(keyMachine + string(mid))
		}
	}
	if view.Cluster.Phase == muster.ClusterDeleted {
		v.forget(id)
		return
	}
	for _, waiting := range v.bootLimiter.settle(id, booting(view)) {
		v.Wake(waiting)
	}
}

func (v *Converger) forget(id muster.ClusterID) {
	for _, waiting := range v.bootLimiter.forget(id) {
		v.Wake(waiting)
	}
	v.mu.Lock()
	delete(v.work, id)
	delete(v.short, id)
	for key := range v.tried {
		if key.cluster == id {
			delete(v.tried, key)
		}
	}
	v.mu.Unlock()
}

// booting counts the nodes that hold a place in the boot window.
func booting(view View) map[string]int {
	out := map[string]int{}
	for _, n := range view.Nodes {
		if n.Phase == muster.NodeBooting && n.NotBefore.IsZero() {
			out[view.Machines[n.Machine].Provider]++
		}
	}
	return out
}

// wanted counts the nodes that may want a place now.
func wanted(view View) map[string]int {
	out := map[string]int{}
	switch view.Cluster.Phase {
	case muster.ClusterBuilding, muster.ClusterValidating, muster.ClusterReady:
	default:
		return out
	}
	d := decider{View: view}
	d.Limits = d.Limits.withDefaults()
	for _, n := range view.Nodes {
		p := view.Machines[n.Machine].Provider
		switch s := view.Observations[n.Machine]; {
		case n.Phase == muster.NodeFenced && view.Spares[n.Name].Machine.ID != "":
			out[view.Spares[n.Name].Machine.Provider]++
		case n.Phase == muster.NodeAssigned,
			n.Phase == muster.NodeBooting && !n.NotBefore.IsZero() && !view.Limits.heldBack(n, view.Now),
			n.Phase == muster.NodeReady && (s.down(n.Attempt) || s.said(n) != nil && s.said(n).Rebooted || d.startsAnew(n)):
			out[p]++
		}
	}
	return out
}

// act makes the calls of a decision.
func (v *Converger) act(view View, actions []Action, tokens map[string]string) {
	boots := map[string][]provider.DesiredState{}
	for _, a := range actions {
		switch a := a.(type) {
		case Prepare:
			v.prepare(view)
		case Dismantle:
			v.dismantle(view, a.Home)
		case StepSave:
			v.stepSave(view, a.Erase)
		case MarkSwitch:
			v.wakeMarked()
		case Probe:
			v.probe(view.Machines[a.Machine], a.Since)
		case Boot:
			m := view.Machines[a.Node.Machine]
			boots[m.Provider] = append(boots[m.Provider], v.bootOf(view, a.Node, m, tokens[a.Node.Name]))
		}
	}
	v.call(actions, boots, func(id muster.MachineID) string { return view.Machines[id].Provider })
}

// bootOf tells the provider how to start a node.
func (v *Converger) bootOf(view View, n muster.Node, m muster.Machine, token string) provider.DesiredState {
	c := view.Cluster
	seed := v.c.Seed(m)
	seed.Token, seed.Machine, seed.Attempt, seed.Started = token, m.ID, n.Attempt, view.Now
	boot := &provider.Boot{
		Attempt: n.Attempt, Cluster: c.ID, Hostname: n.Name, Image: c.Image, Bootstrap: seed,
	}
	if n.Role == muster.RoleCompute {
		boot.Shape = c.Spec.Shape
	}
	if c.Spec.OnPause == muster.PauseHibernate {
		if boot.Memory = view.Hibernation.wakes(n); boot.Memory == nil {
			boot.Memory = roomForMemory(m)
		}
	}
	if c.Subnet.IsValid() {
		boot.Message = &provider.Attachment{Network: networkOf(c), Address: netip.PrefixFrom(n.Address, c.Subnet.Bits())}
	}
	if p := v.providers[m.Provider]; p != nil && !(muster.Providers{m.Provider: p.Capabilities()}).For(m.Provider, c.Spec.VM).OwnKernel {
		v.mu.Lock()
		boot.Shares = sharesOf(v.workOf(c.ID).mounts, n)
		v.mu.Unlock()
	}
	return provider.DesiredState{Machine: m.ID, Power: provider.PowerBoot, Boot: boot, VM: c.Spec.VM}
}

// roomForMemory is the end of a disk that a machine keeps for its memory; nil: it has none.
func roomForMemory(m muster.Machine) *wire.MemoryArea {
	disk, keep, ok := m.Facts.MemoryDisk()
	if !ok {
		return nil
	}
	return &wire.MemoryArea{Disk: wire.CleanDisk{Serial: disk.Serial, Model: disk.Model, Size: disk.Size, Keep: keep}}
}

func networkOf(c muster.Cluster) provider.Network {
	return provider.Network{Cluster: c.ID, Index: c.NetworkIndex, Subnet: c.Subnet, Egress: c.Spec.Egress, Speed: c.Spec.LinkRate}
}
