package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// mostUsers is how many people a cluster has at most; requests have the same.
const mostUsers = 500

// Share lets people into a cluster and out of it, also while it runs. Whoever
// may change the cluster may do so. Only an administrator adds people of other
// projects, or such as Muster does not know yet, unless their name looks like a
// slip of another's. The owner stays.
func (s *Service) Share(ctx context.Context, who muster.Actor, ref string, r wire.ShareRequest) (wire.Shared, error) {
	if len(r.Add)+len(r.Remove) == 0 && !r.Project {
		return wire.Shared{}, muster.Errorf(muster.EInvalid, "nobody is named").Because(muster.ReasonRequired).WithHint("name who is to join or to leave")
	}
	var out wire.Shared
	err := s.Store.Update(ctx, who, func(tx *store.Tx) error {
		out = wire.Shared{}
		c, err := tx.FindCluster(ref)
		if err != nil {
			return err
		}
		if err := tx.MayChange(c); err != nil {
			return err
		}
		switch c.Phase {
		case muster.ClusterDeleting, muster.ClusterDeleted, muster.ClusterFailed:
			return muster.Errorf(muster.EConflict, "cluster %s is %s: nobody joins or leaves it any more", c.Name, c.Phase).Because(muster.ReasonWrongPhase).
				WithHint("see 'muster show %s'", c.ID)
		}
		before := c.Spec.Users
		sh := &sharer{s: s, tx: tx, c: c, users: slices.Clone(before)}
		if err := sh.change(r); err != nil {
			return err
		}
		out = wire.Shared{ID: c.ID, Name: c.Name, Users: sh.users, Notices: sh.notices}
		for _, name := range sh.users {
			if !slices.Contains(before, name) {
				out.Added = append(out.Added, name)
			}
		}
		for _, name := range before {
			if !slices.Contains(sh.users, name) {
				out.Removed = append(out.Removed, name)
			}
		}
		if len(out.Added)+len(out.Removed) == 0 {
			return nil
		}
		c.Spec.Users = sh.users
		c.Generation++
		return tx.PutCluster(c, sharedText(out))
	})
	if err != nil {
		return wire.Shared{}, err
	}
	if len(out.Added)+len(out.Removed) > 0 {
		s.Changed(out.ID)
		out.Applied = s.awaitApplied(ctx, out.ID)
	}
	return out, nil
}

func sharedText(out wire.Shared) string {
	var parts []string
	if len(out.Added) > 0 {
		parts = append(parts, strings.Join(out.Added, ", ")+" may use it")
	}
	if len(out.Removed) > 0 {
		parts = append(parts, strings.Join(out.Removed, ", ")+" may not use it any more")
	}
	return strings.Join(parts, "; ")
}

// sharer is one change of a cluster's people in the making.
type sharer struct {
	s        *Service
	tx       *store.Tx
	c        muster.Cluster
	users    []string
	notices  []string
	problems []muster.Problem
}

// change adds and removes people. Every problem is told at once.
func (sh *sharer) change(r wire.ShareRequest) error {
	for i, name := range r.Add {
		if slices.Contains(r.Remove, name) {
			sh.problem(muster.ReasonContradiction, "add", i, name+" is to join and to leave", "say one of them")
			continue
		}
		if err := sh.add(i, name); err != nil {
			return err
		}
	}
	if r.Project {
		if err := sh.addProject(); err != nil {
			return err
		}
	}
	for i, name := range r.Remove {
		sh.remove(i, name)
	}
	if len(sh.users) > mostUsers {
		sh.problem(muster.ReasonTooMany, "add", -1, fmt.Sprintf("the cluster would have %d users", len(sh.users)), fmt.Sprintf("at most %d are possible", mostUsers))
	}
	if len(sh.problems) == 0 {
		return nil
	}
	e := muster.Errorf(muster.EInvalid, "the people of cluster %s cannot be changed so", sh.c.Name).Because(muster.ReasonHasProblems)
	if len(sh.problems) == 1 {
		e.Reason, e.Message, e.Hint = sh.problems[0].Reason, sh.problems[0].Message, sh.problems[0].Hint
		return e
	}
	return e.Listing(sh.problems)
}

func (sh *sharer) problem(why muster.Reason, field string, i int, message, hint string) {
	if i >= 0 {
		field = fmt.Sprintf("%s[%d]", field, i)
	}
	sh.problems = append(sh.problems, muster.Problem{Field: field, Reason: why, Message: message, Hint: hint})
}

// inImage refuses a name that the cluster's image has itself.
func (sh *sharer) inImage(name string) *muster.Error {
	ref := sh.c.Spec.Image
	if sh.c.Image != "" {
		ref = string(sh.c.Image)
	}
	img, err := sh.s.Config.Images.Resolve(ref)
	if err != nil || ref == "" {
		return nil //nolint:nilerr // its nodes tell
	}
	return img.CheckImageName(name)
}

