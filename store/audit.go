package store

import (
	"database/sql"
	"slices"

	"github.com/muster-hpc/muster"
)

// log adds an audit line to the transaction. The owner of what belongs to the
// site is "system".
func (tx *Tx) log(a muster.Audit) error {
	a.At, a.Actor = tx.now(), tx.name
	a.Object, a.Text = cleanText(a.Object), cleanText(a.Text)
	if a.Owner == "" {
		a.Owner = "system"
	}
	r, err := tx.s.exec(`INSERT INTO audit (at, actor, owner, project, cluster, kind, object, "from", "to", text)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		nanos(a.At), a.Actor, a.Owner, a.Project, string(a.Cluster), a.Kind, a.Object, a.From, a.To, a.Text)
	if err != nil {
		return err
	}
	if a.Seq, err = r.LastInsertId(); err != nil {
		return defect("the audit line has no number: %v", err)
	}
	tx.s.lines = append(tx.s.lines, a)
	return nil
}

// Note adds an audit line for something worth remembering that is not a change
// of phase. With a cluster, the actor must be able to see it; without one, the
// line is the site's. No secret may be in text.
func (tx *Tx) Note(kind muster.AuditKind, object string, cluster muster.ClusterID, text string) error {
	if err := tx.s.usable(true); err != nil {
		return err
	}
	a := muster.Audit{Kind: kind, Object: object, Cluster: cluster, Text: text}
	if cluster != "" {
		c, err := tx.Cluster(cluster)
		if err != nil {
			return err
		}
		a.Owner, a.Project = c.Owner, c.Project
	} else if !tx.who.Admin {
		a.Owner = tx.who.Name
	}
	return tx.log(a)
}

// Audits returns the lines that the actor may see, oldest first.
func (tx *Tx) Audits(f AuditFilter) ([]muster.Audit, error) {
	cond, args := scope(tx.who)
	query := `SELECT seq, at, actor, owner, project, cluster, kind, object, "from", "to", text FROM audit WHERE seq > ? AND ` + cond
	args = append([]any{f.After}, args...)
	if f.Cluster != "" {
		query += ` AND cluster = ? AND cluster <> ''`
		args = append(args, string(f.Cluster))
	}
	if f.Kind != "" {
		query += ` AND kind = ?`
		args = append(args, string(f.Kind))
	}
	query += ` ORDER BY seq`
	if f.Newest > 0 {
		query += ` DESC LIMIT ?`
		args = append(args, f.Newest)
	} else if f.Limit > 0 {
		query += ` LIMIT ?`
		args = append(args, f.Limit)
	}
	var list []muster.Audit
	err := tx.s.each(func(r *sql.Rows) error {
		var a muster.Audit
		var at int64
		if err := r.Scan(&a.Seq, &at, &a.Actor, &a.Owner, &a.Project, &a.Cluster, &a.Kind, &a.Object, &a.From, &a.To, &a.Text); err != nil {
			return err
		}
		a.At = fromNanos(at)
		if allowed(tx.who, read, auditRecord(a)) {
			list = append(list, a)
		}
		return nil
	}, query, args...)
	if f.Newest > 0 {
		slices.Reverse(list)
	}
	return list, err
}
