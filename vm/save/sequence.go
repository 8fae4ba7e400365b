package save

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/muster-hpc/muster"
)

// Sequence saves and resumes the machines of one cluster. One step is made at a time.
type Sequence struct {
	Machines Hypervisor
	Journal  Journal
	// Volumes are what the machines mount over the network; nil: nothing that would lose their locks.
	Volumes Volumes
	// Room refuses a save for whose states there is no room, before a machine is stopped. Nil: there is.
	Room func() error
	// AtOnce is how many machines are written or read at once; 0: all.
	AtOnce int
}

// Save records that the machines of a cluster that lives are to be saved. Step does it.
func (q *Sequence) Save(ctx context.Context, nodes []Node) error {
	r, err := q.Journal.Get(ctx)
	if err != nil {
		return err
	}
	if r.Phase != "" && r.Phase != Live {
		return muster.Errorf(muster.EConflict, "the machines are %s and cannot be saved now", r.Phase).Because(muster.ReasonWrongPhase)
	}
	return q.Journal.Put(ctx, Begin(nodes))
}

// Resume records that saved machines are to go on. Step does it.
func (q *Sequence) Resume(ctx context.Context) error {
	r, err := q.Journal.Get(ctx)
	if err != nil {
		return err
	}
	if r.Phase != Saved {
		return muster.Errorf(muster.EConflict, "the machines are %s and cannot be resumed now", r.Phase).Because(muster.ReasonWrongPhase)
	}
	r.Phase, r.Failed = Loading, ""
	return q.Journal.Put(ctx, r)
}

// Step does what is next, and reports where the sequence is then. An error that leaves the phase as it was is tried again
// with the next step.
func (q *Sequence) Step(ctx context.Context) (Phase, error) {
	r, err := q.Journal.Get(ctx)
	if err != nil {
		return "", err
	}
	next := r.clone()
	var failed error
	switch r.Phase {
	case Stopping:
		next.Phase, failed = q.to(Saving, GoingOn, q.stop(ctx, &next))
	case Saving:
		next.Phase, failed = q.to(Verifying, GoingOn, q.save(ctx, &next))
	case Verifying:
		next.Phase, failed = q.to(Ending, GoingOn, q.verify(ctx, &next))
	case Ending:
		next.Phase, failed = q.to(Saved, Ending, q.each(&next, 0, func(n *Node) error { return q.Machines.End(ctx, n.Name) }))
	case Loading:
		next.Phase, failed = q.to(Starting, Unloading, q.load(ctx, &next))
	case Unloading:
		next.Phase, failed = q.to(Saved, Unloading, q.unload(ctx, &next))
	case Starting, GoingOn:
		next.Phase, failed = q.to(Erasing, r.Phase, q.goOn(ctx, &next))
	case Erasing:
		next.Phase, failed = q.to(Live, Erasing, q.each(&next, 0, func(n *Node) error {
			n.State = nil
			return q.Machines.Erase(ctx, n.Name)
		}))
	default:
		return r.Phase, nil
	}
	if ctx.Err() != nil {
		return r.Phase, ctx.Err() // what it failed for may be that
	}
	if failed != nil && next.Phase == r.Phase {
		return r.Phase, failed
	}
	if failed != nil {
		next.Failed = failed.Error()
	}
	return next.Phase, errors.Join(failed, q.Journal.Put(ctx, next))
}

func (q *Sequence) to(done, otherwise Phase, err error) (Phase, error) {
	if err != nil {
		return otherwise, err
	}
	return done, nil
}

