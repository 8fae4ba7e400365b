package store

import (
	"database/sql"

	"github.com/muster-hpc/muster"
)

// Counts reports how many records there are, without reading them.
type Counts struct {
	Clusters map[muster.ClusterPhase]int // that the actor may see
	Machines map[muster.MachinePhase]int
	// Nodes of living clusters that the actor may see.
	Nodes map[muster.ClusterID]map[muster.NodePhase]int
	// Heads are the machines that fill the node with the head.
	Heads map[muster.ClusterID]muster.MachineID
}

// Count counts what the actor may see.
func (tx *Tx) Count() (Counts, error) {
	out := Counts{
		Clusters: map[muster.ClusterPhase]int{}, Machines: map[muster.MachinePhase]int{},
		Nodes: map[muster.ClusterID]map[muster.NodePhase]int{}, Heads: map[muster.ClusterID]muster.MachineID{},
	}
	cond, args := scopeUsed(tx.who, "id")
	err := tx.s.each(func(r *sql.Rows) error {
		var phase muster.ClusterPhase
		var n int
		err := r.Scan(&phase, &n)
		out.Clusters[phase] = n
		return err
	}, `SELECT phase, count(*) FROM clusters WHERE `+cond+` GROUP BY phase`, args...)
	if err != nil {
		return out, err
	}
	cond, args = scopeUsed(tx.who, "cluster")
	err = tx.s.each(func(r *sql.Rows) error {
		var id muster.ClusterID
		var phase muster.NodePhase
		var n int
		if err := r.Scan(&id, &phase, &n); err != nil {
			return err
		}
		if out.Nodes[id] == nil {
			out.Nodes[id] = map[muster.NodePhase]int{}
		}
		out.Nodes[id][phase] = n
		return nil
	}, `SELECT cluster, phase, count(*) FROM nodes WHERE `+cond+` AND phase <> 'gone' GROUP BY cluster, phase`, args...)
	if err != nil {
		return out, err
	}
	err = tx.s.each(func(r *sql.Rows) error {
		var id muster.ClusterID
		var machine muster.MachineID
		err := r.Scan(&id, &machine)
		out.Heads[id] = machine
		return err
	}, `SELECT cluster, machine FROM nodes WHERE `+cond+` AND phase <> 'gone' AND idx = 0 AND machine IS NOT NULL`, args...)
	if err != nil || tx.who.Name == "" {
		return out, err
	}
	return out, tx.s.each(func(r *sql.Rows) error {
		var phase muster.MachinePhase
		var n int
		err := r.Scan(&phase, &n)
		out.Machines[phase] = n
		return err
	}, `SELECT phase, count(*) FROM machines GROUP BY phase`)
}
