package store

import (
	"database/sql"
	"errors"

	"github.com/muster-hpc/muster"
)

func noNode(id muster.ClusterID, name string) *muster.Error {
	return muster.Errorf(muster.ENotFound, "there is no node %q in cluster %q", name, id).
		WithHint("`muster show %s` shows its nodes", id)
}

// Nodes returns the nodes of a cluster in index order, also those that are
// gone.
func (tx *Tx) Nodes(id muster.ClusterID) ([]muster.Node, error) {
	if _, err := tx.Cluster(id); err != nil {
		return nil, err
	}
	return tx.nodes(`cluster = ? ORDER BY idx, n`, string(id))
}

// NodesOf returns the nodes of several clusters at once. Clusters that the
// actor cannot see are left out.
func (tx *Tx) NodesOf(ids ...muster.ClusterID) (map[muster.ClusterID][]muster.Node, error) {
	out := make(map[muster.ClusterID][]muster.Node, len(ids))
	for len(ids) > 0 {
		part := ids[:min(chunk, len(ids))]
		ids = ids[len(part):]
		cond, args := scopeUsed(tx.who, "cluster")
		for _, id := range part {
			args = append(args, string(id))
		}
		for n := len(part); n < chunk; n++ { // one text for every number
			args = append(args, string(part[0]))
		}
		list, err := tx.nodes(cond+` AND cluster IN (`+marks(chunk)+`) ORDER BY cluster, idx, n`, args...)
		if err != nil {
			return nil, err
		}
		for _, n := range list {
			out[n.Cluster] = append(out[n.Cluster], n)
		}
	}
	return out, nil
}

// Node returns one node.
func (tx *Tx) Node(id muster.ClusterID, name string) (muster.Node, error) {
	if tx.who.Admin {
		if n, ok := recalled(tx.s, nodeKeyOf(id, name), func(*recall) (muster.Node, bool) { return tx.s.db.live.get(nodeKey{id, name}) }); ok {
			return cloneNode(n), tx.s.usable(false)
		}
	}
	list, err := tx.nodes(`cluster = ? AND name = ?`, string(id), name)
	if err != nil {
		return muster.Node{}, err
	}
	if len(list) == 0 {
		return muster.Node{}, noNode(id, name)
	}
	return list[0], nil
}

// nodes reads rows and leaves out those that the actor may not see.
func (tx *Tx) nodes(cond string, args ...any) ([]muster.Node, error) {
	list, _, err := tx.nodesRev(cond, args...)
	return list, err
}

// nodesRev reads rows and leaves out those that the actor may not see. It
// tells the newest revision among them, too.
func (tx *Tx) nodesRev(cond string, args ...any) (list []muster.Node, newest int64, err error) {
	guest, more := guestOf(tx.who, "cluster")
	err = tx.s.each(func(r *sql.Rows) error {
		var cluster, name, owner, project, phase, doc string
		var machine sql.NullString
		var sum, rev int64
		var guest bool
		if err := r.Scan(&cluster, &name, &owner, &project, &phase, &machine, &rev, &sum, &doc, &guest); err != nil {
			return err
		}
		newest = max(newest, rev)
		if !allowed(tx.who, read, record{kind: "node", owner: owner, project: project, guest: guest}) {
			return nil
		}
		key := nodeKey{muster.ClusterID(cluster), name}
		if n, ok := tx.s.db.live.at(key, rev); ok {
			list = append(list, cloneNode(n))
			return nil
		}
		what := "the record of node " + name + " of " + cluster
		n, err := decode(nodeDoc, what, doc, sum)
		if err != nil {
			return err
		}
		if string(n.Cluster) != cluster || n.Name != name || string(n.Phase) != phase || string(n.Machine) != machine.String {
			return corrupt(what, errors.New("row and document disagree"))
		}
		if !tx.s.write { // else it may never be committed
			tx.s.db.live.read(liveNode{rev, cloneNode(n)}, tx.s.swept)
		}
		list = append(list, n)
		return nil
	}, `SELECT cluster, name, owner, project, phase, machine, rev, sum, doc, `+guest+` FROM nodes WHERE `+cond, append(more, args...)...)
	return list, newest, err
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
	old, err := tx.Node(n.Cluster, n.Name)
	if err != nil && muster.CodeOf(err) != muster.ENotFound {
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
	return tx.log(muster.Audit{Owner: c.Owner, Project: c.Project, Cluster: c.ID, Kind: "node", Object: n.Name,
		From: string(old.Phase), To: string(n.Phase), Text: text, Reconfigures: news != ""})
}

func (tx *Tx) writeNode(n, old muster.Node, c muster.Cluster) error {
	doc, sum, err := encode(nodeDoc, &n)
	if err != nil {
		return err
	}
	if old.Name == "" {
		rev := tx.s.nodeRev(n.Cluster)
		tx.s.changes(nodeKeyOf(n.Cluster, n.Name), nodeKeyOf(n.Cluster, ""))
		_, err = tx.s.exec(`INSERT INTO nodes (cluster, name, owner, project, idx, phase, machine, rev, sum, doc)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			string(n.Cluster), n.Name, c.Owner, c.Project, n.Index, string(n.Phase), null(n.Machine), rev, sum, doc)
		if err == nil {
			tx.s.nodes = append(tx.s.nodes, liveNode{rev, cloneNode(n)})
		}
		return err
	}
	if n.Phase == old.Phase { // else it certainly changed
		if before, _, err := encode(nodeDoc, &old); err == nil && before == doc {
			return nil
		}
	}
	rev := tx.s.nodeRev(n.Cluster)
	tx.s.changes(nodeKeyOf(n.Cluster, n.Name), nodeKeyOf(n.Cluster, ""))
	_, err = tx.s.exec(`UPDATE nodes SET idx = ?, phase = ?, machine = ?, rev = ?, sum = ?, doc = ? WHERE cluster = ? AND name = ?`,
		n.Index, string(n.Phase), null(n.Machine), rev, sum, doc, string(n.Cluster), n.Name)
	if err == nil { // only what was written is remembered, whatever the caller makes of the error
		tx.s.nodes = append(tx.s.nodes, liveNode{rev, cloneNode(n)})
	}
	return err
}
