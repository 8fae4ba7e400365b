package allocate

import (
	"fmt"
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/admit"
	"github.com/muster-hpc/muster/store"
)

// maintenance are the windows that are entered.
func (a *Allocator) maintenance(sys *store.Tx) ([]muster.MaintenanceWindow, error) {
	return sys.MaintenanceWindows()
}

// InTheWay tells which promises and clusters have machines of a window in its time, one
// line each.
func (a *Allocator) InTheWay(tx *store.Tx, w muster.MaintenanceWindow) ([]string, error) {
	sys := tx.AsSystem()
	s, err := a.times(sys)
	if err != nil {
		return nil, err
	}
	has := make(map[muster.MachineID]bool, len(w.Machines))
	for _, id := range w.Machines {
		has[id] = true
	}
	var list []string
	held, err := sys.Machines(store.MachineFilter{})
	if err != nil {
		return nil, err
	}
	onIt := map[muster.ClusterID]bool{}
	for _, m := range held {
		if m.Cluster != "" && has[m.ID] {
			onIt[m.Cluster] = true
		}
	}
	for id, c := range s.clusters {
		if onIt[id] && !c.Benchmark {
			if at := s.gives(c); at.IsZero() {
				list = append(list, fmt.Sprintf("cluster %s, which has no end", c.Name))
			} else if at.After(w.From) {
				list = append(list, fmt.Sprintf("cluster %s, which has its machines until %s", c.Name, admit.Moment(at)))
			}
		}
		p := c.PromiseAhead()
		if p == nil || !slices.ContainsFunc(p.Plan.Assign, func(as muster.Assignment) bool { return has[as.Machine] }) {
			continue
		}
		if take, give := s.promised(p); give.After(w.From) && (w.Until.IsZero() || take.Before(w.Until)) {
			list = append(list, fmt.Sprintf("the promise of cluster %s for %s", c.Name, admit.Moment(p.Start)))
		}
	}
	slices.Sort(list)
	return list, nil
}
