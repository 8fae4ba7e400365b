package measure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/atomicfile"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// job is one measurement in the making.
type job struct {
	r       *Runner
	cluster muster.ClusterID
	id      string // of the measurement
	cancel  context.CancelFunc
	heard   chan heard
	use     use

	// Of the runner's lock: the order that waits for its outcome, who makes it,
	// and whom to tell when there is another one.
	order     *wire.LaunchOrder
	launcher  string
	receiving bool // its outcome is being written down
	next      chan struct{}
}

// heard is the outcome of a launch.
type heard struct {
	end  wire.LaunchEnd
	path string // of what was printed, removed by who has read it; "": nothing was
}

// errStale ends a job whose measuring is not wanted any more.
var errStale = errors.New("measure: nobody wants it any more")

// tries is how often a launch is made before it counts as failed.
const tries = 2

// maxFailures is after how many failures nothing more is tried, if nothing went well.
const maxFailures = 3

// run measures, and files how that ended. It is false if it could not.
func (j *job) run(ctx context.Context) bool {
	log := j.r.c.Log.With("cluster", j.cluster, "measurement", j.id)
	err := j.measure(ctx)
	j.offer(nil, "")
	var e *muster.Error
	switch {
	case err == nil:
		log.Info("measurement finished")
	case errors.Is(err, errStale):
		log.Info("measurement cancelled")
	case ctx.Err() != nil:
		// The next server goes on, or nobody wants it.
	case errors.As(err, &e):
		log.Warn("measurement failed", "error", err)
		return j.fail(ctx, e)
	default:
		log.Error("measurement failed", "error", err)
		return j.fail(ctx, muster.Errorf(muster.EInternal, "the benchmark run failed").WithHint("look at the server's log, then ask again").Wrap(err))
	}
	return true
}

// measure makes every launch that has no outcome yet, and judges.
func (j *job) measure(ctx context.Context) error {
	s, err := j.load(ctx)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(j.dir(), 0o700); err != nil {
		return muster.Errorf(muster.EUnavailable, "what is measured cannot be kept").Because(muster.ReasonNotMeasured).Wrap(err)
	}
	if err := j.reserve(ctx, s); err != nil {
		if len(s.m.Partners) == 0 || s.m.Trigger == muster.TriggerDeferred || ctx.Err() != nil || errors.Is(err, errStale) {
			return err
		}
		if err := j.withoutPartners(ctx, s); err != nil {
			return err
		}
		if s, err = j.load(ctx); err != nil {
			return err
		}
	}
	j.use.watch(s.nodes)
	if s.m.What == muster.MeasuresHPL {
		return j.hpl(ctx, s)
	}
	steps := s.steps()
	done, failed := j.found(steps, s.m.Done)
	if err := j.note(ctx, s, func(m *muster.Measurement) {
		m.Phase, m.Launches, m.Done, m.Failed = muster.MeasurementRunning, len(steps), done, failed
		if m.Began.IsZero() {
			m.Began = j.r.c.Clock.Now()
		}
		s.m.Began = m.Began
	}); err != nil {
		return err
	}
	if err := j.make(ctx, s, steps, done, failed); err != nil {
		return err
	}
	return j.conclude(ctx, s, steps)
}

// make makes the steps from the first one without an outcome.
func (j *job) make(ctx context.Context, s *subject, steps []step, done, failed int) error {
	p := newPace()
	for i := done; i < len(steps); i++ {
		began := j.r.c.Clock.Now()
		ok, err := j.step(ctx, s, steps[i])
		if err != nil {
			return err
		}
		if !ok {
			failed++
		}
		j.use.gather(s)
		if failed > i && failed >= maxFailures {
			return muster.Errorf(muster.EUnavailable, "no launch came to an end: %s", j.lastFailure(steps[:i+1])).Because(muster.ReasonNotMeasured).
				WithHint("look at `muster logs %s %s`, and measure again with `muster certificate run %s`", s.cluster.Name, s.launcher, s.cluster.Name)
		}
		now := j.r.c.Clock.Now()
		p.add(steps[i], now.Sub(began))
		left, known := p.left(steps[i+1:])
		if err := j.note(ctx, s, func(m *muster.Measurement) {
			m.Done, m.Failed = i+1, failed
			if m.ETA = (time.Time{}); known {
				m.ETA = now.Add(left)
			}
		}); err != nil {
			return err
		}
	}
	return nil
}

