package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"

	"github.com/muster-hpc/muster"
)

func noNode(id muster.ClusterID, name string) *muster.Error {
	return muster.Errorf(muster.ENotFound, "there is no node %q in cluster %q", name, id).Because(muster.ReasonNoSuchNode).
		WithHint("`muster show %s` shows its nodes", id)
}

// Nodes returns the nodes of a cluster in index order, also those that are
// gone.
func (tx *Tx) Nodes(id muster.ClusterID) ([]muster.Node, error) {
	if _, err := tx.tenant(id); err != nil {
		return nil, err
	}
	t, err := tx.allNodes(id)
	if err != nil {
		return nil, err
	}
	list, ok := t.all(tx.s, func(n *muster.Node) bool { return n.Cluster == id })
	if !ok {
		return tx.nodes(nil, `cluster = ? ORDER BY idx, name`, string(id))
	}
	for i := range list {
		list[i] = cloneNode(list[i])
	}
	return list, nil
}

// NodesOf returns the nodes of several clusters. Clusters that the actor cannot
// see are left out.
func (tx *Tx) NodesOf(ids ...muster.ClusterID) (map[muster.ClusterID][]muster.Node, error) {
	out := make(map[muster.ClusterID][]muster.Node, len(ids))
	for _, id := range ids {
		list, err := tx.Nodes(id)
		if err != nil && muster.CodeOf(err) != muster.ENotFound {
			return nil, err
		}
		if len(list) > 0 {
			out[id] = list
		}
	}
	return out, nil
}

// Node returns one node.
func (tx *Tx) Node(id muster.ClusterID, name string) (muster.Node, error) {
	_, err := tx.tenant(id)
	if muster.CodeOf(err) == muster.ENotFound {
		err = noNode(id, name)
	}
	if err != nil {
		return muster.Node{}, err
	}
	n, err := tx.rawNode(id, name)
	if err == nil && n.Name == "" {
		err = noNode(id, name)
	}
	return n, err
}

// rawNode is a node, whoever asks; empty when there is none.
func (tx *Tx) rawNode(id muster.ClusterID, name string) (muster.Node, error) {
	k := nodeKey{id, name}
	if n, ok := pending[muster.Node](tx.s, k); ok {
		return cloneNode(n), tx.s.usable(false)
	}
	t, _ := tx.allNodes(id) // that another record is damaged does not matter here
	if n, known := t.find(tx.s, k); known {
		return cloneNode(n), nil
	}
	list, err := tx.nodes(nil, `cluster = ? AND name = ?`, string(id), name)
	if err != nil || len(list) == 0 {
		return muster.Node{}, err
	}
	return list[0], nil
}

// allNodes returns what the cache has of a cluster's nodes, which it reads when
// it has none; nil: it may not keep them.
func (tx *Tx) allNodes(id muster.ClusterID) (*set[nodeKey, muster.Node], error) {
	if err := tx.s.usable(false); err != nil {
		return nil, err
	}
	c := &tx.s.db.cache
	c.mu.RLock()
	t, lives := c.nodes[id], c.clusters[id].rev > 0
	c.mu.RUnlock()
	if t != nil || !lives || !tx.s.current() {
		return t, nil
	}
	var revs []int64
	list, err := tx.nodes(func(rev int64) { revs = append(revs, rev) }, `cluster = ?`, string(id))
	if err != nil {
		return nil, err
	}
	all := make([]entry[muster.Node], len(list))
	for i, n := range list {
		all[i] = entry[muster.Node]{revs[i], n}
	}
	t = newSet(kind[nodeKey, muster.Node]{
		key:   func(n *muster.Node) nodeKey { return nodeKey{n.Cluster, n.Name} },
		order: func(a, b *muster.Node) int { return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Name, b.Name)) },
	}, all)
	tx.s.keep(func(c *cache) { c.nodes[id] = t })
	return t, nil
}

// NodeNow returns the committed record of a node, from memory if it can: for
// what is asked thousands of times a second. It is Muster's own: whoever is not
// an administrator finds nothing. The record is shared: it is read only.
func (db *DB) NodeNow(ctx context.Context, who muster.Actor, id muster.ClusterID, name string) (n muster.Node, err error) {
	if !who.Admin {
		return n, noNode(id, name)
	}
	if e := db.dead.Load(); e != nil {
		return n, e
	}
	if n, ok := db.cache.node(nodeKey{id, name}); ok {
		return n, nil
	}
	err = db.View(ctx, who, func(tx *Tx) (err error) {
		n, err = tx.Node(id, name)
		return err
	})
	return n, err
}

