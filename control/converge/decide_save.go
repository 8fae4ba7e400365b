package converge

import (
	"fmt"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/vm/save"
	"github.com/muster-hpc/muster/wire"
)

// saving suspends the jobs of a cluster of virtual machines, has them saved, and gives their machines back.
// Whatever fails before the first of them was ended lets all go on.
func (d *decider) saving() {
	if !d.flushed() {
		return
	}
	c := &d.Cluster
	switch {
	case c.Pause.Stopped.IsZero():
		var nodes []save.Node
		for _, n := range d.Nodes {
			if m, ok := d.Machines[n.Machine]; ok && ownRunning(n, m) {
				nodes = append(nodes, save.Node{Name: n.Name, Head: n.Head})
			}
		}
		r := save.Begin(nodes)
		d.Save = &r
		d.changePause(func(p *muster.Pause) { p.Stopped = d.Now })
		d.records = append(d.records, BeginSave{Record: r})
		d.pausingCondition("its virtual machines are saved", d.Now.Add(d.saveTime()))
		d.clusterText("its virtual machines are saved")
		return
	case d.Save == nil: // what was saved is void: it goes on without
		d.takeBack("the pause is taken back: nothing is on record of what was saved")
		return
	}
	switch r := d.Save; r.Phase {
	case save.Saved:
		d.saved()
	case save.Live:
		d.wentOn(r)
	case save.Loading: // it was to come back, and something else failed
		next := *r
		next.Phase = save.Unloading
		d.Save = &next
		d.records = append(d.records, SetSave{Record: next})
	default:
		d.stepSave()
	}
}

// flushed suspends the jobs of a cluster and has its nodes write to their volumes what they have of them. It
// reports whether that is done; if it cannot be, the pause is taken back.
func (d *decider) flushed() bool {
	p := d.Cluster.Pause
	switch {
	case !p.Stopped.IsZero():
		return true
	case p.Suspended.IsZero():
		if !d.jobsSuspended() {
			return false
		}
		d.changePause(func(p *muster.Pause) { p.Suspended = d.Now })
		d.pausingCondition("its nodes write to their volumes what they have of them", d.Now.Add(d.Limits.Sync))
		d.clusterText("its jobs are suspended: its nodes write to their volumes")
		return false
	case !d.allSynced():
		until := p.Suspended.Add(d.Limits.Sync)
		if d.lookAt(until); !d.Now.Before(until) {
			d.takeBack(fmt.Sprintf("the pause is taken back: its nodes did not write to their volumes within %s", span(d.Limits.Sync)))
		}
		return false
	}
	return true
}

// saved gives the machines of a saved cluster back, and calls it paused.
func (d *decider) saved() {
	c := &d.Cluster
	if c.Pause.Saving == 0 {
		took, bytes := d.Now.Sub(c.Pause.Stopped), d.Save.Bytes()
		d.changePause(func(p *muster.Pause) { p.SavedBytes, p.Saving = bytes, muster.Duration(max(took, time.Millisecond)) })
		if memory := SavedMemory(c.Spec, d.heldMachines()); memory > 0 && !c.Pause.Stopped.Before(d.Started) {
			d.records = append(d.records, Measure{Kind: SaveDuration, Class: c.Class, Took: time.Duration(float64(took) * (1 << 30) / float64(memory))})
		}
		text := fmt.Sprintf("its virtual machines are saved: %s in %s, %s/s", plaintext.Bytes(bytes), took.Round(100*time.Millisecond), plaintext.Bytes(rate(bytes, took)))
		d.notice(muster.NoticePause, text)
		d.clusterText(text)
	}
	if d.returnNodes() > 0 {
		return
	}
	d.paused()
}

func rate(bytes int64, took time.Duration) int64 {
	return int64(float64(bytes) / max(took, time.Millisecond).Seconds())
}

func (d *decider) heldMachines() (list []muster.Machine) {
	for _, n := range d.Nodes {
		if m, ok := d.Machines[n.Machine]; ok {
			list = append(list, m)
		}
	}
	return list
}

// SaveDuration is the kind of durations of saves: how long a GiB of memory took.
const SaveDuration = "vm-save"

// SavedMemory is the memory of virtual machines on machines: the most that their states can have, but for
// what QEMU adds.
func SavedMemory(s muster.Spec, machines []muster.Machine) (sum int64) {
	for _, m := range machines {
		if part := s.Shape.Memory(); part > 0 {
			sum += part
		} else {
			sum += m.Facts.Memory
		}
	}
	return sum
}

// saveTime is how long the save should take; a minute where nobody knows.
func (d *decider) saveTime() time.Duration {
	if d.Times.Save.N == 0 {
		return time.Minute
	}
	return time.Duration(float64(d.Times.Save.Median) * float64(SavedMemory(d.Cluster.Spec, d.heldMachines())) / (1 << 30))
}

