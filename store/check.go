package store

import (
	"database/sql"

	"github.com/muster-hpc/muster"
)

// touch remembers machines whose place must make sense when the function ends.
func (s *session) touch(ids ...muster.MachineID) {
	if s.touched == nil {
		s.touched = map[muster.MachineID]bool{}
	}
	for _, id := range ids {
		if id != "" {
			s.touched[id] = true
		}
	}
}

// check verifies, at the end of a function, what holds only once all of its
// changes are made: a machine that is held fills the node that it names, in a
// cluster that may hold machines. Together with the unique indexes this keeps
// a machine in at most one cluster.
func (s *session) check() error {
	if s.broken != nil {
		return s.broken
	}
	for id := range s.touched {
		var cluster string
		var node, phase, machine, clusterPhase sql.NullString
		found := false
		err := s.each(func(r *sql.Rows) error {
			found = true
			return r.Scan(&cluster, &node, &phase, &machine, &clusterPhase)
		}, `SELECT m.cluster, m.node, n.phase, n.machine, c.phase FROM machines AS m
			LEFT JOIN nodes AS n ON n.cluster = m.cluster AND n.name = m.node
			LEFT JOIN clusters AS c ON c.id = m.cluster
			WHERE m.id = ? AND m.cluster IS NOT NULL`, string(id))
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		e := muster.Errorf(muster.EConflict, "machine %s is held by node %s of %s, which does not hold it", id, node.String, cluster).Because(muster.ReasonMachineInUse).
			WithHint("change the machine and the node in one step")
		switch {
		case machine.String != string(id), phase.String == string(muster.NodeGone):
			return e
		case !muster.ClusterPhase(clusterPhase.String).HoldsMachines():
			e.Message = "cluster " + cluster + " is " + clusterPhase.String + " and may not hold machine " + string(id)
			return e
		}
	}
	return nil
}
