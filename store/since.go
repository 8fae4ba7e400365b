package store

import (
	"database/sql"

	"github.com/muster-hpc/muster"
)

// NodesSince returns the nodes of a cluster that changed after a revision, in
// no order, and the newest revision among them and the given one. Asked again
// with that, it returns only what changed meanwhile. After 0 it returns all.
//
// A revision that was read in an Update counts only if that Update committed,
// and only in the process that read it.
func (tx *Tx) NodesSince(id muster.ClusterID, after int64) ([]muster.Node, int64, error) {
	if tx.who.Admin {
		if c, ok := recalled(tx.s, nodeKeyOf(id, ""), func(r *recall) (changes[muster.Node], bool) { return r.nodesSince(id, after) }); ok {
			return c.list, c.newest, tx.s.usable(false)
		}
	}
	if tx.who.Admin && tx.s.db.newest.knowsNodes(id, after) { // it was there when somebody looked
		return nil, after, tx.s.usable(false)
	}
	if _, err := tx.Cluster(id); err != nil {
		return nil, after, err
	}
	list, newest, err := tx.nodesRev(`cluster = ? AND rev > ?`, string(id), after)
	return list, max(after, newest), err
}

// MachinesSince returns the machines of the whole site that changed after a
// revision, in no order, and the newest revision among them and the given one.
func (tx *Tx) MachinesSince(after int64) ([]muster.Machine, int64, error) {
	if tx.who.Admin {
		if c, ok := recalled(tx.s, machineKey(""), func(r *recall) (changes[muster.Machine], bool) { return r.machinesSince(after) }); ok {
			return c.list, c.newest, tx.s.usable(false)
		}
	}
	if tx.s.db.newest.knowsMachines(after) {
		return nil, after, tx.s.usable(false)
	}
	newest := after
	var heads []head
	list, err := tx.rawMachines(func(_ int, h head) {
		heads = append(heads, h)
		newest = max(newest, h.rev)
	}, `rev > ?`, after)
	if err != nil {
		return nil, after, err
	}
	out := list[:0]
	for i, m := range list {
		if allowed(tx.who, read, record{kind: "machine", owner: heads[i].owner, project: heads[i].project}) {
			out = append(out, blank(tx.who, heads[i].owner, heads[i].project, m))
		}
	}
	return out, newest, nil
}

// MachineRevision is the newest revision of any machine.
func (tx *Tx) MachineRevision() (int64, error) {
	var rev sql.NullInt64
	err := tx.s.one([]any{&rev}, `SELECT max(rev) FROM machines`)
	return rev.Int64, err
}
