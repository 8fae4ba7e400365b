package control

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/admit"
	"github.com/muster-hpc/muster/control/allocate"
	"github.com/muster-hpc/muster/control/converge"
	"github.com/muster-hpc/muster/control/spec"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// Pause gives the machines of a cluster back and keeps everything else: now, or at a time,
// with a promise of its return where that is asked.
func (s *Service) Pause(ctx context.Context, who muster.Actor, ref string, r wire.PauseRequest) (wire.Paused, error) {
	p, err := s.readPause(who, r)
	if err != nil {
		return wire.Paused{}, err
	}
	c, jobs, running, err := s.pausable(ctx, who, ref, &p)
	if err != nil {
		return wire.Paused{}, err
	}
	out := wire.Paused{ID: c.ID, Name: c.Name, Status: c.Phase, DryRun: r.DryRun, Jobs: jobs, Running: running, At: p.At, Until: p.Until, Lost: []string{
		"files on the disks of its nodes and in /tmp: what is in /home and on volumes stays",
		"what root changed by hand on its nodes",
	}}
	if p.OnPause.KeepsMachines() {
		out.KeepsMachines, out.Expires, out.Lost = true, c.Expires, []string{}
	}
	if p.OnPause == muster.PauseHibernate {
		out.Lost = []string{
			"connections from outside the cluster to its nodes",
			"locks of files on volumes, where the pause lasts longer than half a minute: their holders get an error",
			"all that runs on a machine that does not come back at the first try: it is started anew",
		}
	}
	if p.OnPause == muster.PauseSave {
		memory, takes, err := s.saveEstimate(ctx, c)
		if err == nil && s.RoomForStates != nil && !p.At.After(p.Asked) {
			err = s.RoomForStates(memory)
		}
		if err != nil {
			return out, err
		}
		out.Memory, out.Takes = memory, muster.Duration(takes)
		out.Lost = append([]string{"connections from outside the cluster to its nodes"}, s.lostLocks(c)...)
	}
	if r.DryRun {
		return out, nil
	}
	if err := mayLose(c, p, jobs); err != nil {
		return out, err
	}
	if p.Until.IsZero() || c.Expires.IsZero() || p.OnPause.KeepsMachines() { // without an end no time can be promised
		err = s.Store.Update(ctx, who, func(tx *store.Tx) error { return s.recordPause(tx, &c, p, nil) })
	} else {
		err = s.pauseUntil(ctx, who, &c, p)
		out.Promised = err == nil
	}
	if err != nil {
		return out, err
	}
	s.Changed(c.ID)
	out.Status = c.Phase
	return out, nil
}

// lostLocks says which locks of files a cluster loses that is saved.
func (s *Service) lostLocks(c muster.Cluster) []string {
	const after = ", where the pause lasts longer than half a minute: their holders get an error"
	if s.KeepsLocks == nil || !s.KeepsLocks(c.ID) {
		return []string{"locks of files on volumes" + after}
	}
	var at []string
	for _, v := range c.Spec.Volumes {
		at = append(at, v.Target)
	}
	if len(at) == 0 {
		return nil
	}
	return []string{"locks of files on volumes that other clusters may mount, too (" + strings.Join(at, ", ") + ")" + after}
}

// readPause judges what a pause says.
func (s *Service) readPause(who muster.Actor, r wire.PauseRequest) (muster.Pause, error) {
	now := s.Clock.Now()
	p := muster.Pause{By: who.Name, Asked: now, Lose: r.LoseRunning}
	var problems []muster.Problem
	add := func(field string, why muster.Reason, message, hint string) {
		problems = append(problems, muster.Problem{Field: field, Reason: why, Message: message, Hint: hint})
	}
	read := func(field, text string, to *time.Time) {
		if text == "" {
			return
		}
		at, err := spec.ParseTime(text, now)
		var bad *muster.Error
		switch {
		case errors.As(err, &bad):
			problems = append(problems, bad.In(field))
		case at.Before(now):
			add(field, muster.ReasonOutOfRange, at.UTC().Format(time.RFC3339)+" is over", "write a time that is to come, such as +2h")
		default:
			*to = at.UTC()
		}
	}
	read("at", r.At, &p.At)
	read("until", r.Until, &p.Until)
	read("wait_until", r.WaitUntil, &p.WaitUntil)
	var bad *muster.Problem
	if p.OnPause, bad = spec.ParseOnPause(r.OnPause); bad != nil {
		problems = append(problems, *bad)
	}
	if p.OnPause != "" && p.OnPause != muster.PauseWait && r.WaitUntil != "" {
		add("wait_until", muster.ReasonContradiction, string(p.OnPause)+" waits for nothing", "leave out one of them")
	}
	begin := now
	if p.At.After(now) {
		begin, p.Lose = p.At, true // what runs at a later time nobody knows
	}
	if !p.WaitUntil.IsZero() && !p.WaitUntil.After(begin) {
		add("wait_until", muster.ReasonContradiction, "the wait is over before the pause begins", "write a later time")
	}
	if !p.Until.IsZero() && !p.Until.After(begin) {
		add("until", muster.ReasonContradiction, "the cluster would be back before the pause begins", "write a later time")
	}
	if e := spec.Error(problems); e != nil {
		return p, e
	}
	return p, nil
}

