package store

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/muster-hpc/muster"
)

func noCluster(ref string) *muster.Error {
	return muster.Errorf(muster.ENotFound, "there is no cluster %q", ref).Because(muster.ReasonNoSuchCluster).
		WithHint("`muster list` shows the clusters that you can see")
}

func clusterRecord(who muster.Actor, c muster.Cluster) record {
	shared := who.Name != "" && c.Phase != muster.ClusterDeleted && slices.Contains(c.Spec.Users, who.Name)
	return record{kind: "cluster", owner: c.Owner, project: c.Project, sharedWith: shared}
}

// MayChange reports whether the actor may change a cluster that they see.
//
// Errors: EForbidden for one whose user they are, but of another project;
// ENotFound for one that they do not see.
func (tx *Tx) MayChange(c muster.Cluster) error {
	return authorize(tx.who, write, clusterRecord(tx.who, c), noCluster(string(c.ID)))
}

// Cluster returns one cluster, also a deleted one.
func (tx *Tx) Cluster(id muster.ClusterID) (muster.Cluster, error) {
	c, err := tx.rawCluster(id)
	if err != nil {
		return muster.Cluster{}, err
	}
	if err := authorize(tx.who, read, clusterRecord(tx.who, c), noCluster(string(id))); err != nil {
		return muster.Cluster{}, err
	}
	return c, nil
}

// tenant is Cluster for what is written in its name. The record is shared: it
// is read only.
func (tx *Tx) tenant(id muster.ClusterID) (muster.Cluster, error) {
	c, err := tx.rawTenant(id)
	if err == nil {
		err = authorize(tx.who, read, clusterRecord(tx.who, c), noCluster(string(id)))
	}
	if err != nil {
		return muster.Cluster{}, err
	}
	return c, nil
}

// rawTenant is tenant, whoever asks. ENotFound: there is none.
func (tx *Tx) rawTenant(id muster.ClusterID) (muster.Cluster, error) {
	if err := tx.s.usable(false); err != nil {
		return muster.Cluster{}, err
	}
	if c, ok := tx.s.cluster(id); ok {
		return c, nil
	}
	var rev int64
	list, err := tx.clusters(func(_ int, h head) { rev = h.rev }, `id = ?`, string(id))
	if err != nil {
		return muster.Cluster{}, err
	}
	if len(list) == 0 {
		return muster.Cluster{}, noCluster(string(id))
	}
	tx.s.keep(func(c *cache) { c.putCluster(entry[muster.Cluster]{rev, list[0]}) })
	return list[0], nil
}

// rawCluster is rawTenant for who may change the record.
func (tx *Tx) rawCluster(id muster.ClusterID) (muster.Cluster, error) {
	c, err := tx.rawTenant(id)
	return cloneCluster(c), err
}

// Clusters returns the clusters that the actor may see, oldest first.
func (tx *Tx) Clusters(f ClusterFilter) ([]muster.Cluster, error) {
	w := in(tx.usedBy(), "phase", f.Phases).living(f.Living).is("project", f.Project).is("owner", f.Owner)
	if err := w.after("created", ">", f.After); err != nil {
		return nil, err
	}
	w.by("created, n", f.Limit)
	list, err := tx.clusters(nil, w.cond, w.args...)
	if err != nil {
		return nil, err
	}
	out := list[:0]
	for _, c := range list {
		if allowed(tx.who, read, clusterRecord(tx.who, c)) {
			out = append(out, c)
		}
	}
	return out, nil
}

// clusters reads rows whoever asks; its callers authorize.
func (tx *Tx) clusters(each func(int, head), cond string, args ...any) ([]muster.Cluster, error) {
	return load(tx.s, table[muster.ClusterID, muster.Cluster]{
		name: "clusters", doc: clusterDoc,
		same: func(h head, c muster.Cluster) bool {
			return string(c.ID) == h.id && string(c.Phase) == h.phase && c.Owner == h.owner && c.Project == h.project
		},
		known: tx.s.db.cache.clusterAt,
	}, each, cond, args...)
}

