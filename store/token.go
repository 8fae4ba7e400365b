package store

import (
	"context"
	"crypto/subtle"
	"database/sql"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
)

func noToken(id string) *muster.Error {
	return muster.Errorf(muster.ENotFound, "there is no token %q", id).Because(muster.ReasonNoSuchToken).WithHint("`muster token list` shows your tokens")
}

// PutToken adds a token for a user that exists. ENotFound if the actor may not
// make tokens for that user.
func (tx *Tx) PutToken(t Token) error {
	if err := tx.s.usable(true); err != nil {
		return err
	}
	if t.ID == "" || t.Hash == [32]byte{} {
		return defect("a token needs an ID and a hash")
	}
	if err := authorize(tx.who, write, record{kind: "token", owner: t.User}, noUser(t.User)); err != nil {
		return err
	}
	if t.ReadOnly && !tx.who.Admin {
		return noUser(t.User) // it would see more than who makes it
	}
	if _, err := tx.User(t.User); err != nil {
		return err
	}
	t.Note = cleanText(t.Note)
	if t.Created.IsZero() {
		t.Created = tx.now()
	}
	if _, err := tx.s.exec(`INSERT INTO tokens (id, owner, project, hash, note, created, expires, read_only) VALUES (?, ?, '', ?, ?, ?, ?, ?)`,
		t.ID, t.User, t.Hash[:], t.Note, nanos(t.Created), nanosOrNull(t.Expires), t.ReadOnly); err != nil {
		return err
	}
	return tx.log(muster.Audit{Owner: t.User, Kind: muster.AuditToken, Object: t.ID, To: muster.AuditPresent, Text: t.Note})
}

// Tokens lists a user's tokens, oldest first, also those that expired. For a
// user that the actor may not ask about the list is empty. With no user it
// lists every token that the actor may see.
func (tx *Tx) Tokens(user string) ([]Token, error) {
	if user == "" && tx.who.Admin {
		return tx.tokens(`1 ORDER BY owner, created, id`)
	}
	if user == "" {
		user = tx.who.Name
	}
	return tx.tokens(`owner = ? ORDER BY created, id`, user)
}

func (tx *Tx) tokens(cond string, args ...any) ([]Token, error) {
	var list []Token
	err := tx.s.each(func(r *sql.Rows) error {
		var t Token
		var hash []byte
		var created int64
		var expires sql.NullInt64
		if err := r.Scan(&t.ID, &t.User, &hash, &t.Note, &created, &expires, &t.ReadOnly); err != nil {
			return err
		}
		if !allowed(tx.who, read, record{kind: "token", owner: t.User}) {
			return nil
		}
		if len(hash) != len(t.Hash) {
			return corrupt("the record of token "+t.ID, nil)
		}
		copy(t.Hash[:], hash)
		t.Created = fromNanos(created)
		if expires.Valid {
			t.Expires = fromNanos(expires.Int64)
		}
		list = append(list, t)
		return nil
	}, `SELECT id, owner, hash, note, created, expires, read_only FROM tokens WHERE `+cond, args...)
	return list, err
}

// DeleteToken ends a token at once.
func (tx *Tx) DeleteToken(id string) error {
	if err := tx.s.usable(true); err != nil {
		return err
	}
	list, err := tx.tokens(`id = ?`, id)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return noToken(id)
	}
	if err := authorize(tx.who, write, record{kind: "token", owner: list[0].User}, noToken(id)); err != nil {
		return err
	}
	if _, err := tx.s.exec(`DELETE FROM tokens WHERE id = ?`, id); err != nil {
		return err
	}
	return tx.log(muster.Audit{Owner: list[0].User, Kind: muster.AuditToken, Object: id, From: muster.AuditPresent, To: muster.AuditDeleted})
}

// Authenticate finds for whom a token speaks, by the hash of its secret.
// EUnauth for one that is unknown or expired, without telling which.
func (db *DB) Authenticate(ctx context.Context, hash [32]byte) (muster.Actor, error) {
	bad := muster.Errorf(muster.EUnauth, "the token is not valid").Because(muster.ReasonBadToken).
		WithHint("ask for a new one: `muster token create`, or your administrator")
	var who muster.Actor
	err := db.View(ctx, muster.System(), func(tx *Tx) error {
		list, err := tx.tokens(`hash = ?`, hash[:])
		if err != nil {
			return err
		}
		if len(list) == 0 {
			name, err := tx.gatewayOf(hash)
			if err != nil || name != "" {
				who = muster.Actor{Name: "gateway " + name, Gateway: name}
				return err
			}
		}
		if len(list) != 1 || subtle.ConstantTimeCompare(list[0].Hash[:], hash[:]) != 1 || expired(list[0].Expires, tx.now()) {
			return bad
		}
		u, err := tx.User(list[0].User)
		if err != nil {
			return err
		}
		who = muster.Actor{Name: u.Name, Admin: u.Admin, Projects: u.Projects, Token: list[0].ID}
		if list[0].ReadOnly {
			who = muster.Actor{Name: u.Name, Admin: true, ReadOnly: true, Token: list[0].ID}
			return nil
		}
		who.Managed, err = tx.managed(u)
		return err
	})
	return who, err
}

// TokenHolds reports whether a token is there, speaks for this user and has not expired.
func (tx *Tx) TokenHolds(id, user string) (bool, error) {
	list, err := tx.tokens(`id = ? AND owner = ?`, id, user)
	return len(list) == 1 && !expired(list[0].Expires, tx.now()), err
}

// managed are the projects that a user manages.
func (tx *Tx) managed(u muster.User) (list []string, err error) {
	for _, name := range u.Projects {
		p, err := tx.Project(name)
		switch {
		case muster.CodeOf(err) == muster.ENotFound:
		case err != nil:
			return nil, err
		case slices.Contains(p.Managers, u.Name):
			list = append(list, name)
		}
	}
	return list, nil
}

func expired(at, now time.Time) bool { return !at.IsZero() && !now.Before(at) }
