package allocate

import (
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
)

// Given is a machine's record once a node has it, from at on. It is not started yet.
func Given(m muster.Machine, cluster muster.ClusterID, node string, at time.Time) muster.Machine {
	m.Phase, m.PhaseSince, m.Cluster, m.Node, m.Attempt = muster.MachineAllocated, at, cluster, node, 0
	return m
}

// Assign gives the machines of a plan to nodes, inside tx, after making certain that
// the plan still holds. nodes are those of the plan, in its order, complete but for
// what comes of their machines; Assign records them and returns them so.
//
// Stale reports whether the error is that the site has changed since the plan was made.
func (a *Allocator) Assign(tx *store.Tx, plan muster.Plan, nodes []muster.Node) ([]muster.Node, error) {
	if len(nodes) != len(plan.Assign) {
		return nil, muster.Errorf(muster.EInternal, "%d nodes for a plan of %d", len(nodes), len(plan.Assign))
	}
	sys, now := tx.AsSystem(), a.Clock.Now()
	machines := make([]muster.Machine, 0, len(nodes))
	for _, as := range plan.Assign {
		m, err := sys.Machine(as.Machine)
		if muster.CodeOf(err) == muster.ENotFound {
			continue // Verify tells
		}
		if err != nil {
			return nil, err
		}
		machines = append(machines, m)
	}
	if err := a.placer.Verify(plan, machines); err != nil {
		return nil, staleError{err}
	}
	if len(nodes) > 0 {
		if err := a.verifyTimes(sys, plan, nodes[0].Cluster, now); err != nil {
			return nil, err
		}
	}
	for i, m := range machines { // all are there, in order
		n := nodes[i]
		n.Phase, n.PhaseSince, n.Machine, n.Management = muster.NodeAssigned, now, m.ID, m.Facts.Management
		err := sys.PutMachine(Given(m, n.Cluster, n.Name, now), "")
		if store.PartTaken(err) {
			return nil, staleError{err}
		}
		if err != nil {
			return nil, err
		}
		if err := sys.PutNode(n, ""); err != nil {
			return nil, err
		}
		nodes[i] = n
	}
	return nodes, nil
}

// staleError wraps the refusal of a plan that no longer holds.
type staleError struct{ error }

func (e staleError) Unwrap() error { return e.error }

// Stale reports whether an error of Assign, unwrapped, is that the site has changed
// since the plan was made: ask again.
func Stale(err error) bool {
	e, ok := err.(staleError) //nolint:errorlint // made here, never wrapped
	return ok && muster.CodeOf(e.error) == muster.EConflict
}
