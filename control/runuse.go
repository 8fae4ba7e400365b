package control

import (
	"context"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/program"
	"github.com/muster-hpc/muster/internal/nodeset"
	"github.com/muster-hpc/muster/store"
)

// RunUse samples how busy nodes are while programs run there.
type RunUse interface {
	// Watch has the nodes of a cluster sampled for a run until then, or until it ends.
	Watch(cluster muster.ClusterID, run muster.ProgramRunID, now, until time.Time)
	// Claim says in which nodes it is, Claimed whether that was said.
	Claim(cluster muster.ClusterID, run muster.ProgramRunID, nodes []string)
	Claimed(cluster muster.ClusterID, run muster.ProgramRunID) bool
	// Reached reports whether these nodes have said all up to then.
	Reached(cluster muster.ClusterID, nodes []string, at time.Time) bool
	// End is what was sampled from one time to another.
	End(cluster muster.ClusterID, run muster.ProgramRunID, nodes []string, from, to time.Time) []muster.UseSeries
}

const (
	// runShortest is how long a program runs at least for its seconds to be of use.
	runShortest = 2 * time.Second
	// lastSeconds is how long the end of a run waits for the last of them. Agents are asked, and
	// answer at once.
	lastSeconds = time.Second
	// mostAsked is how many nodes are asked out of turn: of more, the last seconds may be missing.
	mostAsked = 64
)

// watchRun has the nodes of a run sampled, from the moment at which its job is submitted: it may be
// over before anybody looks.
func (s *Service) watchRun(ctx context.Context, run muster.ProgramRun) {
	if s.RunUse == nil {
		return
	}
	s.expectRun(run)
	if s.Speak != nil {
		names := s.nodesOfRun(ctx, run)
		for _, name := range names[:min(len(names), mostAsked)] {
			s.Speak(run.Cluster, name)
		}
	}
}

// expectRun says until when a run must have ended, if it begins soon: each look says it anew.
func (s *Service) expectRun(run muster.ProgramRun) {
	now := s.Clock.Now()
	s.RunUse.Watch(run.Cluster, run.ID, now, now.Add(program.JobTime(muster.Program{ProgramSpec: run.Spec}, time.Duration(run.Timeout))+5*time.Minute))
}

// nodesOfRun are the names of the compute nodes of its cluster. What cannot be read has none:
// nothing depends on it.
func (s *Service) nodesOfRun(ctx context.Context, run muster.ProgramRun) (names []string) {
	_ = s.Store.View(ctx, muster.System(), func(tx *store.Tx) error {
		nodes, err := tx.Nodes(run.Cluster)
		for _, n := range nodes {
			if n.Role == muster.RoleCompute {
				names = append(names, n.Name)
			}
		}
		return err
	})
	return names
}

// seeRun notes where a run is that goes on.
func (s *Service) seeRun(ctx context.Context, run muster.ProgramRun, r program.Report) {
	if s.RunUse == nil || s.RunUse.Claimed(run.Cluster, run.ID) {
		return
	}
	s.expectRun(run)
	if !r.Running() {
		return
	}
	if where, err := nodeset.Parse(r.Where); err == nil { // it comes from a node: only those that there are
		nodes := slices.DeleteFunc(s.nodesOfRun(ctx, run), func(name string) bool { return !where.Contains(name) })
		s.RunUse.Claim(run.Cluster, run.ID, nodes)
	}
}

// endRun is how busy the nodes of a run were, that has ended.
func (s *Service) endRun(ctx context.Context, run muster.ProgramRun, r program.Report) []muster.UseSeries {
	if s.RunUse == nil {
		return nil
	}
	took := r.Ended.Sub(r.Began)
	if r.Began.IsZero() || r.Ended.IsZero() || took < runShortest {
		s.RunUse.End(run.Cluster, run.ID, nil, time.Time{}, time.Time{})
		return nil
	}
	in := map[string]bool{}
	for _, name := range run.Nodes {
		in[name] = true
	}
	nodes := slices.DeleteFunc(s.nodesOfRun(ctx, run), func(name string) bool { return !in[name] })
	if len(nodes) <= mostAsked && s.Speak != nil {
		for _, name := range nodes {
			s.Speak(run.Cluster, name)
		}
		s.awaitSeconds(ctx, run.Cluster, nodes, r.Ended.Add(-time.Second))
	}
	return s.RunUse.End(run.Cluster, run.ID, nodes, r.Began, r.Ended)
}

// awaitSeconds waits until nodes have said how busy they were up to then, but not for long.
func (s *Service) awaitSeconds(ctx context.Context, cluster muster.ClusterID, nodes []string, at time.Time) {
	const look = 50 * time.Millisecond
	for range lastSeconds / look {
		if s.RunUse.Reached(cluster, nodes, at) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-s.Clock.After(look):
		}
	}
}
