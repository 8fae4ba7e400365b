package converge

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/allocate"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/store"
)

// sparesAtOnce is how many machines are looked for in one transaction: each
// look is one at the whole site.
const sparesAtOnce = 16

// probeTime is how long a machine has to say anything.
const probeTime = 2 * time.Second

// spares finds machines for the nodes that need another one, and for those that
// will after one more failure.
func (v *Converger) spares(tx *store.Tx, view *View) error {
	var not []muster.MachineID
	var repairs allocate.Chooser
	if v.c.Machines != nil {
		repairs = v.c.Machines.Repairs(tx)
	}
	none := map[muster.Role]Spare{} // why there is no machine; the same for all of a role
	for _, n := range view.Nodes {
		if n.Phase != muster.NodeFenced && (n.Failures == 0 || !oneFailureLeft(n, v.c.Limits)) && slowMachine(view.Cluster, n) == "" && (n.Phase != muster.NodeReady || conditionOf(n.Conditions, unreached) == nil) || n.Leave {
			continue
		}
		if view.Spares == nil {
			view.Spares = map[string]Spare{}
		}
		if repairs == nil {
			view.Spares[n.Name] = Spare{Why: "this server looks for none"}
			continue
		}
		if s := none[n.Role]; s.Why != "" && !view.Cluster.Spec.Mixed {
			view.Spares[n.Name] = s
			continue
		}
		if len(not) >= sparesAtOnce {
			return nil // the others are looked for when these have moved
		}
		tried := v.triedBy(n)
		m, why, err := repairs.Choose(view.Cluster, view.Nodes, n, append(slices.Clone(not), tried...))
		all := len(tried) == 0
		if err == nil && m.ID == "" && !all && view.Cluster.Phase == muster.ClusterReady && n.Phase == muster.NodeFenced {
			// One that was lost and came through its test is better than none.
			m, why, err = repairs.Choose(view.Cluster, view.Nodes, n, not)
			all = true
		}
		if err != nil {
			return err
		}
		s := Spare{Machine: m, Why: why}
		if m.ID == "" {
			if s.Free, err = repairs.Free(view.Cluster, n); err != nil {
				return err
			}
		}
		view.Spares[n.Name] = s
		if m.ID != "" {
			not = append(not, m.ID)
			view.Observations[m.ID] = v.observations.get(m.ID)
		} else if all {
			none[n.Role] = s
		}
	}
	return nil
}

