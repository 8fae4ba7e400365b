package control

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/suggest"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// makeUsers makes the users that an administrator's request names first.
func (s *Service) makeUsers(tx *store.Tx, w parsedRequest, answer *muster.Answer) error {
	for _, name := range w.newUser {
		if _, err := tx.User(name); err == nil {
			continue // made meanwhile
		}
		uid, err := tx.NextUID()
		if err != nil {
			return err
		}
		u := muster.User{Name: name, UID: uid, Projects: []string{w.spec.Project}}
		if err := tx.PutUser(u, "made with cluster "+w.spec.Name); err != nil {
			return err
		}
		answer.Notices = append(answer.Notices, fmt.Sprintf("made user %s (uid %d) in project %s", name, uid, w.spec.Project))
	}
	return nil
}

// slipOf is the user that an unknown name is most likely a slip of. A cluster
// makes the users that an administrator names first, but not of a slip: a user
// is for good.
func slipOf(name string, known []string) (muster.Problem, bool) {
	meant := suggest.Slip(name, sameNumber(name, known))
	if meant == "" {
		return muster.Problem{}, false
	}
	return muster.Problem{
		Reason: muster.ReasonNoSuchUser, Message: fmt.Sprintf("no user is called %q", name),
		Hint: fmt.Sprintf("did you mean %s? Somebody else is made first: muster user add %s", meant, name),
	}, true
}

// Users lists the people that the actor may see.
func (s *Service) Users(ctx context.Context, who muster.Actor, p wire.Page) (wire.UserList, error) {
	out := wire.UserList{Users: []muster.User{}}
	err := s.Store.View(ctx, who, func(tx *store.Tx) error {
		list, err := tx.UsersAfter(p.After, p.Size()+1)
		list, more := partOf(list, p)
		out.Users = append(out.Users, list...)
		out.More, _ = nextAfter(list, more, func(u muster.User) (string, error) { return u.Name, nil })
		return err
	})
	return out, err
}

// User shows one person.
func (s *Service) User(ctx context.Context, who muster.Actor, name string) (muster.User, error) {
	var out muster.User
	err := s.Store.View(ctx, who, func(tx *store.Tx) error {
		var err error
		out, err = findUser(tx, name)
		return err
	})
	return out, err
}

func findUser(tx *store.Tx, name string) (muster.User, error) {
	u, err := tx.User(name)
	if muster.CodeOf(err) != muster.ENotFound {
		return u, err
	}
	all, listErr := tx.Users()
	if listErr != nil {
		return u, err
	}
	e := muster.Errorf(muster.ENotFound, "no user is called %.40q", name).Because(muster.ReasonNoSuchUser)
	if hint := didYouMean(name, userNames(all)); hint != "" {
		return u, e.WithHint("%s", hint)
	}
	return u, e.WithHint("see 'muster user list'")
}

func userNames(users []muster.User) []string {
	out := make([]string, len(users))
	for i, u := range users {
		out[i] = u.Name
	}
	return out
}

// inAnyImage refuses a new user's name that an image of the site has itself.
func (s *Service) inAnyImage(name string) error {
	list, err := s.Config.Images.List()
	if err != nil {
		return nil //nolint:nilerr // a request for the image tells
	}
	for _, img := range list {
		if e := img.CheckImageName(name); e != nil {
			return e.WithHint("choose another name: nobody of this name could use the image")
		}
	}
	return nil
}

