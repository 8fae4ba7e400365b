package store

import (
	"database/sql"
	"errors"
	"slices"

	"github.com/muster-hpc/muster"
)

// keptHPL is how many results of a cluster are kept: the newest, and the fastest.
const keptHPL = 200

// HPLFilter narrows a list of results. Zero values ask for everything.
type HPLFilter struct {
	Cluster muster.ClusterID
	Class   string
	// Fastest first, by the median over launches; otherwise the newest first.
	Fastest bool
	Limit   int    // so many; 0: all
	After   string // only what comes after this cursor; not with Fastest
}

func noHPL(id muster.HPLID) *muster.Error {
	return muster.Errorf(muster.ENotFound, "there is no result %q of HPL", id).Because(muster.ReasonNoSuchResult).
		WithHint("results are named hr- and ten characters, and seen by those who see their cluster")
}

// PutHPL keeps a result of HPL. Only Muster itself may. The same result may be put
// again.
//
// Errors: ENotFound if the cluster is not there any more, EConflict for another
// result of the same ID, EInvalid for one that cannot be.
func (tx *Tx) PutHPL(r muster.HPLResult) error {
	if err := tx.s.usable(true); err != nil {
		return err
	}
	if err := authorize(tx.who, write, record{kind: "hpl"}, noHPL(r.ID)); err != nil {
		return err
	}
	if err := errors.Join(r.Check(), checkText(r.Class)); err != nil {
		return err
	}
	tenant, err := tx.tenant(r.Cluster)
	if err != nil {
		return err
	}
	if tenant.Phase == muster.ClusterDeleted {
		return noCluster(string(r.Cluster))
	}
	doc, sum, err := encode(hplDoc, &r)
	if err != nil {
		return err
	}
	var old string
	switch err := tx.s.one([]any{&old}, `SELECT doc FROM hpl WHERE id = ?`, string(r.ID)); {
	case err == nil && old == doc:
		return nil
	case err == nil:
		return muster.Errorf(muster.EConflict, "there is another result %s of HPL", r.ID).Because(muster.ReasonImmutable).WithHint("a result never changes: make one with another ID")
	case !errors.Is(err, errNoRow):
		return err
	}
	if _, err := tx.s.exec(`INSERT INTO hpl (id, owner, project, cluster, class, rate, best, made, sum, doc) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		string(r.ID), tenant.Owner, tenant.Project, string(r.Cluster), r.Class, r.Rate.Median, r.Best.Rate, nanos(r.Made), sum, doc); err != nil {
		return err
	}
	if _, err := tx.s.exec(`DELETE FROM hpl WHERE n IN (SELECT n FROM hpl WHERE cluster = ? ORDER BY made DESC, n DESC LIMIT 50 OFFSET ?)
		AND n <> (SELECT n FROM hpl WHERE cluster = ? ORDER BY rate DESC, n DESC LIMIT 1)`, string(r.Cluster), keptHPL, string(r.Cluster)); err != nil {
		return err
	}
	return tx.log(muster.Audit{
		Owner: tenant.Owner, Project: tenant.Project, Cluster: r.Cluster, Kind: muster.AuditHPL, Object: string(r.ID),
		Text: muster.HPLText(r),
	})
}

// HPL returns one result.
func (tx *Tx) HPL(id muster.HPLID) (muster.HPLResult, error) {
	list, err := tx.hpl(`id = ?`, string(id))
	if err != nil {
		return muster.HPLResult{}, err
	}
	if len(list) == 0 {
		return muster.HPLResult{}, noHPL(id)
	}
	return list[0], nil
}

// HPLResults returns the results that the actor may see.
func (tx *Tx) HPLResults(f HPLFilter) ([]muster.HPLResult, error) {
	cond, args := scopeUsed(tx.who, "cluster")
	order := "made DESC, n DESC"
	if f.Fastest {
		order = "rate DESC, n DESC"
	}
	w := (&where{cond, args}).is("cluster", string(f.Cluster)).is("class", f.Class)
	if err := w.after("made", "<", f.After); err != nil {
		return nil, err
	}
	w.by(order, f.Limit)
	return tx.hpl(w.cond, w.args...)
}

// hpl reads rows, and leaves out those that the actor may not see.
func (tx *Tx) hpl(cond string, args ...any) ([]muster.HPLResult, error) {
	shared, more := sharedWithOf(tx.who, "cluster")
	var list []muster.HPLResult
	err := tx.s.each(func(r *sql.Rows) error {
		var id muster.HPLID
		var doc string
		var sum int64
		may := record{kind: "hpl"}
		if err := r.Scan(&may.sharedWith, &id, &may.owner, &may.project, &sum, &doc); err != nil {
			return err
		}
		if !allowed(tx.who, read, may) {
			return nil
		}
		res, err := decode(hplDoc, "result "+string(id)+" of HPL", doc, sum)
		if err != nil {
			return err
		}
		list = append(list, res)
		return nil
	}, `SELECT `+shared+`, id, owner, project, sum, doc FROM hpl WHERE `+cond, slices.Concat(more, args)...)
	return list, err
}