// wentOn makes a cluster ready again whose machines could not be saved, once its nodes report again.
func (d *decider) wentOn(r *save.Record) {
	c := &d.Cluster
	if c.Pause.Thawing.IsZero() {
		d.changePause(func(p *muster.Pause) { p.Thawing = d.Now })
		d.clusterText("its virtual machines go on: they could not be saved")
	}
	until := c.Pause.Thawing.Add(d.Limits.Thaw)
	if d.Now.Before(until) && !d.allHeardSince(c.Pause.Thawing) {
		d.lookAfter(thawLook)
		d.lookAt(until)
		return
	}
	d.takeBack("it goes on: it could not be saved: " + r.Failed)
}

// takeBack makes a cluster ready again that was to be saved, or to hibernate.
func (d *decider) takeBack(text string) {
	if d.Save != nil {
		d.Save = nil
		d.records = append(d.records, DropSave{})
	}
	if d.Hibernation != nil {
		d.Hibernation = nil
		d.records = append(d.records, DropHibernation{})
	}
	d.goOn(text)
}

// stepSave has the next step of a save or a resume made, which runs beside the loop.
func (d *decider) stepSave() {
	switch w := d.SaveWork; {
	case w.Busy:
	case d.Now.Before(w.Retry):
		d.lookAt(w.Retry)
	default:
		d.calls = append(d.calls, StepSave{})
	}
}

// restoring brings the virtual machines of a saved cluster back. It reports whether nothing else is to be done
// for the cluster yet.
func (d *decider) restoring() bool {
	if d.Save == nil {
		return false
	}
	switch r := d.Save; r.Phase {
	case save.Live:
		return false
	case save.Erasing:
		d.stepSave()
		return false
	case save.Saved:
		switch {
		case slices.ContainsFunc(d.Nodes, func(n muster.Node) bool { return n.Phase == muster.NodeBooting }):
			d.fail(muster.Errorf(muster.EUnavailable, "its virtual machines could not be brought back: %s", r.Failed).Because(muster.ReasonResumeFailed).
				WithHint("nothing of it is lost: resume it again, or delete it"))
		case d.Prepared.Done && d.Cluster.Image != "":
			d.load()
		}
	case save.Starting:
		d.awaitAgents()
		d.stepSave()
	default:
		d.stepSave()
	}
	return true
}

// load begins to load the saved machines of a cluster: their nodes are boots of their own, with tokens of their own.
func (d *decider) load() {
	for i := range d.Nodes {
		n := &d.Nodes[i]
		m, ok := d.Machines[n.Machine]
		if n.Phase != muster.NodeAssigned || !ok || m.Cluster != n.Cluster || m.Node != n.Name {
			continue
		}
		n.Attempt, n.NotBefore, n.Stages = d.nextAttempt(*n), time.Time{}, nil
		n.Management = m.Facts.Management
		d.setPhase(n, muster.NodeBooting, "its saved memory is loaded")
		m.Phase, m.PhaseSince, m.Attempt = muster.MachineActive, d.Now, n.Attempt
		d.records = append(d.records, SetMachine{Machine: m})
	}
	next := *d.Save
	next.Phase, next.Failed = save.Loading, ""
	d.Save = &next
	d.records = append(d.records, SetSave{Record: next})
}

// awaitAgents gives agents the time of a boot from when their machines go on, however long loading took.
func (d *decider) awaitAgents() {
	within := d.Limits.deadline(d.Times.Boot, d.Limits.Boot)
	for i := range d.Nodes {
		if n := &d.Nodes[i]; n.Phase == muster.NodeBooting && n.Deadline.Before(d.Now.Add(within/2)) {
			n.Deadline = d.Now.Add(within)
			d.records = append(d.records, SetNode{Node: *n})
		}
	}
}

// fromMemory reports whether the cluster comes back from a save, or hibernated: its jobs are there, suspended.
func (d *decider) fromMemory() bool {
	return (d.Save != nil || d.Hibernation != nil) && d.Cluster.Pause != nil
}

// eraseSave erases what is left of a save when the cluster ends. It reports whether nothing is.
func (d *decider) eraseSave() bool {
	if d.Save == nil {
		return true
	}
	switch w := d.SaveWork; {
	case w.Busy:
	case d.Now.Before(w.Retry):
		d.lookAt(w.Retry)
	default:
		d.calls = append(d.calls, StepSave{Erase: true})
	}
	return false
}

// allSynced reports whether every node that is ready has said that its volumes have all that it had of them.
func (d *decider) allSynced() bool {
	for _, n := range d.Nodes {
		m, ok := d.Machines[n.Machine]
		if !ok || !ownRunning(n, m) || n.Phase != muster.NodeReady {
			continue
		}
		s := d.Observations[m.ID]
		r := s.said(n)
		if s.down(n.Attempt) {
			continue
		}
		if r == nil || !slices.ContainsFunc(r.Checks, func(c wire.Check) bool {
			return c.Name == wire.CheckSynced && c.OK && c.Text == wire.SyncMark(d.Cluster.Pause)
		}) {
			return false
		}
	}
	return true
}
