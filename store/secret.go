package store

import (
	"crypto/subtle"
	"database/sql"
	"errors"
	"time"

	"github.com/muster-hpc/muster"
)

// PutSecret keeps a secret of a cluster until the cluster is deleted. Only
// Muster itself may; nothing of it is in the audit.
func (tx *Tx) PutSecret(cluster muster.ClusterID, name string, value []byte) error {
	if err := tx.s.usable(true); err != nil {
		return err
	}
	if err := authorize(tx.who, write, record{kind: "secret"}, noCluster(string(cluster))); err != nil {
		return err
	}
	c, err := tx.Cluster(cluster)
	if err != nil {
		return err
	}
	if c.Phase == muster.ClusterDeleted {
		return noCluster(string(cluster))
	}
	if value == nil {
		value = []byte{}
	}
	_, err = tx.s.exec(`INSERT INTO secrets (cluster, name, owner, project, sum, value) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (cluster, name) DO UPDATE SET sum = excluded.sum, value = excluded.value`,
		string(cluster), name, c.Owner, c.Project, sumOf(value), value)
	return err
}

// DropSecret forgets a secret of a cluster; there may be none. Only Muster itself may.
func (tx *Tx) DropSecret(cluster muster.ClusterID, name string) error {
	if err := tx.s.usable(true); err != nil {
		return err
	}
	if err := authorize(tx.who, write, record{kind: "secret"}, noCluster(string(cluster))); err != nil {
		return err
	}
	_, err := tx.s.exec(`DELETE FROM secrets WHERE cluster = ? AND name = ?`, string(cluster), name)
	return err
}

// Secret returns a secret of a cluster. Only Muster itself may ask.
func (tx *Tx) Secret(cluster muster.ClusterID, name string) ([]byte, error) {
	absent := muster.Errorf(muster.ENotFound, "cluster %s has no secret %q", cluster, name).
		WithHint("secrets end with their cluster")
	if err := authorize(tx.who, read, record{kind: "secret"}, absent); err != nil {
		return nil, err
	}
	var sum int64
	var value []byte
	err := tx.s.one([]any{&sum, &value}, `SELECT sum, value FROM secrets WHERE cluster = ? AND name = ?`, string(cluster), name)
	if errors.Is(err, errNoRow) {
		return nil, absent
	}
	if err == nil && sumOf(value) != sum {
		return nil, corrupt("a secret of "+string(cluster), errors.New("the checksum does not match"))
	}
	return value, err
}

// PutJoin lets an agent join once. A permission for the same machine that was
// not used ends, and so do all that expired.
func (tx *Tx) PutJoin(j Join) error {
	if err := tx.s.usable(true); err != nil {
		return err
	}
	if err := authorize(tx.who, write, record{kind: "join"}, noMachine(j.Machine)); err != nil {
		return err
	}
	c, err := tx.Cluster(j.Cluster)
	if err != nil {
		return err
	}
	if _, err := tx.s.exec(`DELETE FROM joins WHERE machine = ? OR expires <= ?`, string(j.Machine), nanos(tx.now())); err != nil {
		return err
	}
	_, err = tx.s.exec(`INSERT INTO joins (hash, owner, project, machine, cluster, node, attempt, expires) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		j.Hash[:], c.Owner, c.Project, string(j.Machine), string(j.Cluster), j.Node, j.Attempt, nanos(j.Expires))
	return err
}

// UseJoin redeems a permission to join: it works once. EUnauth if it is
// unknown, used or expired, without telling which.
func (tx *Tx) UseJoin(hash [32]byte, now time.Time) (Join, error) {
	bad := muster.Errorf(muster.EUnauth, "the join token is not valid").Because(muster.ReasonBadToken).
		WithHint("each works once and for a short time: the machine gets a new one with its next boot")
	if err := tx.s.usable(true); err != nil {
		return Join{}, err
	}
	if err := authorize(tx.who, write, record{kind: "join"}, bad); err != nil {
		return Join{}, err
	}
	var j Join
	var stored []byte
	var expires int64
	err := tx.s.one([]any{&stored, &j.Machine, &j.Cluster, &j.Node, &j.Attempt, &expires},
		`SELECT hash, machine, cluster, node, attempt, expires FROM joins WHERE hash = ?`, hash[:])
	if errors.Is(err, errNoRow) {
		return Join{}, bad
	}
	if err != nil {
		return Join{}, err
	}
	j.Hash, j.Expires = hash, fromNanos(expires)
	if subtle.ConstantTimeCompare(stored, hash[:]) != 1 || expired(j.Expires, now) {
		return Join{}, bad
	}
	_, err = tx.s.exec(`DELETE FROM joins WHERE hash = ?`, hash[:])
	return j, err
}

// Meta returns a fact about the site, such as its instance ID. Only Muster
// itself may ask.
func (tx *Tx) Meta(key string) (string, error) {
	absent := muster.Errorf(muster.ENotFound, "there is no %q", key)
	if err := authorize(tx.who, read, record{kind: "meta"}, absent); err != nil {
		return "", err
	}
	var value sql.NullString
	err := tx.s.one([]any{&value}, `SELECT value FROM meta WHERE key = ?`, key)
	if errors.Is(err, errNoRow) {
		return "", absent
	}
	return value.String, err
}

// SetMeta sets a fact about the site. Only Muster itself may.
func (tx *Tx) SetMeta(key, value string) error {
	if err := tx.s.usable(true); err != nil {
		return err
	}
	if err := authorize(tx.who, write, record{kind: "meta"}, muster.Errorf(muster.ENotFound, "there is no %q", key)); err != nil {
		return err
	}
	_, err := tx.s.exec(`INSERT INTO meta (key, owner, project, value) VALUES (?, 'system', '', ?)
		ON CONFLICT (key) DO UPDATE SET value = excluded.value`, key, value)
	return err
}