// PutUser makes a user, or changes what the request names of one.
func (s *Service) PutUser(ctx context.Context, who muster.Actor, r wire.UserRequest) (muster.User, error) {
	var out muster.User
	if err := administrator(who, "make and change users"); err != nil {
		return out, err
	}
	if err := muster.CheckUserName(r.Name); err != nil {
		return out, err
	}
	for _, p := range r.Projects {
		if !isProjectName(p) {
			return out, muster.Errorf(muster.EInvalid, "%.64q is not a project name", p).Because(muster.ReasonBadName).
				WithHint("lower-case letters, digits, dots and hyphens")
		}
	}
	keys := make([]muster.SSHKey, 0, len(r.Keys))
	for _, line := range r.Keys {
		key, wrong := s.newKey(r.Name, wire.KeyRequest{Key: line})
		if len(wrong) > 0 {
			return out, muster.Errorf(muster.EInvalid, "%s", wrong[0].Message).Because(wrong[0].Reason).WithHint("%s", wrong[0].Hint)
		}
		keys = append(keys, key)
	}
	if strings.ContainsAny(r.FullName, ":,\n\r\x00") || len(r.FullName) > 128 {
		return out, muster.Errorf(muster.EInvalid, "the full name has a character that cannot be in it").Because(muster.ReasonBadValue).
			WithHint("leave out colons, commas and line ends")
	}
	err := s.Store.Update(ctx, who, func(tx *store.Tx) error {
		u, err := tx.User(r.Name)
		made := muster.CodeOf(err) == muster.ENotFound
		if err != nil && !made {
			return err
		}
		if made {
			if err := s.inAnyImage(r.Name); err != nil {
				return err
			}
		}
		if err := s.number(tx, &u, r.UID, made); err != nil {
			return err
		}
		u.Name = r.Name
		if r.FullName != "" {
			u.FullName = r.FullName
		}
		switch {
		case len(r.Projects) > 0:
			u.Projects = slices.Compact(slices.Sorted(slices.Values(r.Projects)))
		case made:
			u.Projects = []string{r.Name}
		}
		for _, k := range keys {
			if u.Keys, err = putKey(u.Keys, k); err != nil {
				return err
			}
		}
		u.Admin = u.Admin || r.Admin
		if len(u.Keys) > maxKeys {
			return tooManyKeys()
		}
		out = u
		return tx.PutUser(u, "")
	})
	return out, err
}

// number gives a user its number, which never changes and is never reused.
func (s *Service) number(tx *store.Tx, u *muster.User, asked int, made bool) error {
	switch {
	case !made && asked != 0 && asked != u.UID:
		return muster.Errorf(muster.EConflict, "user %s has uid %d, which never changes", u.Name, u.UID).Because(muster.ReasonImmutable).
			WithHint("leave --uid away")
	case !made:
		return nil
	case asked == 0:
		uid, err := tx.NextUID()
		u.UID = uid
		return err
	}
	if e := muster.CheckUID(asked); e != nil {
		return e
	}
	all, err := tx.Users()
	if err != nil {
		return err
	}
	for _, other := range all {
		if other.UID == asked {
			return muster.Errorf(muster.EConflict, "uid %d belongs to %s", asked, other.Name).Because(muster.ReasonUIDTaken).WithHint("leave --uid away for the next free one")
		}
	}
	u.UID = asked
	return nil
}

// RemoveUser removes a person who uses no living cluster.
func (s *Service) RemoveUser(ctx context.Context, who muster.Actor, name string) error {
	if err := administrator(who, "remove users"); err != nil {
		return err
	}
	return s.Store.Update(ctx, who, func(tx *store.Tx) error {
		if _, err := findUser(tx, name); err != nil {
			return err
		}
		living, err := tx.Clusters(store.ClusterFilter{Living: true})
		if err != nil {
			return err
		}
		for _, c := range living {
			if c.Owner != name && slices.Contains(c.Spec.Users, name) {
				return muster.Errorf(muster.EConflict, "cluster %s (%s) is shared with %s", c.Name, c.ID, name).Because(muster.ReasonUserInUse).
					WithHint("take it from them first: muster unshare %s %s; or delete the cluster", c.ID, name)
			}
			if c.Owner == name || slices.Contains(c.Spec.Users, name) {
				return muster.Errorf(muster.EConflict, "%s uses cluster %s (%s)", name, c.Name, c.ID).Because(muster.ReasonUserInUse).
					WithHint("delete the cluster first")
			}
		}
		return tx.DeleteUser(name)
	})
}
