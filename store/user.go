package store

import (
	"database/sql"
	"errors"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
)

// UIDs that NextUID gives. Below are those of systems and sites, above those
// that a machine's user namespace does not have.
const (
	firstUID = 20000
	lastUID  = 59999
)

func noUser(name string) *muster.Error {
	return muster.Errorf(muster.ENotFound, "there is no user %q", name).Because(muster.ReasonNoSuchUser).
		WithHint("`muster user list` shows the users that you can see")
}

// User returns one user. Keys of others are left out, except for administrators.
func (tx *Tx) User(name string) (muster.User, error) {
	list, err := tx.users(`name = ?`, name)
	if err != nil {
		return muster.User{}, err
	}
	if len(list) == 0 {
		return muster.User{}, noUser(name)
	}
	return list[0], nil
}

// Users returns the users that the actor may see, by name: all for an
// administrator; oneself and those of one's projects, without their keys, for
// a user.
func (tx *Tx) Users() ([]muster.User, error) { return tx.UsersAfter("", 0) }

// UsersAfter is Users for those whose names come after a name, at most limit of them; 0:
// all.
func (tx *Tx) UsersAfter(name string, limit int) ([]muster.User, error) {
	if tx.who.Admin {
		return tx.users(`name > ? ORDER BY name LIMIT ?`, name, unlimited(limit))
	}
	args := []any{tx.who.Name}
	for _, p := range tx.who.Projects {
		args = append(args, p)
	}
	return tx.users(`(name = ? OR name IN (SELECT owner FROM members WHERE project IN (`+marks(len(args)-1)+`))) AND name > ? ORDER BY name LIMIT ?`,
		append(args, name, unlimited(limit))...)
}

func (tx *Tx) users(cond string, args ...any) ([]muster.User, error) {
	all, err := tx.rawUsers(cond, args...)
	if err != nil {
		return nil, err
	}
	out := all[:0]
	for _, u := range all {
		if !allowed(tx.who, read, userRecord(tx.who, u)) {
			continue
		}
		if !tx.who.Admin && u.Name != tx.who.Name {
			u.Keys = nil
			u.Projects = slices.DeleteFunc(u.Projects, func(p string) bool { return !tx.who.In(p) })
		}
		out = append(out, u)
	}
	return out, nil
}

// userRecord names a project that the actor shares with a user, if any.
func userRecord(who muster.Actor, u muster.User) record {
	r := record{kind: "user", owner: u.Name}
	for _, p := range u.Projects {
		if p != "" && who.In(p) {
			r.project = p
		}
	}
	return r
}

func (tx *Tx) rawUsers(cond string, args ...any) ([]muster.User, error) {
	var list []muster.User
	err := tx.s.each(func(r *sql.Rows) error {
		var name, doc string
		var uid int
		var sum int64
		if err := r.Scan(&name, &uid, &sum, &doc); err != nil {
			return err
		}
		u, err := decode(userDoc, "the record of user "+name, doc, sum)
		if err != nil {
			return err
		}
		if u.Name != name || u.UID != uid {
			return corrupt("the record of user "+name, errors.New("row and document disagree"))
		}
		list = append(list, u)
		return nil
	}, `SELECT name, uid, sum, doc FROM users WHERE `+cond, args...)
	return list, err
}

// checkUser refuses names that are Muster's own or that no system takes, and
// UIDs that belong to systems.
func checkUser(u muster.User) error {
	switch {
	case u.Name == "system" || u.Name == "root" || u.Name == "nobody":
		return muster.Errorf(muster.EInvalid, "the name %q is reserved", u.Name).Because(muster.ReasonNameReserved).WithHint("choose another name")
	case !muster.IsUserName(strings.TrimPrefix(u.Name, "_")):
		return muster.Errorf(muster.EInvalid, "%q is not a user name", u.Name).Because(muster.ReasonBadName).
			WithHint("use up to %d of a-z, 0-9, - _ and ., beginning with a letter", muster.LongestUserName)
	case u.UID < muster.FirstUID || u.UID > muster.LastUID || u.UID == 65534 || u.UID == 65535:
		return muster.Errorf(muster.EInvalid, "user %s cannot have UID %d", u.Name, u.UID).Because(muster.ReasonOutOfRange).
			WithHint("use one from %d to %d that is not nobody's", muster.FirstUID, muster.LastUID)
	}
	for _, k := range u.Keys {
		if strings.ContainsAny(k, "\n\r\x00") {
			return muster.Errorf(muster.EInvalid, "a key of user %s has more than one line", u.Name).Because(muster.ReasonBadSSHKey).WithHint("give one key per line")
		}
	}
	return checkText(u.Projects...)
}