// nodes reads rows whoever asks; its callers authorize. each, if not nil, is
// told the revision of every result.
func (tx *Tx) nodes(each func(rev int64), cond string, args ...any) (list []muster.Node, err error) {
	err = tx.s.each(func(r *sql.Rows) error {
		var cluster, name, phase, doc string
		var machine sql.NullString
		var sum, rev int64
		if err := r.Scan(&cluster, &name, &phase, &machine, &rev, &sum, &doc); err != nil {
			return err
		}
		what := "the record of node " + name + " of " + cluster
		n, err := decode(nodeDoc, what, doc, sum)
		if err != nil {
			return err
		}
		if string(n.Cluster) != cluster || n.Name != name || string(n.Phase) != phase || string(n.Machine) != machine.String {
			return corrupt(what, errors.New("row and document disagree"))
		}
		if each != nil {
			each(rev)
		}
		list = append(list, n)
		return nil
	}, `SELECT cluster, name, phase, machine, rev, sum, doc FROM nodes WHERE `+cond, args...)
	return list, err
}

// PutNode inserts or changes a node of a cluster that exists. A change of
// phase is checked against the transition table and leaves an audit line; so
// does a text. PhaseSince is filled in where the caller left it.
//
// Errors: ENotFound if the actor may not change the cluster, EConflict for a
// transition that the table does not have or a machine that fills another node.
func (tx *Tx) PutNode(n muster.Node, text string) error {
	if err := tx.s.usable(true); err != nil {
		return err
	}
	if n.Name == "" {
		return defect("a node needs a name")
	}
	if err := checkText(n.Name, string(n.Machine)); err != nil {
		return err
	}
	c, err := tx.tenant(n.Cluster)
	if err != nil {
		return err
	}
	if err := authorize(tx.who, write, clusterRecord(tx.who, c), noCluster(string(n.Cluster))); err != nil {
		return err
	}
	old, err := tx.rawNode(n.Cluster, n.Name)
	if err != nil {
		return err
	}
	if !old.Phase.CanBecome(n.Phase) || n.Phase == "" {
		return badTransition("node", n.Name+" of "+string(n.Cluster), string(old.Phase), string(n.Phase))
	}
	if n.Phase != old.Phase && n.PhaseSince.Equal(old.PhaseSince) {
		n.PhaseSince = tx.now()
	}
	tx.s.touch(old.Machine, n.Machine)
	if err := tx.writeNode(n, old, c); err != nil {
		return err
	}
	news := reconfigures(n, old)
	if n.Phase == old.Phase && text == "" {
		text = news
	}
	if n.Phase == old.Phase && text == "" {
		return nil
	}
	return tx.log(muster.Audit{Owner: c.Owner, Project: c.Project, Cluster: c.ID, Kind: muster.AuditNode, Object: n.Name,
		From: string(old.Phase), To: string(n.Phase), Text: text, Reconfigures: news != ""})
}

func (tx *Tx) writeNode(n, old muster.Node, c muster.Cluster) error {
	doc, sum, err := encode(nodeDoc, &n)
	if err != nil {
		return err
	}
	if old.Name != "" && n.Phase == old.Phase { // else it certainly changed
		if before, _, err := encode(nodeDoc, &old); err == nil && before == doc {
			return nil
		}
	}
	rev := tx.s.nextRev()
	if old.Name == "" {
		_, err = tx.s.exec(`INSERT INTO nodes (cluster, name, owner, project, idx, phase, machine, rev, sum, doc)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			string(n.Cluster), n.Name, c.Owner, c.Project, n.Index, string(n.Phase), null(n.Machine), rev, sum, doc)
	} else {
		_, err = tx.s.exec(`UPDATE nodes SET idx = ?, phase = ?, machine = ?, rev = ?, sum = ?, doc = ? WHERE cluster = ? AND name = ?`,
			n.Index, string(n.Phase), null(n.Machine), rev, sum, doc, string(n.Cluster), n.Name)
	}
	if err == nil { // only what was written is remembered, whatever the caller makes of the error
		tx.s.changed(nodeKey{n.Cluster, n.Name}, entry[muster.Node]{rev, cloneNode(n)})
	}
	return err
}