// pausable finds a cluster that may be paused, the jobs that do not survive it, and the others that
// run. What nobody said of the pause is as the cluster's request says.
func (s *Service) pausable(ctx context.Context, who muster.Actor, ref string, p *muster.Pause) (c muster.Cluster, lost, others []wire.PausedJob, err error) {
	err = s.Store.View(ctx, who, func(tx *store.Tx) error {
		if c, err = tx.FindCluster(ref); err != nil {
			return err
		}
		if err := tx.MayChange(c); err != nil {
			return err
		}
		if err := inUse(c, "paused"); err != nil {
			return err
		}
		if !p.At.IsZero() && !c.Expires.IsZero() && !p.At.Before(c.Expires) {
			return muster.Errorf(muster.EInvalid, "cluster %s ends at %s, before the pause would begin", c.Name, c.Expires.UTC().Format(time.RFC3339)).Because(muster.ReasonOutOfRange).
				WithHint("write an earlier time, or extend it")
		}
		nodes, err := tx.Nodes(c.ID)
		if err != nil {
			return err
		}
		if p.OnPause == "" {
			p.OnPause = c.Spec.OnPause
		}
		if p.OnPause == "" || p.OnPause != muster.PauseWait && !p.WaitUntil.IsZero() {
			p.OnPause = muster.PauseWait
		}
		if p.OnPause.KeepsMachines() && !c.Expires.IsZero() && !p.Until.Before(c.Expires) {
			return muster.Errorf(muster.EInvalid, "cluster %s keeps its machines, and ends at %s, before it would go on", c.Name, c.Expires.UTC().Format(time.RFC3339)).Because(muster.ReasonOutOfRange).
				WithHint("write an earlier time, or extend it first")
		}
		if p.OnPause.KeepsMemory() {
			if err := s.keepsMemory(tx, c, nodes, *p); err != nil {
				return err
			}
		}
		for _, n := range nodes {
			if n.Head && n.Machine != "" && s.Scheduler != nil {
				lost, others = pausedJobs(s.Scheduler(n.Machine), *p)
			}
		}
		return nil
	})
	return c, lost, others, err
}