// each does something with all nodes, so many at once, and waits for all of them.
func (q *Sequence) each(r *Record, atOnce int, f func(n *Node) error) error {
	if atOnce <= 0 {
		atOnce = len(r.Nodes)
	}
	places := make(chan struct{}, max(1, atOnce))
	errs := make([]error, len(r.Nodes))
	var all sync.WaitGroup
	for i := range r.Nodes {
		n := &r.Nodes[i]
		all.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			if err := f(n); err != nil {
				errs[i] = fmt.Errorf("%s: %w", n.Name, err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// stop stops all machines, the head as the last. Their volumes are held before: a server that is killed in between may
// be away for longer than a lease.
func (q *Sequence) stop(ctx context.Context, r *Record) error {
	if q.Room != nil {
		if err := q.Room(); err != nil {
			return err
		}
	}
	if err := q.hold(ctx, false); err != nil {
		return err
	}
	for _, heads := range []bool{false, true} {
		if err := q.each(r, 0, func(n *Node) error {
			if n.Head != heads {
				return nil
			}
			return q.Machines.Stop(ctx, n.Name)
		}); err != nil {
			return err
		}
	}
	return nil
}

func (q *Sequence) save(ctx context.Context, r *Record) error {
	return q.each(r, q.AtOnce, func(n *Node) error {
		s, err := q.Machines.Save(ctx, n.Name)
		if err == nil {
			n.State = &s
		}
		return err
	})
}

// verify is the last before machines are ended: each must still be there, stopped, and what was saved of it whole.
func (q *Sequence) verify(ctx context.Context, r *Record) error {
	return q.each(r, q.AtOnce, func(n *Node) error {
		is, err := q.Machines.Observe(ctx, n.Name)
		switch {
		case err != nil:
			return err
		case is != Stopped:
			return fmt.Errorf("it is %s and should have been stopped", is)
		case n.State == nil:
			return errors.New("nothing was saved of it")
		}
		return q.Machines.Verify(ctx, n.Name, *n.State)
	})
}

// hold has the machines' volumes served by nobody.
func (q *Sequence) hold(ctx context.Context, still bool) error {
	if q.Volumes == nil {
		return nil
	}
	if err := q.Volumes.Hold(ctx, still); err != nil {
		return fmt.Errorf("its volumes: %w", err)
	}
	return nil
}

// serve has the machines' volumes served again, before the first of them goes on.
func (q *Sequence) serve(ctx context.Context, r *Record) error {
	if q.Volumes == nil {
		return nil
	}
	stopped, running := 0, 0
	for _, n := range r.Nodes {
		if n.Lost {
			continue
		}
		is, err := q.Machines.Observe(ctx, n.Name)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", n.Name, err)
		case is == Stopped:
			stopped++
		case is == Running:
			running++
		}
	}
	if err := q.Volumes.Serve(ctx, stopped > 0 && running == 0); err != nil {
		return fmt.Errorf("its volumes: %w", err)
	}
	return nil
}

// load brings every machine to where it was when it was stopped, and leaves all stopped. That their volumes are
// served is part of it: what cannot be must not void the states.
func (q *Sequence) load(ctx context.Context, r *Record) error {
	if err := q.loadAll(ctx, r); err != nil {
		return err
	}
	return q.serve(ctx, r)
}

// unload ends what was loaded.
func (q *Sequence) unload(ctx context.Context, r *Record) error {
	if err := q.hold(ctx, true); err != nil {
		return err
	}
	return q.each(r, 0, func(n *Node) error { return q.Machines.End(ctx, n.Name) })
}

func (q *Sequence) loadAll(ctx context.Context, r *Record) error {
	return q.each(r, q.AtOnce, func(n *Node) error {
		is, err := q.Machines.Observe(ctx, n.Name)
		switch {
		case err != nil:
			return err
		case is == Stopped:
			return nil // before this server was killed
		case is == Running:
			return errors.New("it runs, and nobody let it")
		case is == Partial:
			if err := q.Machines.End(ctx, n.Name); err != nil {
				return err
			}
		}
		if n.State == nil {
			return errors.New("nothing was saved of it")
		}
		return q.Machines.Load(ctx, n.Name, *n.State)
	})
}

// goOn lets all machines go on that are there, the head as the last, and sets their clocks. One that is not there
// any more is lost: no state is read again.
func (q *Sequence) goOn(ctx context.Context, r *Record) error {
	if err := q.serve(ctx, r); err != nil {
		return err
	}
	for _, heads := range []bool{false, true} {
		if err := q.each(r, 0, func(n *Node) error {
			if n.Head != heads || n.Lost {
				return nil
			}
			is, err := q.Machines.Observe(ctx, n.Name)
			switch {
			case err != nil:
				return err
			case is == Gone:
				n.Lost = true
				return nil
			case is == Partial:
				n.Lost = true
				return q.Machines.End(ctx, n.Name)
			case is == Running:
				return nil
			}
			return q.Machines.Continue(ctx, n.Name)
		}); err != nil {
			return err
		}
	}
	return q.each(r, 0, func(n *Node) error {
		if n.Lost {
			return nil
		}
		err := q.Machines.SetClock(ctx, n.Name)
		if err == nil {
			return nil
		}
		if is, look := q.Machines.Observe(ctx, n.Name); look == nil && is == Gone {
			n.Lost = true
			return nil
		}
		return err
	})
}