// watching fills in what is known of silence on the whole site.
func (v *Converger) watching(view *View) {
	if v.c.SilentAgents != nil {
		view.Silent, view.All = v.c.SilentAgents()
		view.Watched = true
	}
	if v.c.HeartbeatInterval != nil {
		view.HeartbeatInterval = v.c.HeartbeatInterval()
	}
	if v.c.ListeningSince != nil {
		if t := v.c.ListeningSince(); t.After(view.Started) {
			view.Started = t
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	early := view.Now.Before(v.started.Add(v.c.Limits.PowerCut))
	view.Blind = early && len(v.unseen) > 0
	view.PowerCut = early && v.powerCut
	if view.Off, view.On = v.observations.power(); view.blackout() {
		v.cutAt = view.Now
	}
	view.CutAt = v.cutAt
}

// nodeKey names a node of a cluster.
type nodeKey struct {
	cluster muster.ClusterID
	node    string
}

// triedBy lists the machines that the node did not boot on since this server
// started.
func (v *Converger) triedBy(n muster.Node) []muster.MachineID {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.tried[nodeKey{n.Cluster, n.Name}]
}

// noteRepairs keeps which machines a node has tried in vain, and which clusters
// wait for a machine.
func (v *Converger) noteRepairs(view View, actions []Action) {
	v.mu.Lock()
	defer v.mu.Unlock()
	waits := false
	for _, n := range view.Nodes {
		waits = waits || n.Phase == muster.NodeFenced
		if n.Phase == muster.NodeReady || n.Phase == muster.NodeGone {
			delete(v.tried, nodeKey{n.Cluster, n.Name})
		}
	}
	if waits {
		v.short[view.Cluster.ID] = true
	} else {
		delete(v.short, view.Cluster.ID)
	}
	for _, a := range actions {
		if k, ok := a.(KeepFence); ok {
			key := nodeKey{k.Cluster, k.Node}
			v.tried[key] = append(v.tried[key], k.Record.Machine)
		}
	}
}

// wakeShort wakes the clusters that wait for a machine.
func (v *Converger) wakeShort() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for id := range v.short {
		v.Wake(id)
	}
}

// firstLook judges, when every machine was looked at once, whether the server
// woke up after a power cut: more than half of a provider's machines that should
// run are off. Clusters that waited for it are woken.
func (v *Converger) firstLook(records []muster.Machine) {
	active, off := 0, 0
	owners := map[muster.ClusterID]bool{}
	var dark []muster.MachineID
	for _, m := range records {
		if m.Phase != muster.MachineActive {
			continue
		}
		active++
		if s := v.observations.get(m.ID); s.Known && s.State == provider.StateOff {
			off++
			owners[m.Cluster] = true
			dark = append(dark, m.ID)
		}
	}
	if 2*off > active {
		now := v.c.Clock.Now()
		for _, id := range dark {
			v.observations.wentOff(id, now)
		}
		v.mu.Lock()
		v.powerCut = true
		v.mu.Unlock()
		v.c.Log.Warn("power cut suspected: restarting nodes on the same machines", "off", off, "of", active)
	}
	for id := range owners {
		v.Wake(id)
	}
}

// probe asks a machine whether anything on it is alive, beside the loop.
func (v *Converger) probe(m muster.Machine, since time.Time) {
	if v.c.Probe == nil {
		return
	}
	begun := false
	begin := v.c.Clock.Now()
	v.observations.change(m.ID, func(s *Observation) {
		if begun = !s.Probing; begun {
			s.Probing = true
			if s.ProbeTries == 0 || !s.ProbeFirst.After(since) {
				s.ProbeTries, s.ProbeFirst = 0, begin
			}
		}
	})
	if !begun {
		return
	}
	v.calls.Go(func() {
		ctx, cancel := context.WithTimeout(v.ctx, probeTime)
		err := v.c.Probe(ctx, m)
		cancel()
		v.observations.change(m.ID, func(s *Observation) {
			s.Probing, s.ProbeAt, s.ProbeErr = false, v.c.Clock.Now(), err
			if s.ProbeTries++; err == nil {
				s.ProbeTries = 0
			}
		})
		v.wakeMachine(m.ID)
	})
}

// fence cuts a machine off and keeps the proof.
func (v *Converger) fence(name string, id muster.MachineID) {
	if !v.observations.begin(id, nil) {
		return
	}
	v.calls.Go(func() {
		var record muster.FenceRecord
		var err error = noProvider(name)
		if p := v.providers[name]; p != nil {
			ctx, cancel := v.callContext(v.c.CallTimeout)
			record, err = p.Fence(ctx, id)
			cancel()
			if err == nil && !record.Proven {
				err = muster.Errorf(muster.EUnavailable, "the provider does not prove that machine %s is cut off%s", id, failed(record)).Because(muster.ReasonNotFenced).
					WithHint("switch it off by hand")
			}
		}
		v.observations.end(id, func(s *Observation) {
			s.Fenced, s.Fence, s.FenceErr = err == nil, nil, err
			s.OffAt = v.c.Clock.Now()
			if err == nil {
				s.Fence, s.FenceTries = &record, 0
				return
			}
			s.FenceTries++
			s.FenceRetry = v.c.Clock.Now().Add(min(v.c.Limits.retryAfter(s.FenceTries), time.Minute))
		})
		if err != nil && v.ctx.Err() == nil {
			v.c.Log.Log(v.ctx, level(err, slog.LevelError), "fencing failed", "machine", id, "error", err)
		}
		v.wakeMachine(id)
		if o := v.observers[name]; o != nil {
			o.ask(id)
		}
	})
}
