package store

import (
	"database/sql"
	"time"

	"github.com/muster-hpc/muster"
)

// KeyTerms are what is recorded of the key of a user with this fingerprint: Purpose, Added, Expires
// and the last use. The key itself is in the user's record.
func (tx *Tx) KeyTerms(user string) (map[string]muster.SSHKey, error) {
	return tx.keyTerms(user, `owner = ?`, user)
}

// AllKeyTerms are those of all users, by user and fingerprint. Only Muster itself may.
func (tx *Tx) AllKeyTerms() (map[string]map[string]muster.SSHKey, error) {
	if !isSystem(tx.who) {
		return nil, defect("only Muster itself reads the keys of all users")
	}
	out := map[string]map[string]muster.SSHKey{}
	return out, tx.eachKeyTerms(func(owner string, k muster.SSHKey) {
		if out[owner] == nil {
			out[owner] = map[string]muster.SSHKey{}
		}
		out[owner][k.Fingerprint] = k
	}, `1`)
}

// KeyTermsOf are those of one key; the zero value with its fingerprint where nothing is recorded.
func (tx *Tx) KeyTermsOf(user, fingerprint string) (muster.SSHKey, error) {
	list, err := tx.keyTerms(user, `owner = ? AND fingerprint = ?`, user, fingerprint)
	if k, ok := list[fingerprint]; ok {
		return k, err
	}
	return muster.SSHKey{Fingerprint: fingerprint}, err
}

func (tx *Tx) keyTerms(user, cond string, args ...any) (map[string]muster.SSHKey, error) {
	out := map[string]muster.SSHKey{}
	if !allowed(tx.who, write, record{kind: "user", owner: user}) { // keys of others are hidden as a whole
		return out, nil
	}
	return out, tx.eachKeyTerms(func(_ string, k muster.SSHKey) { out[k.Fingerprint] = k }, cond, args...)
}

func (tx *Tx) eachKeyTerms(f func(owner string, k muster.SSHKey), cond string, args ...any) error {
	return tx.s.each(func(r *sql.Rows) error {
		var k muster.SSHKey
		var owner string
		var added, expires, used sql.NullInt64
		if err := r.Scan(&owner, &k.Fingerprint, &k.Purpose, &added, &expires, &used, &k.UsedFrom, &k.UsedDoor); err != nil {
			return err
		}
		k.Added, k.Expires, k.Used = fromNull(added), fromNull(expires), fromNull(used)
		f(owner, k)
		return nil
	}, `SELECT owner, fingerprint, purpose, added, expires, used, used_from, used_door FROM key_terms WHERE `+cond, args...)
}

func fromNull(n sql.NullInt64) time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return fromNanos(n.Int64)
}

// PutKeyTerms records since when a user has a key, what it is for, and when it ends. What is
// known of its use stays. The user may, and administrators. The change of the user's record
// that goes with it leaves the audit line.
func (tx *Tx) PutKeyTerms(user string, k muster.SSHKey) error {
	if err := tx.mayKeys(user); err != nil {
		return err
	}
	if k.Fingerprint == "" {
		return defect("terms of a key need its fingerprint")
	}
	_, err := tx.s.exec(`INSERT INTO key_terms (owner, fingerprint, purpose, added, expires, used_from, used_door) VALUES (?, ?, ?, ?, ?, '', '')
		ON CONFLICT (owner, fingerprint) DO UPDATE SET purpose = excluded.purpose, added = excluded.added, expires = excluded.expires`,
		user, k.Fingerprint, cleanText(k.Purpose), nanosOrNull(k.Added), nanosOrNull(k.Expires))
	return err
}

// DropKeyTerms forgets a key that a user has no more.
func (tx *Tx) DropKeyTerms(user, fingerprint string) error {
	if err := tx.mayKeys(user); err != nil {
		return err
	}
	_, err := tx.s.exec(`DELETE FROM key_terms WHERE owner = ? AND fingerprint = ?`, user, fingerprint)
	return err
}

func (tx *Tx) mayKeys(user string) error {
	if err := tx.s.usable(true); err != nil {
		return err
	}
	return authorize(tx.who, write, record{kind: "user", owner: user}, noUser(user))
}

// keyUsed records the last use of a key.
func (tx *Tx) keyUsed(s muster.GatewaySession) error {
	_, err := tx.s.exec(`INSERT INTO key_terms (owner, fingerprint, purpose, used, used_from, used_door) SELECT name, ?, '', ?, ?, ? FROM users WHERE name = ?
		ON CONFLICT (owner, fingerprint) DO UPDATE SET used = excluded.used, used_from = excluded.used_from, used_door = excluded.used_door`,
		s.Fingerprint, nanos(s.Began), s.From, string(s.Door), s.User)
	return err
}
