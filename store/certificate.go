package store

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/certificate"
)

// keptExpired is how long a certificate is kept after it expired: what was
// measured is the history of a class.
const keptExpired = 2 * 365 * 24 * time.Hour

// Certificate is what lists tell of a certificate. The rest is in its envelope.
type Certificate struct {
	ID        muster.CertificateID
	Kind      muster.CertificateKind
	Cluster   muster.ClusterID
	Node      string // "" for the manifest of a cluster
	Machine   muster.MachineID
	Class     string
	Level     muster.Validation
	Verdict   muster.Grade
	Certified bool
	Made      time.Time
	Expires   time.Time
	Digest    muster.Digest
	// SupersededBy took its place; "" while none did.
	SupersededBy muster.CertificateID
}

// CertificateFilter narrows a list of certificates. Zero values ask for
// everything.
type CertificateFilter struct {
	Cluster muster.ClusterID
	Node    string
	Machine muster.MachineID
	Class   string
	Kind    muster.CertificateKind
	Present bool // leave out superseded ones
	Since   time.Time
	Limit   int    // the newest so many; 0: all
	After   string // only what comes after this cursor, and so is older
}

const certificateColumns = `id, owner, project, kind, cluster, node, machine, class, level, verdict, certified, made, expires, digest, coalesce(superseded, '')`

func noCertificate(id muster.CertificateID) *muster.Error {
	return muster.Errorf(muster.ENotFound, "there is no certificate %q", id).Because(muster.ReasonNoSuchCertificate).
		WithHint("certificates are named pc- and ten characters, and seen by those who see their cluster")
}