// keepsMemory refuses to freeze or save a cluster whose machines cannot be, or which is in the middle
// of something that would be cut in two.
func (s *Service) keepsMemory(tx *store.Tx, c muster.Cluster, nodes []muster.Node, p muster.Pause) error {
	saves, done := p.OnPause == muster.PauseSave, "frozen"
	hibernates := p.OnPause == muster.PauseHibernate
	if hibernates {
		done = "hibernated"
		if c.Spec.VM != nil {
			return muster.Errorf(muster.EConflict, "the machines of cluster %s are virtual: they are saved, and do not hibernate", c.Name).Because(muster.ReasonCannotHibernate).
				WithHint("write --on-pause save, wait or requeue")
		}
		if c.Spec.OnPause != muster.PauseHibernate {
			return muster.Errorf(muster.EConflict, "the machines of cluster %s keep no room for their memory on their disks", c.Name).Because(muster.ReasonCannotHibernate).
				WithHint("write --on-pause wait, requeue or, of slices, freeze; a cluster of bare machines that is to hibernate says on_pause: hibernate in its request")
		}
	}
	if saves {
		done = "saved"
		if bad := spec.CannotSave(c.Spec.VM); bad != nil {
			return spec.Error([]muster.Problem{*bad})
		}
	}
	for _, n := range nodes {
		if n.Machine == "" || !stays(n) {
			continue
		}
		m, err := tx.AsSystem().Machine(n.Machine)
		if err != nil {
			return err
		}
		can := s.Providers.For(m.Provider, c.Spec.VM)
		switch {
		case hibernates:
			for _, l := range admit.HibernationLacks() {
				if l.Is(&m, can) {
					return muster.Errorf(muster.EConflict, "machine %s of cluster %s cannot hibernate: such machines %s", m.ID, c.Name, l.Text).Because(muster.ReasonCannotHibernate).
						WithHint("write --on-pause wait or requeue")
				}
			}
		case saves && len(m.Facts.VMHost.Given()) > 0:
			var given []string
			for _, d := range m.Facts.VMHost.Given() {
				given = append(given, d.Address)
			}
			return muster.Errorf(muster.EConflict, "machine %s of cluster %s cannot be saved: its virtual machine has devices of its host whole (%s), and nobody can read what these have of it", m.ID, c.Name, strings.Join(given, ", ")).
				Because(muster.ReasonCannotSave).WithHint("write --on-pause wait or requeue; a cluster whose request says on_pause: save gets machines without devices")
		case saves && !can.Saves:
			return muster.Errorf(muster.EConflict, "machine %s of cluster %s cannot be saved by its provider", m.ID, c.Name).Because(muster.ReasonCannotSave).
				WithHint("write --on-pause wait or requeue")
		case !saves && c.Spec.VM != nil && !can.Freezes:
			return muster.Errorf(muster.EConflict, "machine %s of cluster %s cannot be frozen: it is a virtual machine, whose clock would stand", m.ID, c.Name).Because(muster.ReasonCannotFreeze).
				WithHint("write --on-pause save, wait or requeue")
		case !saves && !can.Freezes:
			return muster.Errorf(muster.EConflict, "machine %s of cluster %s cannot be frozen: it is a whole machine", m.ID, c.Name).Because(muster.ReasonCannotFreeze).
				WithHint("write --on-pause wait or requeue")
		}
	}
	switch m := c.Measurement; {
	case c.Scaling != nil:
		return muster.Errorf(muster.EConflict, "cluster %s is being scaled and cannot be %s", c.Name, done).Because(muster.ReasonWrongPhase).WithHint("wait until that is done: muster show %s", c.ID)
	case m != nil && m.Phase.Open():
		return muster.Errorf(muster.EConflict, "cluster %s is being measured and cannot be %s", c.Name, done).Because(muster.ReasonWrongPhase).WithHint("wait until that is done: muster show %s", c.ID)
	}
	return nil
}

// saveEstimate is how much memory a cluster has, of which there must be room for all where it is saved, and how long
// that should take. 0: nobody knows, for none of its class was saved yet.
func (s *Service) saveEstimate(ctx context.Context, c muster.Cluster) (memory int64, takes time.Duration, err error) {
	err = s.Store.View(ctx, muster.System(), func(tx *store.Tx) error {
		nodes, err := tx.Nodes(c.ID)
		if err != nil {
			return err
		}
		var machines []muster.Machine
		for _, n := range nodes {
			if n.Machine == "" || !stays(n) {
				continue
			}
			m, err := tx.Machine(n.Machine)
			if err != nil {
				return err
			}
			machines = append(machines, m)
		}
		memory = converge.SavedMemory(c.Spec, machines)
		took, err := tx.Durations(converge.SaveDuration, c.Class, "", savesKnown)
		if span := converge.SpanOf(took); span.N > 0 {
			takes = time.Duration(float64(span.Median) * float64(memory) / (1 << 30))
		}
		return err
	})
	return memory, takes, err
}

// savesKnown is how many past saves an estimate looks at.
const savesKnown = 20

// pausedJobs are the jobs that a pause ends for good, and the others that run, with what becomes of them.
func pausedJobs(state *wire.SchedulerState, p muster.Pause) (lost, others []wire.PausedJob) {
	if state == nil {
		return nil, nil
	}
	waits := p.OnPause == muster.PauseWait && p.WaitUntil.IsZero()
	fate := "it is told to end, and begins again from the queue"
	switch {
	case p.OnPause.KeepsMemory():
		fate = "it stands still, and goes on where it was"
	case waits:
		fate = "it is waited for"
	case p.OnPause == muster.PauseWait:
		fate = "it is waited for until " + admit.Moment(p.WaitUntil) + ", and then begins again from the queue"
	}
	for _, j := range state.List {
		runs := j.State != "pending" && j.State != "completing" // that has ended already
		why := j.WouldBeLost()
		switch {
		case why != "" && !p.OnPause.KeepsMemory() && (!waits || !runs):
			lost = append(lost, wire.PausedJob{ID: j.ID, User: j.User, Name: j.Name, Why: why})
		case runs:
			others = append(others, wire.PausedJob{ID: j.ID, User: j.User, Name: j.Name, Why: fate})
		}
	}
	return lost, others
}

