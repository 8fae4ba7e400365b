package measure

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
)

// reserveFor is how long the scheduler may take to keep jobs away from nodes: its
// head asks it every ten seconds at the latest.
const reserveFor = 30 * time.Second

// reserve waits until the scheduler gives the nodes no jobs that are not to have
// any. EConflict: a job began there before it could be kept away.
func (j *job) reserve(ctx context.Context, s *subject) error {
	if len(s.m.Reserve) == 0 || j.r.c.Scheduler == nil {
		return nil
	}
	end := j.r.c.Clock.Now().Add(reserveFor)
	for {
		busy, known := j.busy(s)
		switch {
		case known && len(busy) == 0:
			return nil
		case j.r.c.Clock.Now().Before(end):
		case !known:
			return muster.Errorf(muster.EUnavailable, "the scheduler does not answer, and would give jobs to what is measured").Because(muster.ReasonNotMeasured).
				WithHint("see `muster show %s`; --force measures beside jobs", s.cluster.Name)
		default:
			return muster.Errorf(muster.EConflict, "a job runs on %s", strings.Join(busy, ", ")).Because(muster.ReasonJobsRun).
				WithHint("measure again when it is done, or with --force")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-j.r.c.Clock.After(200 * time.Millisecond):
		}
		if err := j.r.c.Store.View(ctx, muster.System(), func(tx *store.Tx) error { return s.current(tx) }); err != nil {
			return err
		}
	}
}

// busy are the reserved nodes to which the scheduler still gives jobs, or on which
// one runs. It is not known while the head does not speak.
func (j *job) busy(s *subject) (busy []string, known bool) {
	state := j.r.c.Scheduler(s.head)
	if state == nil || !state.Up {
		return nil, false
	}
	for _, name := range s.m.Reserve {
		switch word := strings.ToLower(strings.TrimRight(state.Nodes[name], "*")); word {
		case "drained", "down", "": // "": it does not know it
		default:
			busy = append(busy, name)
		}
	}
	return busy, true
}

// withoutPartners goes on with those that joined alone, because jobs run on those
// that they were to be measured beside.
func (j *job) withoutPartners(ctx context.Context, s *subject) error {
	var names []string
	for _, n := range s.m.Nodes {
		if !slices.Contains(s.m.Partners, n) {
			names = append(names, n)
		}
	}
	return j.note(ctx, s, func(m *muster.Measurement) {
		m.Of = muster.DigestOfNodes(slices.DeleteFunc(slices.Clone(s.nodes), func(n muster.Node) bool { return !slices.Contains(names, n.Name) }))
		m.Nodes, m.Partners, m.Reserve = names, nil, nil
	})
}