// PutCertificate keeps a signed certificate, and notes what it supersedes. Only
// Muster itself may. The same certificate may be put again.
//
// Errors: ENotFound if the cluster is not there any more, EConflict for another
// certificate of the same ID, or if it supersedes one of another cluster or one
// that has a successor.
func (tx *Tx) PutCertificate(s certificate.Signed) error {
	c := s.Certificate
	if err := tx.s.usable(true); err != nil {
		return err
	}
	if err := authorize(tx.who, write, record{kind: "certificate"}, noCertificate(c.ID)); err != nil {
		return err
	}
	body, err := s.Envelope()
	if err != nil || !c.ID.Valid() || s.Digest != certificate.DigestOf(s.Canonical) {
		return defect("a certificate is not one: %v", err)
	}
	if err := checkText(c.Node, string(c.Machine), c.Class); err != nil {
		return err
	}
	tenant, err := tx.tenant(c.Cluster)
	if err != nil {
		return err
	}
	if tenant.Phase == muster.ClusterDeleted {
		return noCluster(string(c.Cluster))
	}
	old, err := tx.Certificate(c.ID)
	switch {
	case err == nil && old.Digest == s.Digest:
		return nil
	case err == nil:
		return muster.Errorf(muster.EConflict, "there is another certificate %s", c.ID).Because(muster.ReasonImmutable).WithHint("a certificate never changes: make one with another ID")
	case muster.CodeOf(err) != muster.ENotFound:
		return err
	}
	if err := tx.supersede(c); err != nil {
		return err
	}
	if _, err := tx.s.exec(`INSERT INTO certificates (id, owner, project, cluster, node, machine, class, kind, level, verdict, certified, made, expires, digest, sum, body)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		string(c.ID), tenant.Owner, tenant.Project, string(c.Cluster), c.Node, string(c.Machine), c.Class, string(c.Kind), string(c.Level), string(c.Verdict),
		c.Certified, nanos(c.Made), nanos(c.Expires), string(s.Digest), sumOf(body), body); err != nil {
		return err
	}
	if _, err := tx.s.exec(`DELETE FROM certificates WHERE n IN (SELECT n FROM certificates WHERE expires < ? ORDER BY expires LIMIT 50)`,
		nanos(tx.now().Add(-keptExpired))); err != nil {
		return err
	}
	return tx.log(muster.Audit{Owner: tenant.Owner, Project: tenant.Project, Cluster: c.Cluster, Kind: muster.AuditCertificate, Object: string(c.ID), Text: certificateText(c)})
}

// certificateText says in the audit what was certified.
func certificateText(c muster.Certificate) string {
	text := "cluster"
	if c.Kind == muster.CertifiesNode {
		text = "node " + c.Node + " on " + string(c.Machine)
	}
	text += ": " + string(c.Verdict)
	for i, v := range c.Caveats {
		text += map[bool]string{true: ", not certified: ", false: ", "}[i == 0] + v.Code
	}
	return text
}

// supersede notes the end of those that a new certificate takes the place of.
// One that is not kept any more is nothing to note.
func (tx *Tx) supersede(c muster.Certificate) error {
	for _, id := range c.Supersedes {
		old, err := tx.Certificate(id)
		if muster.CodeOf(err) == muster.ENotFound {
			continue
		}
		if err != nil {
			return err
		}
		if old.Cluster != c.Cluster {
			return muster.Errorf(muster.EConflict, "%s is of another cluster than %s, which it should supersede", c.ID, id).Because(muster.ReasonSuperseded).
				WithHint("a certificate supersedes those of its own cluster")
		}
		if old.SupersededBy != "" {
			return muster.Errorf(muster.EConflict, "%s was superseded by %s already", id, old.SupersededBy).Because(muster.ReasonSuperseded).
				WithHint("read it again: another measurement was quicker")
		}
		if _, err := tx.s.exec(`UPDATE certificates SET superseded = ? WHERE id = ?`, string(c.ID), string(id)); err != nil {
			return err
		}
	}
	return nil
}

// Certificate returns what is known of one certificate.
func (tx *Tx) Certificate(id muster.CertificateID) (Certificate, error) {
	list, err := tx.certificates(`id = ?`, string(id))
	if err != nil {
		return Certificate{}, err
	}
	if len(list) == 0 {
		return Certificate{}, noCertificate(id)
	}
	return list[0], nil
}

// Certificates returns the certificates that the actor may see, newest first.
func (tx *Tx) Certificates(f CertificateFilter) ([]Certificate, error) {
	cond, args := scopeUsed(tx.who, "cluster")
	w := (&where{cond, args}).is("cluster", string(f.Cluster)).is("node", f.Node).is("machine", string(f.Machine)).
		is("class", f.Class).is("kind", string(f.Kind))
	if f.Machine != "" {
		w.and("machine <> ''") // the index says so
	}
	if f.Present {
		w.and("superseded IS NULL")
	}
	if !f.Since.IsZero() {
		w.and("made >= ?", nanos(f.Since))
	}
	if err := w.after("made", "<", f.After); err != nil {
		return nil, err
	}
	w.by("made DESC, n DESC", f.Limit)
	return tx.certificates(w.cond, w.args...)
}

// certificates reads rows, and leaves out those that the actor may not see.
func (tx *Tx) certificates(cond string, args ...any) ([]Certificate, error) {
	shared, more := sharedWithOf(tx.who, "cluster")
	var list []Certificate
	err := tx.s.each(func(r *sql.Rows) error {
		var c Certificate
		var made, expires int64
		may := record{kind: "certificate"}
		if err := r.Scan(&may.sharedWith, &c.ID, &may.owner, &may.project, &c.Kind, &c.Cluster, &c.Node, &c.Machine, &c.Class, &c.Level, &c.Verdict,
			&c.Certified, &made, &expires, &c.Digest, &c.SupersededBy); err != nil {
			return err
		}
		c.Made, c.Expires = fromNanos(made), fromNanos(expires)
		if allowed(tx.who, read, may) {
			list = append(list, c)
		}
		return nil
	}, `SELECT `+shared+`, `+certificateColumns+` FROM certificates WHERE `+cond, slices.Concat(more, args)...)
	return list, err
}

// CertificateEnvelope returns a certificate with its signature, as it was put.
func (tx *Tx) CertificateEnvelope(id muster.CertificateID) ([]byte, error) {
	c, err := tx.Certificate(id)
	if err != nil {
		return nil, err
	}
	body, err := tx.certificateBody(id)
	if err != nil {
		return nil, err
	}
	s, err := certificate.Read(body)
	if err != nil || s.Certificate.ID != id || s.Digest != c.Digest {
		return nil, corrupt("certificate "+string(id), errors.Join(err, errors.New("the row says something else")))
	}
	return body, nil
}

// certificateBody is the envelope of a certificate, unchanged since it was put.
func (tx *Tx) certificateBody(id muster.CertificateID) ([]byte, error) {
	var sum int64
	var body []byte
	err := tx.s.one([]any{&sum, &body}, `SELECT sum, body FROM certificates WHERE id = ?`, string(id))
	if errors.Is(err, errNoRow) {
		return nil, noCertificate(id)
	}
	if err != nil {
		return nil, err
	}
	if sumOf(body) != sum {
		return nil, corrupt("certificate "+string(id), errors.New("the checksum does not match"))
	}
	return bytes.Clone(body), nil
}

// CertificateContents returns what certificates say, in the order of their IDs here;
// those that are not kept any more, or that the actor may not see, are left out.
// Nothing is verified but that they are what was put: for reading many.
func (tx *Tx) CertificateContents(ids ...muster.CertificateID) ([]muster.Certificate, error) {
	out := make([]muster.Certificate, 0, len(ids))
	for _, id := range ids {
		if _, err := tx.Certificate(id); muster.CodeOf(err) == muster.ENotFound {
			continue
		} else if err != nil {
			return nil, err
		}
		body, err := tx.certificateBody(id)
		if err != nil {
			return nil, err
		}
		var e struct {
			Certificate muster.Certificate `json:"certificate"`
		}
		if err := json.Unmarshal(body, &e); err != nil || e.Certificate.ID != id {
			return nil, corrupt("certificate "+string(id), errors.Join(err, errors.New("the row says something else")))
		}
		out = append(out, e.Certificate)
	}
	return out, nil
}

// LastMeasured reports when each machine was measured last, of those that were. Only
// Muster itself asks: whose cluster that was does not matter to it.
func (tx *Tx) LastMeasured() (map[muster.MachineID]time.Time, error) {
	if err := authorize(tx.who, write, record{kind: "certificate"}, noCertificate("")); err != nil {
		return nil, err
	}
	out := map[muster.MachineID]time.Time{}
	err := tx.s.each(func(r *sql.Rows) error {
		var id muster.MachineID
		var made int64
		if err := r.Scan(&id, &made); err != nil {
			return err
		}
		out[id] = fromNanos(made)
		return nil
	}, `SELECT machine, max(made) FROM certificates WHERE machine <> '' GROUP BY machine`)
	return out, err
}
