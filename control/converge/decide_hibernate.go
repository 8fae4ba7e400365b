package converge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/wire"
)

const (
	// hibernateWithin is how long machines may take to write their memory and go off: the most
	// memory that they have, to a slow disk.
	hibernateWithin = 30 * time.Minute
	// offLook is how often machines are looked at that should go off.
	offLook = 2 * time.Second
)

// hibernating suspends the jobs of a cluster and has its machines write their memory to their disks
// and go off, the head last. What cannot be done lets all go on.
func (d *decider) hibernating() {
	c := &d.Cluster
	if !d.flushed() {
		return
	}
	p := c.Pause
	switch {
	case p.Stopped.IsZero():
		var h Hibernation
		for _, n := range d.Nodes {
			m, ok := d.Machines[n.Machine]
			if !ok || !ownRunning(n, m) {
				continue
			}
			area := roomForMemory(m)
			if area == nil {
				d.takeBack(fmt.Sprintf("the pause is taken back: machine %s has no disk of its own for its memory any more", m.ID))
				return
			}
			h.Nodes = append(h.Nodes, HibernatedNode{Name: n.Name, Machine: m.ID, Area: *area})
		}
		d.Hibernation = &h
		d.changePause(func(p *muster.Pause) { p.Stopped = d.Now })
		d.records = append(d.records, BeginHibernation{Record: h})
		d.pausingCondition("its machines write their memory to their disks", d.Now.Add(hibernateWithin))
		d.clusterText("its jobs are suspended: its machines write their memory to their disks")
		d.lookAfter(time.Millisecond) // its keys are on record then
		return
	case d.Hibernation == nil:
		d.takeBack("the pause is taken back: nothing is on record of the keys of its memory")
		return
	}
	if why := d.stayedOn(); why != "" {
		d.wake("it goes on: " + why)
		return
	}
	on := 0
	for _, n := range d.Hibernation.Nodes {
		s := d.Observations[n.Machine]
		switch {
		case s.Busy:
			on++
		case !s.Known:
			d.observe(n.Machine, s)
			on++
		case s.State != provider.StateOff:
			d.observeAgain(n.Machine, s, offLook)
			on++
		}
	}
	until := p.Stopped.Add(hibernateWithin)
	switch {
	case on == 0:
		took := d.Now.Sub(p.Stopped)
		c.Phase = muster.ClusterFrozen
		d.changePause(func(p *muster.Pause) { p.Saving = muster.Duration(max(took, time.Millisecond)) })
		d.notice(muster.NoticePause, "the cluster hibernates: its machines are off")
		d.clusterText(fmt.Sprintf("its machines wrote their memory and are off, after %s", took.Round(100*time.Millisecond)))
	case !d.Now.Before(until):
		d.wake(fmt.Sprintf("it goes on: %d of its machines did not go off within %s", on, span(hibernateWithin)))
	default:
		d.lookAt(until)
	}
}

// stayedOn says why a machine did not do as it was told; "": none said so.
func (d *decider) stayedOn() string {
	for i := range d.Nodes {
		n := &d.Nodes[i]
		if d.Hibernation.of(n.Name) < 0 {
			continue
		}
		r := d.Observations[n.Machine].said(*n)
		if r == nil {
			continue
		}
		for _, c := range r.Checks {
			if why, ok := strings.CutPrefix(c.Text, wire.SyncMark(d.Cluster.Pause)+": "); ok && c.Name == wire.CheckHibernated && !c.OK {
				return n.Name + ": " + why
			}
		}
	}
	return ""
}

// hibernateOrders are what agents are to do now, by their nodes. The head waits for the others to be
// gone: its scheduler sees no node fall silent.
func (d *decider) hibernateOrders() map[string]*wire.HibernateOrder {
	c := &d.Cluster
	if c.Phase != muster.ClusterPausing || c.Pause == nil || c.Pause.OnPause != muster.PauseHibernate || c.Pause.Stopped.IsZero() || d.Hibernation == nil || d.Hibernation.Waking {
		return nil
	}
	out := map[string]*wire.HibernateOrder{}
	var head *muster.Node
	gone := true
	order := func(n *muster.Node) {
		if area := d.Hibernation.Nodes[d.Hibernation.of(n.Name)].Area; len(area.Key) > 0 {
			out[n.Name] = &wire.HibernateOrder{ID: wire.SyncMark(c.Pause), Memory: area}
		}
	}
	for i := range d.Nodes {
		n := &d.Nodes[i]
		switch s := d.Observations[n.Machine]; {
		case d.Hibernation.of(n.Name) < 0:
		case n.Head:
			head = n
		default:
			order(n)
			r := s.said(*n)
			gone = gone && (s.Known && s.State == provider.StateOff || r != nil && r.Goodbye == wire.GoodbyeHibernate)
		}
	}
	if head != nil && gone {
		order(head)
	}
	return out
}