// step makes one launch, again if it must be. It is false if it has no outcome
// that counts.
func (j *job) step(ctx context.Context, s *subject, st step) (bool, error) {
	var last string
	for try := range tries {
		id := fmt.Sprintf("%s-%s-%d", j.id, st.name, try)
		order, err := j.orderFor(ctx, s, st, id)
		if err != nil {
			return false, err
		}
		h, err := j.launch(ctx, s, order)
		if err != nil {
			return false, err
		}
		switch {
		case h.end.Exit != 0:
			last = h.end.Error
		default:
			if err := st.verify(h.path, order.Hosts); err == nil {
				return true, os.Rename(h.path, j.kept(st))
			} else if last = err.Error(); muster.CodeOf(err) != muster.EInvalid {
				return false, err
			}
		}
		if h.path != "" {
			_ = os.Remove(h.path)
		}
		j.r.c.Log.Warn("measurement launch failed", "cluster", j.cluster, "launch", id, "error", last)
	}
	// Kept empty: it was tried, and is not tried again.
	return false, atomicfile.Replace(j.failedAt(st), []byte(last), 0o600)
}

// launch executes an order and waits for its outcome.
func (j *job) launch(ctx context.Context, s *subject, o *wire.LaunchOrder) (heard, error) {
	j.offer(o, s.launcher)
	j.r.c.Speak(j.cluster, s.launcher)
	end := j.r.c.Clock.After(time.Duration(o.Limit) + j.r.c.Grace)
	defer j.offer(nil, s.launcher)
	answered := false
	defer func() {
		if !answered {
			j.r.killOrphaned(j.cluster, o.ID, s.launcher)
		}
	}()
	// Whoever executes it may be gone: that is noticed in the records.
	for {
		select {
		case h := <-j.heard:
			if h.end.ID != o.ID { // of one that was given up in the moment it answered
				_ = os.Remove(h.path)
				continue
			}
			answered = true
			return h, nil
		case <-ctx.Done():
			return heard{}, ctx.Err()
		case <-j.r.c.Clock.After(2 * time.Second):
			if err := j.r.c.Store.View(ctx, muster.System(), func(tx *store.Tx) error { return s.current(tx) }); err != nil {
				return heard{}, err
			}
		case <-end:
			return heard{end: wire.LaunchEnd{ID: o.ID, Exit: -1, Error: "the agent of " + s.launcher + " did not say how it went"}}, nil
		}
	}
}

// offer makes an order the one to be executed; nil: none is.
func (j *job) offer(o *wire.LaunchOrder, launcher string) {
	j.r.mu.Lock()
	defer j.r.mu.Unlock()
	j.order, j.launcher = o, launcher
	if j.next != nil && o != nil {
		close(j.next)
		j.next = nil
	}
}

// note changes the record of the measurement, if it is still the one.
func (j *job) note(ctx context.Context, s *subject, change func(*muster.Measurement)) error {
	return j.r.c.Store.Update(ctx, muster.System(), func(tx *store.Tx) error {
		if err := s.current(tx); err != nil {
			return err
		}
		c, err := tx.Cluster(j.cluster)
		if err != nil {
			return err
		}
		m := *c.Measurement
		change(&m)
		c.Measurement = &m
		return tx.PutCluster(c, "")
	})
}

// fail files why there is no certificate. It is false if that could not be.
func (j *job) fail(ctx context.Context, why *muster.Error) bool {
	err := j.r.c.Store.Update(ctx, muster.System(), func(tx *store.Tx) error {
		c, err := tx.Cluster(j.cluster)
		if err != nil || c.Measurement == nil || c.Measurement.ID != j.id || !c.Measurement.Phase.Open() {
			return err
		}
		m := *c.Measurement
		m.Phase, m.Ended, m.ETA = muster.MeasurementFailed, j.r.c.Clock.Now(), time.Time{}
		m.Reason = why.Explained()
		c.Measurement = &m
		return tx.PutCluster(c, "not measured: "+m.Reason.Error())
	})
	if err != nil && ctx.Err() == nil {
		j.r.c.Log.Error("saving measurement result failed", "cluster", j.cluster, "error", err)
	}
	return err == nil
}