// PutCluster inserts or changes a cluster. A change of phase is checked
// against the transition table and leaves an audit line; so does a text.
// PhaseSince and Created are filled in where the caller left them. A cluster
// becomes deleted only when no machine is in it; its secrets go with it.
//
// Errors: ENotFound if the actor may not change it, EConflict for a transition
// that the table does not have, a taken name or network, or machines left.
func (tx *Tx) PutCluster(c muster.Cluster, text string) error {
	if err := tx.s.usable(true); err != nil {
		return err
	}
	if c.ID == "" || c.Name == "" || c.Owner == "" || c.Project == "" {
		return defect("a cluster needs an ID, a name, an owner and a project")
	}
	if err := checkText(string(c.ID), c.Name, c.Owner, c.Project, string(c.Image)); err != nil {
		return err
	}
	if err := authorize(tx.who, write, clusterRecord(tx.who, c), noCluster(string(c.ID))); err != nil {
		return err
	}
	old, err := tx.rawCluster(c.ID)
	if err != nil && muster.CodeOf(err) != muster.ENotFound {
		return err
	}
	if err == nil {
		if err := authorize(tx.who, write, clusterRecord(tx.who, old), noCluster(string(c.ID))); err != nil {
			return err
		}
		if old.Owner != c.Owner || old.Project != c.Project {
			return muster.Errorf(muster.EConflict, "cluster %s belongs to %s in project %s", c.ID, old.Owner, old.Project).Because(muster.ReasonImmutable).
				WithHint("owner and project of a cluster do not change: delete it and make another")
		}
	} else if !tx.who.Admin && c.Owner != tx.who.Name {
		return muster.Errorf(muster.EForbidden, "only an administrator makes clusters for others").Because(muster.ReasonAdminOnly).
			WithHint("make it under your own name")
	}
	if !old.Phase.CanBecome(c.Phase) || c.Phase == "" {
		return badTransition("cluster", string(c.ID), string(old.Phase), string(c.Phase))
	}
	if c.Created.IsZero() {
		c.Created = tx.now()
	}
	if c.Phase != old.Phase && c.PhaseSince.Equal(old.PhaseSince) {
		c.PhaseSince = tx.now()
	}
	if old.Phase.HoldsMachines() && !c.Phase.HoldsMachines() {
		if err := tx.holdsNone(c.ID); err != nil {
			return err
		}
	}
	if c.Phase == muster.ClusterDeleted && old.Phase != c.Phase {
		if c.Deleted.IsZero() {
			c.Deleted = tx.now()
		}
		if err := tx.endCluster(c); err != nil {
			return err
		}
	}
	if err := tx.writeCluster(c, old); err != nil {
		return err
	}
	if err := tx.writeUsers(c, old); err != nil {
		return err
	}
	news := reconfiguresAll(c, old)
	if c.Phase == old.Phase && text == "" {
		text = news
	}
	if c.Phase == old.Phase && text == "" {
		return nil
	}
	return tx.log(muster.Audit{Owner: c.Owner, Project: c.Project, Cluster: c.ID, Kind: muster.AuditCluster, Object: string(c.ID),
		From: string(old.Phase), To: string(c.Phase), Text: text, Reconfigures: news != ""})
}