// wake has the machines of a cluster go on that hibernate: as boots of their own, so that what is known of
// boots, tokens and lost machines is known of these.
func (d *decider) wake(why string) {
	c := &d.Cluster
	h := *d.Hibernation
	h.Waking = true
	d.Hibernation = &h
	d.records = append(d.records, SetHibernation{Record: h})
	d.changePause(func(p *muster.Pause) {
		p.Thawing = d.Now
		if p.Resume.IsZero() {
			p.Resume = d.Now
		}
	})
	c.Phase, c.BuildStarted, c.Measured, c.Slow, c.Measurement = muster.ClusterBuilding, d.Now, 0, 0, nil
	c.Deadline = time.Time{}
	d.clusterText(why)
	d.condition(muster.ConditionResuming, "its machines go on from their memory", "its jobs go on once all of them report")
	d.clusterText("")
	d.lookAfter(time.Millisecond)
}

// rouse has node i go on from its memory when it is its turn: the head when all others report, so that its
// scheduler finds them. It reports whether nothing else is to be done for the node yet.
func (d *decider) rouse(i int) bool {
	n := &d.Nodes[i]
	k := d.Hibernation.of(n.Name)
	if !d.asleep(*n) || !d.Hibernation.Waking {
		return false
	}
	m, ok := d.Machines[n.Machine]
	s := d.Observations[n.Machine]
	switch {
	case !ok || !ownRunning(*n, m) || n.Machine != d.Hibernation.Nodes[k].Machine:
		d.setHibernated(k, 0, true)
		return false
	case s.Busy:
		return true
	case !s.Known, s.State == provider.StateUnknown:
		d.observe(n.Machine, s)
		return true
	case s.State == provider.StateRunning:
		// It writes, or it never went.
		r := s.said(*n)
		until := d.Cluster.Pause.Stopped.Add(hibernateWithin)
		if r != nil && r.Goodbye != wire.GoodbyeHibernate || !d.Now.Before(until) {
			d.setHibernated(k, 0, true)
			return false
		}
		d.observeAgain(n.Machine, s, offLook)
		d.lookAt(until)
		return true
	case !d.Prepared.Done, d.Cluster.Image == "", n.Head && !d.othersRoused(n.Name):
		return true
	}
	n.Attempt = d.nextAttempt(*n)
	n.NotBefore, n.Stages = time.Time{}, nil
	n.Management = m.Facts.Management
	n.Conditions = withoutCondition(n.Conditions, silent, agentSilent, cutOff)
	d.setPhase(n, muster.NodeBooting, "it goes on from its memory")
	m.Phase, m.Attempt = muster.MachineActive, n.Attempt
	d.setHibernated(k, n.Attempt, false)
	d.records = append(d.records, SetMachine{Machine: m}, Boot{Node: *n})
	d.lookAt(n.Deadline)
	return true
}

// wakeDeadline is the deadline of a node that goes on from its memory; zero: it does not. Reading takes as long as
// writing did, and a server that was away is no reason to end what went on.
func (d *decider) wakeDeadline(n muster.Node) (end time.Time) {
	if d.Cluster.Pause == nil || d.Hibernation.wakes(n) == nil {
		return end
	}
	since := n.PhaseSince
	if since.Before(d.Started) || since.After(d.Now) {
		since = d.Started
	}
	return since.Add(d.Limits.deadline(d.Times.Boot, d.Limits.Boot) + 2*time.Duration(d.Cluster.Pause.Saving))
}

// asleep reports whether a node is still to go on from its memory.
func (d *decider) asleep(n muster.Node) bool {
	k := d.Hibernation.of(n.Name)
	return k >= 0 && d.Hibernation.Nodes[k].Attempt == 0 && !d.Hibernation.Nodes[k].Void
}

// setHibernated records what became of a node's memory.
func (d *decider) setHibernated(k int, attempt int64, void bool) {
	h := *d.Hibernation
	h.Nodes = slices.Clone(h.Nodes)
	h.Nodes[k].Attempt, h.Nodes[k].Void = attempt, void
	d.Hibernation = &h
	d.records = append(d.records, SetHibernation{Record: h})
}

// othersRoused reports whether every node but one reports again, or will not go on from its memory.
func (d *decider) othersRoused(but string) bool {
	for _, x := range d.Hibernation.Nodes {
		if x.Name == but || x.Void {
			continue
		}
		if x.Attempt == 0 {
			return false
		}
		for _, n := range d.Nodes {
			if n.Name == x.Name && n.Attempt == x.Attempt && n.Phase != muster.NodeReady && n.NotBefore.IsZero() {
				return false
			}
		}
	}
	return true
}
