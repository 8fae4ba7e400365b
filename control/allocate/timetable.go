package allocate

import (
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/calendar"
)

// soon is when something should be over that is late already.
const soon = 5 * time.Second

// repairKept is how long machines that a repair takes next are not counted on.
const repairKept = time.Hour

// timetable is the calendar of what binds: clusters that have machines, promises, and
// maintenance.
func (s *Site) timetable(windows []muster.MaintenanceWindow) *calendar.Timetable {
	now := s.snap.Now
	t := calendar.New(now, s.snap.Machines, s.placer)
	gives := make(map[muster.ClusterID]time.Time, len(s.clusters))
	for id, c := range s.clusters {
		if c.Phase.HoldsMachines() {
			gives[id] = s.gives(c)
		}
	}
	for i := range s.snap.Machines {
		m := &s.snap.Machines[i]
		switch {
		case m.Cluster != "":
			t.Block(m.ID, now, gives[m.Cluster])
		case m.Phase == muster.MachineNew, m.Phase == muster.MachineCleaning:
			t.Block(m.ID, now, notBefore(now, m.PhaseSince.Add(s.turnover.clean(m.Facts.Class))))
		}
	}
	for id := range s.snap.ReservedForRepair {
		t.Block(id, now, now.Add(repairKept))
	}
	for _, c := range s.clusters {
		if p := c.PromiseAhead(); p != nil {
			take, give := s.promised(p)
			t.Take(p.Plan, take, give)
		}
	}
	for _, w := range windows {
		for _, id := range w.Machines {
			t.Block(id, w.From, w.Until)
		}
	}
	return t
}

// promised is when a promise has its machines.
func (s *Site) promised(p *muster.Promise) (take, give time.Time) {
	_, turn := s.turnover.of(p.Plan.Class)
	return p.Start.Add(-time.Duration(p.Lead)), p.End.Add(turn)
}

// gives is when others can have the machines of a cluster; zero: never, as far as is known.
func (s *Site) gives(c *muster.Cluster) time.Time {
	now := s.snap.Now
	lead, turn := s.turnover.of(c.Class)
	switch {
	case c.Phase == muster.ClusterDeleting, c.Phase == muster.ClusterFailed:
		return notBefore(now, c.PhaseSince.Add(turn))
	case !c.Ending.IsZero():
		return notBefore(now, c.Ending.Add(turn))
	case c.Phase == muster.ClusterPausing && !c.KeepsMachines():
		return notBefore(now, c.PhaseSince.Add(turn)) // its jobs may take longer: nobody knows
	case c.Pause != nil && c.Phase == muster.ClusterReady && !c.KeepsMachines():
		return notBefore(now, c.Pause.At).Add(turn)
	case c.Spec.Priority == muster.PriorityScavenger, c.Benchmark:
		return notBefore(now, now.Add(turn))
	case !c.Expires.IsZero():
		return notBefore(now, c.Expires).Add(turn)
	case c.Promise != nil: // it is being built for it
		return notBefore(now, c.Promise.End).Add(turn)
	case c.Spec.Walltime > 0:
		begun := c.BuildStarted
		if begun.IsZero() {
			begun = c.PhaseSince
		}
		return notBefore(now, begun.Add(lead)).Add(time.Duration(c.Spec.Walltime) + turn)
	}
	return time.Time{}
}

// notBefore is at, or soon where that is over.
func notBefore(now, at time.Time) time.Time {
	if at.Before(now) {
		return now.Add(soon)
	}
	return at
}

// scavengers are the clusters on machines of a plan that are ended when somebody needs them.
func (s *Site) scavengers(plan muster.Plan) (list []muster.ClusterID) {
	for _, as := range plan.Assign {
		j, ok := s.snap.Times.Place(as.Machine, len(s.snap.Machines))
		if !ok {
			continue
		}
		id := s.snap.Machines[j].Cluster
		if c := s.clusters[id]; c != nil && c.Spec.Priority == muster.PriorityScavenger && c.Ending.IsZero() && c.Phase != muster.ClusterDeleting && !slices.Contains(list, id) {
			list = append(list, id)
		}
	}
	return list
}

// turnOf is the longest time until others have the machines of clusters.
func (s *Site) turnOf(list []muster.ClusterID) (most time.Duration) {
	for _, id := range list {
		_, turn := s.turnover.of(s.clusters[id].Class)
		most = max(most, turn)
	}
	return most
}