func (tx *Tx) writeCluster(c, old muster.Cluster) error {
	doc, sum, err := encode(clusterDoc, &c)
	if err != nil {
		return err
	}
	var index any
	if c.NetworkIndex != 0 {
		index = c.NetworkIndex
	}
	rev := tx.s.nextRev()
	if old.ID == "" {
		_, err = tx.s.exec(`INSERT INTO clusters (id, owner, project, name, phase, image, network_index, created, rev, sum, doc)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			string(c.ID), c.Owner, c.Project, c.Name, string(c.Phase), string(c.Image), index, nanos(c.Created), rev, sum, doc)
		if err != nil {
			return err
		}
		return tx.s.wroteCluster(doc, rev)
	}
	if before, _, err := encode(clusterDoc, &old); err == nil && before == doc {
		return nil
	}
	_, err = tx.s.exec(`UPDATE clusters SET name = ?, phase = ?, image = ?, network_index = ?, created = ?, rev = ?, sum = ?, doc = ? WHERE id = ?`,
		c.Name, string(c.Phase), string(c.Image), index, nanos(c.Created), rev, sum, doc, string(c.ID))
	if err != nil {
		return err
	}
	return tx.s.wroteCluster(doc, rev)
}

// wroteCluster notes a cluster as it would be read: the end of its time is a
// time of day, which moves with the host's clock.
func (s *session) wroteCluster(doc string, rev int64) error {
	c, err := clusterDoc.Decode("a cluster", []byte(doc))
	if err != nil {
		return defect("a cluster cannot be read as it was written: %v", err)
	}
	s.changed(c.ID, entry[muster.Cluster]{rev, c})
	return nil
}

// writeUsers keeps the table by which the users of a cluster find it. They find
// a deleted one no more.
func (tx *Tx) writeUsers(c, old muster.Cluster) error {
	now, before := c.Spec.Users, old.Spec.Users
	if c.Phase == muster.ClusterDeleted {
		now = nil
	}
	for _, name := range before {
		if slices.Contains(now, name) {
			continue
		}
		if _, err := tx.s.exec(`DELETE FROM cluster_users WHERE name = ? AND cluster = ?`, name, string(c.ID)); err != nil {
			return err
		}
	}
	for _, name := range now {
		if name == "" || slices.Contains(before, name) {
			continue
		}
		if _, err := tx.s.exec(`INSERT OR IGNORE INTO cluster_users (cluster, name, owner, project) VALUES (?, ?, ?, ?)`,
			string(c.ID), name, c.Owner, c.Project); err != nil {
			return err
		}
	}
	return nil
}

// holdsNone makes certain that no machine is in a cluster.
func (tx *Tx) holdsNone(id muster.ClusterID) error {
	var machine string
	err := tx.s.one([]any{&machine}, `SELECT id FROM machines WHERE cluster = ? LIMIT 1`, string(id))
	if err == nil {
		return muster.Errorf(muster.EConflict, "cluster %s still holds machine %s", id, machine).Because(muster.ReasonMachineInUse).
			WithHint("give its machines back first")
	}
	if !errors.Is(err, errNoRow) {
		return err
	}
	return nil
}

// endCluster removes what must not outlive a cluster, and ends what depends on it.
func (tx *Tx) endCluster(c muster.Cluster) error {
	for _, table := range []string{"secrets", "joins"} {
		if _, err := tx.s.exec(fmt.Sprintf(`DELETE FROM %s WHERE cluster = ?`, table), string(c.ID)); err != nil {
			return err
		}
	}
	return tx.closeRunsOf(c)
}

func badTransition(kind, id, from, to string) *muster.Error {
	if from == "" {
		from = "nothing"
	}
	return muster.Errorf(muster.EConflict, "%s %s cannot go from %s to %q", kind, id, from, to).Because(muster.ReasonWrongPhase).
		WithHint("it changed in the meantime: look at it again")
}

// QueuePosition is the place of a queued cluster among all that wait, from 1,
// or 0 when it does not wait.
func (tx *Tx) QueuePosition(id muster.ClusterID) (int, error) {
	c, err := tx.Cluster(id)
	if err != nil || c.Phase != muster.ClusterQueued {
		return 0, err
	}
	var n int
	err = tx.s.one([]any{&n}, `SELECT count(*) FROM clusters AS c, (SELECT n, created FROM clusters WHERE id = ?) AS me
		WHERE c.phase = 'queued' AND (c.created, c.n) <= (me.created, me.n)`, string(id))
	return n, err
}

// ImageUsers lists the living clusters that use an image, as far as the actor
// may see them.
func (tx *Tx) ImageUsers(id muster.ImageID) ([]muster.ClusterID, error) {
	cond, args := scopeUsed(tx.who, "id")
	var ids []muster.ClusterID
	err := tx.s.each(func(r *sql.Rows) error {
		var c muster.ClusterID
		if err := r.Scan(&c); err != nil {
			return err
		}
		ids = append(ids, c)
		return nil
	}, `SELECT id FROM clusters WHERE image = ? AND phase <> 'deleted' AND `+cond+` ORDER BY created, n`,
		append([]any{string(id)}, args...)...)
	return ids, err
}