func (sh *sharer) add(i int, name string) error {
	if err := muster.CheckUserName(name); err != nil {
		sh.problem(err.Reason, "add", i, err.Message, err.Hint)
		return nil //nolint:nilerr // told with all other problems
	}
	if err := sh.inImage(name); err != nil {
		sh.problem(err.Reason, "add", i, err.Message, err.Hint)
		return nil //nolint:nilerr // told with all other problems
	}
	who := sh.tx.Actor()
	u, err := findUser(sh.tx, name)
	switch {
	case muster.CodeOf(err) == muster.ENotFound && who.Admin:
		known, err := sh.tx.Users()
		if err != nil {
			return err
		}
		if slip, is := slipOf(name, userNames(known)); is {
			sh.problem(slip.Reason, "add", i, slip.Message, slip.Hint)
			return nil
		}
		w := parsedRequest{spec: sh.c.Spec, newUser: []string{name}}
		w.spec.Project = sh.c.Project
		var told muster.Answer
		if err := sh.s.makeUsers(sh.tx, w, &told); err != nil {
			return err
		}
		sh.notices = append(sh.notices, told.Notices...)
	case muster.CodeOf(err) == muster.ENotFound:
		// Whether somebody of that name is in another project is not told.
		var e *muster.Error
		if errors.As(err, &e) {
			sh.problem(muster.ReasonNoSuchUser, "add", i, fmt.Sprintf("no user of project %s is called %s", sh.c.Project, name), e.Hint)
		}
		return nil
	case err != nil:
		return err
	case !slices.Contains(u.Projects, sh.c.Project) && !who.Admin:
		sh.problem(muster.ReasonNoSuchUser, "add", i, fmt.Sprintf("no user of project %s is called %s", sh.c.Project, name), "an administrator adds members with 'muster user add'")
		return nil
	case !slices.Contains(u.Projects, sh.c.Project) && !u.Admin:
		sh.notices = append(sh.notices, fmt.Sprintf("%s is not in project %s: sees the cluster and may log in, but not change it", name, sh.c.Project))
	}
	lacking, err := sh.lackingUID(u.UID)
	if err != nil {
		return err
	}
	if lacking != "" {
		sh.problem(muster.ReasonOutOfRange, "add", i, fmt.Sprintf("%s has the uid %d, which does not exist on machines of provider %s", name, u.UID, lacking),
			"whoever has so high a number needs a cluster on machines of another provider")
		return nil
	}
	if !slices.Contains(sh.users, name) {
		sh.users = append(sh.users, name)
	}
	return nil
}

// lackingUID is the provider of a machine of the cluster on which a number does not exist;
// "" where it exists on all.
func (sh *sharer) lackingUID(uid int) (string, error) {
	nodes, err := sh.tx.AsSystem().Nodes(sh.c.ID)
	if err != nil {
		return "", err
	}
	for _, n := range nodes {
		if n.Machine == "" {
			continue
		}
		m, err := sh.tx.AsSystem().Machine(n.Machine)
		if err != nil && muster.CodeOf(err) != muster.ENotFound {
			return "", err
		}
		if err == nil && !sh.s.Providers.For(m.Provider, sh.c.Spec.VM).HasUID(uid) {
			return m.Provider, nil
		}
	}
	return "", nil
}

// addProject adds everybody of the cluster's project whom the caller may see.
func (sh *sharer) addProject() error {
	all, err := sh.tx.Users()
	if err != nil {
		return err
	}
	for _, u := range all {
		if slices.Contains(u.Projects, sh.c.Project) && !slices.Contains(sh.users, u.Name) {
			if err := sh.inImage(u.Name); err != nil {
				sh.notices = append(sh.notices, err.Message+": not let in")
				continue
			}
			sh.users = append(sh.users, u.Name)
		}
	}
	return nil
}

func (sh *sharer) remove(i int, name string) {
	switch {
	case name == sh.c.Owner:
		sh.problem(muster.ReasonOwnerStays, "remove", i, fmt.Sprintf("%s owns cluster %s and stays", name, sh.c.Name), "give the cluster back instead: muster delete "+string(sh.c.ID))
	case !slices.Contains(sh.c.Spec.Users, name):
		hint := didYouMean(name, sh.c.Spec.Users)
		if hint == "" {
			hint = "see 'muster show " + string(sh.c.ID) + "'"
		}
		sh.problem(muster.ReasonNoSuchUser, "remove", i, fmt.Sprintf("%.64q is not a user of cluster %s", name, sh.c.Name), hint)
	case len(sh.users) == 1:
		sh.problem(muster.ReasonNobodyLeft, "remove", i, "cluster "+sh.c.Name+" would have no users left", "add another first, or give it back: muster delete "+string(sh.c.ID))
	default:
		sh.users = slices.DeleteFunc(sh.users, func(u string) bool { return u == name })
	}
}