// mayLose refuses a pause that ends work for good, unless somebody said that it may.
func mayLose(c muster.Cluster, p muster.Pause, jobs []wire.PausedJob) error {
	if len(jobs) == 0 || p.Lose {
		return nil
	}
	e := muster.Errorf(muster.EConflict, "%s of cluster %s would be lost", plaintext.Count(len(jobs), "job"), c.Name).Because(muster.ReasonWouldLoseRunning).
		WithHint("wait until they have ended (one that ended in the last seconds may be listed), or give them up: --lose-running")
	for _, j := range jobs {
		e.Problems = append(e.Problems, muster.Problem{Field: "job " + j.ID, Reason: muster.ReasonWouldLoseRunning, Message: j.Name + " of " + j.User + ": " + j.Why})
	}
	return e
}

// recordPause records a pause: planned, or begun.
func (s *Service) recordPause(tx *store.Tx, c *muster.Cluster, p muster.Pause, promise *muster.Promise) error {
	now, err := tx.Cluster(c.ID)
	if err != nil {
		return err
	}
	if err := tx.MayChange(now); err != nil {
		return err
	}
	if err := inUse(now, "paused"); err != nil {
		return err
	}
	now.Pause, now.Promise = &p, promise
	text := "paused by " + p.By
	if p.At.After(s.Clock.Now()) {
		text = "it will be paused at " + admit.Moment(p.At) + ", as " + p.By + " asked"
		now.Notices = muster.AddNotice(now.Notices, s.Clock.Now(), muster.NoticePause, "the cluster will be paused at "+admit.Moment(p.At))
	} else {
		nodes, err := tx.Nodes(c.ID)
		if err != nil {
			return err
		}
		converge.BeginPause(&now, p, nodes, s.Clock.Now())
		now.Notices = muster.AddNotice(now.Notices, s.Clock.Now(), muster.NoticePause, "the cluster is paused now: no job starts any more")
	}
	if promise != nil {
		text += "; it comes back at " + admit.Moment(promise.Start)
	}
	*c = now
	return tx.PutCluster(now, text)
}

// pauseUntil records a pause together with the promise of its end.
func (s *Service) pauseUntil(ctx context.Context, who muster.Actor, c *muster.Cluster, p muster.Pause) error {
	begin := s.Clock.Now()
	if p.At.After(begin) {
		begin = p.At
	}
	p.At = begin
	as := *c
	as.Pause = &p
	need := as.Spec
	need.Walltime, need.Start, need.Queue = muster.Duration(c.Expires.Sub(begin)), muster.Start{After: p.Until, Before: p.Until}, false
	img := s.imageOf(*c)
	var refused error
	_, err := s.Allocator.Take(ctx, who, allocate.Taking{
		Demands: func(*store.Tx) ([]allocate.Demand, error) {
			return []allocate.Demand{{Cluster: c.ID, Purpose: allocate.Resume, Spec: need, Image: img, As: &as}}, nil
		},
		Record: func(tx *store.Tx, _ []allocate.Demand, answers []muster.Answer) error {
			if refused = refusal(need, answers[0]); refused != nil {
				return refused
			}
			if err := s.recordPause(tx, c, p, answers[0].Promise); err != nil {
				return err
			}
			return s.Allocator.Promised(tx, c.ID, *answers[0].Promise)
		},
	})
	return err
}

// refusal is admit.Refusal as an error.
func refusal(need muster.Spec, a muster.Answer) error {
	if e := admit.Refusal(need, a); e != nil {
		return e
	}
	return nil
}

// imageOf is what a cluster runs; nil: its image is gone.
func (s *Service) imageOf(c muster.Cluster) *muster.Image {
	ref := c.Spec.Image
	if c.Image != "" {
		ref = string(c.Image)
	}
	img, err := s.Config.Images.Resolve(ref)
	if err != nil {
		return nil
	}
	return img
}