// PutUser inserts or changes a user and leaves an audit line. A user may
// change nothing but their own keys and full name.
//
// Errors: EInvalid for a name or UID that cannot be, EConflict for a UID or a
// name that once was another person's.
func (tx *Tx) PutUser(u muster.User, text string) error {
	if err := tx.s.usable(true); err != nil {
		return err
	}
	if err := checkUser(u); err != nil {
		return err
	}
	list, err := tx.rawUsers(`name = ?`, u.Name)
	if err != nil {
		return err
	}
	from := ""
	if len(list) == 1 {
		from = "present"
	}
	if err := authorize(tx.who, write, record{kind: "user", owner: u.Name}, noUser(u.Name)); err != nil {
		return err
	}
	if !tx.who.Admin {
		if len(list) == 0 {
			return noUser(u.Name)
		}
		old := list[0]
		if u.UID != old.UID || u.Admin != old.Admin || !slices.Equal(u.Projects, old.Projects) {
			return muster.Errorf(muster.EForbidden, "users change only their own keys and full name").Because(muster.ReasonYourselfOnly).WithHint("ask an administrator")
		}
	}
	if err := tx.takeUID(u); err != nil {
		return err
	}
	doc, sum, err := encode(userDoc, &u)
	if err != nil {
		return err
	}
	if _, err := tx.s.exec(`INSERT INTO users (name, owner, project, uid, rev, sum, doc) VALUES (?, ?, '', ?, ?, ?, ?)
		ON CONFLICT (name) DO UPDATE SET uid = excluded.uid, rev = excluded.rev, sum = excluded.sum, doc = excluded.doc`,
		u.Name, u.Name, u.UID, tx.s.nextRev(), sum, doc); err != nil {
		return err
	}
	if _, err := tx.s.exec(`DELETE FROM members WHERE owner = ?`, u.Name); err != nil {
		return err
	}
	for _, p := range u.Projects {
		if _, err := tx.s.exec(`INSERT OR IGNORE INTO members (project, owner) VALUES (?, ?)`, p, u.Name); err != nil {
			return err
		}
	}
	return tx.log(muster.Audit{Owner: u.Name, Kind: muster.AuditUser, Object: u.Name, From: from, To: muster.AuditPresent, Text: text})
}

// takeUID records a UID for ever. A name keeps its UID for ever too: what the
// first person of that name left behind must not become the second one's.
func (tx *Tx) takeUID(u muster.User) error {
	var owner string
	err := tx.s.one([]any{&owner}, `SELECT owner FROM uids WHERE uid = ?`, u.UID)
	switch {
	case err == nil && owner == u.Name:
		return nil
	case err == nil:
		return muster.Errorf(muster.EConflict, "UID %d was given to another user before", u.UID).Because(muster.ReasonUIDTaken).
			WithHint("UIDs are never given twice: leave it out to get a free one")
	case !errors.Is(err, errNoRow):
		return err
	}
	var uid int
	err = tx.s.one([]any{&uid}, `SELECT uid FROM uids WHERE owner = ? ORDER BY given DESC LIMIT 1`, u.Name)
	if err == nil {
		return muster.Errorf(muster.EConflict, "user %s has or had UID %d", u.Name, uid).Because(muster.ReasonImmutable).
			WithHint("give UID %d if it is the same person, or choose another name", uid)
	}
	if !errors.Is(err, errNoRow) {
		return err
	}
	_, err = tx.s.exec(`INSERT INTO uids (uid, owner, project, given) VALUES (?, ?, '', ?)`, u.UID, u.Name, nanos(tx.now()))
	return err
}

// UIDsAbove returns the names of everybody whose UID is higher than one, with theirs.
func (tx *Tx) UIDsAbove(uid int) (map[string]int, error) {
	out := map[string]int{}
	err := tx.s.each(func(r *sql.Rows) error {
		var name string
		var uid int
		err := r.Scan(&name, &uid)
		out[name] = uid
		return err
	}, `SELECT name, uid FROM users WHERE uid > ?`, uid)
	return out, err
}

// NextUID returns a UID that nobody ever had. It is taken by PutUser.
// EUnavailable when there are none left.
func (tx *Tx) NextUID() (int, error) {
	var uid int
	err := tx.s.one([]any{&uid}, `SELECT coalesce(max(uid), ?) + 1 FROM uids WHERE uid BETWEEN ? AND ?`, firstUID-1, firstUID, lastUID)
	if err == nil && uid > lastUID {
		return 0, muster.Errorf(muster.EUnavailable, "every UID from %d to %d was given", firstUID, lastUID).Because(muster.ReasonUIDsExhausted).
			WithHint("give the user a UID of your site")
	}
	return uid, err
}

// DeleteUser removes a user with all tokens. EConflict while they own a
// cluster that is not deleted.
func (tx *Tx) DeleteUser(name string) error {
	if err := tx.s.usable(true); err != nil {
		return err
	}
	if err := authorize(tx.who, write, record{kind: "site"}, noUser(name)); err != nil {
		return err
	}
	if _, err := tx.User(name); err != nil {
		return err
	}
	var id string
	err := tx.s.one([]any{&id}, `SELECT id FROM clusters WHERE owner = ? AND phase <> 'deleted' LIMIT 1`, name)
	if err == nil {
		return muster.Errorf(muster.EConflict, "user %s owns cluster %s", name, id).Because(muster.ReasonUserInUse).WithHint("`muster delete %s` first", id)
	}
	if !errors.Is(err, errNoRow) {
		return err
	}
	if _, err := tx.s.exec(`DELETE FROM users WHERE name = ?`, name); err != nil {
		return err
	}
	return tx.log(muster.Audit{Owner: name, Kind: muster.AuditUser, Object: name, From: muster.AuditPresent, To: muster.AuditDeleted})
}
