package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/limit"
	"github.com/muster-hpc/muster/control/spec"
	"github.com/muster-hpc/muster/storage/image"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// parsedRequest is a request that was read, filled in and found good.
type parsedRequest struct {
	spec  muster.Spec
	image *muster.Image
	// lifted: limits do not hold for it, which excepted says was allowed before.
	lifted   *muster.Lift
	excepted bool
	owner    string
	newUser  []string // users to make, when an administrator named them
	notices  []string
	course   string // whose seat it is
	like     *likeness
}

// parseRequest decodes and checks a request for an actor. Every problem is told at
// once.
func (s *Service) parseRequest(ctx context.Context, who muster.Actor, call wire.CreateCall) (parsedRequest, error) {
	contentType := ""
	if call.Format != "" {
		contentType = "application/" + call.Format
	}
	req, places, err := spec.Decode(call.Body, spec.FormatOf(contentType, "", call.Body))
	var problems []muster.Problem
	if err != nil {
		var e *muster.Error
		if !errors.As(err, &e) || len(e.Problems) == 0 {
			return parsedRequest{}, err
		}
		problems = e.Problems
	}
	var w parsedRequest
	defaults := s.policy.Load().Defaults
	defaults.Now = s.Clock.Now()
	switch {
	case who.Name != "root":
		defaults.Users = []string{who.Name}
	case call.DefaultUser != "":
		defaults.Users = []string{call.DefaultUser}
	case len(defaults.Users) == 0:
		defaults.Users = []string{"muster"}
	}
	if who.Name == "root" && call.DefaultUser == "" && slices.Equal(req.Users, []string{"muster"}) {
		req.Users = nil // as a cluster of root's own shows it: the request for another one
	}
	more, err := s.like(ctx, who, &req, defaults, &w)
	if err != nil {
		return parsedRequest{}, err
	}
	problems = append(problems, more...)
	if who.Name == "root" && len(req.Users) == 0 && call.DefaultUser != "" {
		if e := muster.CheckUserName(call.DefaultUser); e != nil { // never somebody else in their stead: two people would share a home
			problems = append(problems, muster.Problem{Field: "users", Reason: muster.ReasonBadName, Message: fmt.Sprintf("you are %.64q on this host, which cannot be a user name on nodes", call.DefaultUser),
				Hint: strings.TrimPrefix(e.Hint+": ", ": ") + "say by which name you will log in: --users NAME, or users: [NAME] in the request"})
			defaults.Users = []string{"muster"} // so that the rest is judged, too
		}
	}
	w.spec, more = spec.Validate(req, defaults)
	problems = places.Merge(problems, more)
	people, more, err := s.people(ctx, who, &w, len(req.Users) > 0)
	if err != nil {
		return parsedRequest{}, err
	}
	for _, more := range [][]muster.Problem{more, s.project(ctx, who, &w, people), s.allowed(w.spec), s.machineName(ctx, w.spec.Name), s.walltime(&w), s.image(&w), imageNames(&w), s.volumes(ctx, who, &w)} {
		problems = places.Merge(problems, more)
	}
	if len(problems) > 0 {
		return parsedRequest{}, spec.Error(problems)
	}
	w.owner = ownerOf(who, w.spec)
	s.oldHome(ctx, who, &w)
	return w, s.rights(ctx, who, call, &w)
}

// rights settles what the project of a request may have, and whether limits are lifted for it.
func (s *Service) rights(ctx context.Context, who muster.Actor, call wire.CreateCall, w *parsedRequest) error {
	return s.Store.View(ctx, who, func(tx *store.Tx) (err error) {
		sys, now := tx.AsSystem(), s.Clock.Now()
		if call.Lift {
			if w.lifted, err = mayLift(sys, who, w.spec.Project, call.Why, now); err != nil {
				return err
			}
		} else if w.lifted, err = exception(sys, w.spec.Project, w.spec.Name, now); err != nil {
			return err
		} else {
			w.excepted = w.lifted != nil
		}
		if w.lifted != nil && !w.lifted.UserOnly {
			return nil
		}
		p, _, err := rulesOf(sys, w.spec.Project)
		if err != nil {
			return err
		}
		if err := overLimits(w.spec.Project, limit.CheckRights(whole(w.spec.Project), p.Rights, w.spec)); err != nil {
			return err
		}
		w.spec.Allowed = allowedTo(p)
		return nil
	})
}

// ownerOf is who owns a cluster: who asked for it, or its first user where root
// of the host asked.
func ownerOf(who muster.Actor, sp muster.Spec) string {
	if who.Name == "root" && len(sp.Users) > 0 {
		return sp.Users[0]
	}
	return who.Name
}

// people looks the users of a request up. An administrator's unknown users
// will be made, unless they were typed and look like slips; anybody else's are a
// problem.
func (s *Service) people(ctx context.Context, who muster.Actor, w *parsedRequest, typed bool) (map[string]muster.User, []muster.Problem, error) {
	known := map[string]muster.User{}
	var problems []muster.Problem
	err := s.Store.View(ctx, who, func(tx *store.Tx) error {
		all, err := tx.Users()
		if err != nil {
			return err
		}
		for _, u := range all {
			known[u.Name] = u
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	for i, name := range w.spec.Users {
		if _, ok := known[name]; ok {
			continue
		}
		field := fmt.Sprintf("users[%d]", i)
		switch {
		case typed && muster.CheckUserName(name) != nil: // root of the host itself is "muster" on nodes
			problems = append(problems, muster.CheckUserName(name).In(field))
		case who.Admin:
			if slip, is := slipOf(name, names(known)); is && typed {
				slip.Field = field
				problems = append(problems, slip)
				continue
			}
			w.newUser = append(w.newUser, name)
		default:
			problems = append(problems, muster.Problem{Field: field, Reason: muster.ReasonNoSuchUser, Message: fmt.Sprintf("no user is called %q", name), Hint: didYouMean(name, names(known))})
		}
	}
	return known, problems, nil
}

// project settles which project owns the cluster.
func (s *Service) project(ctx context.Context, who muster.Actor, w *parsedRequest, people map[string]muster.User) []muster.Problem {
	switch {
	case who.Admin && w.spec.Project == "":
		w.spec.Project = commonProject(w.spec.Users, people)
	case w.spec.Project == "" && len(who.Projects) == 1:
		w.spec.Project = who.Projects[0]
	case w.spec.Project == "":
		return []muster.Problem{{Field: "project", Reason: muster.ReasonProjectUnclear, Message: "it is not clear which of your projects this is for",
			Hint: "name one of " + strings.Join(who.Projects, ", ")}}
	case !who.In(w.spec.Project):
		return []muster.Problem{{Field: "project", Reason: muster.ReasonUnknownProject, Message: fmt.Sprintf("you have no project %q", w.spec.Project),
			Hint: didYouMean(w.spec.Project, who.Projects)}}
	}
	if who.Admin {
		if project := w.spec.Project; project != "default" && s.newProject(ctx, project, people) {
			if slip, is := s.slipOfProject(ctx, project, people); is {
				return []muster.Problem{slip}
			}
			w.notices = append(w.notices, fmt.Sprintf("project %s is new: nobody belongs to it and it has no cluster", project))
		}
		owner := ownerOf(who, w.spec)
		for _, name := range w.spec.Users {
			if name == owner {
				continue // sees it as its owner
			}
			if u, ok := people[name]; ok && !u.Admin && !slices.Contains(u.Projects, w.spec.Project) {
				w.notices = append(w.notices, fmt.Sprintf("%s is not in project %s: sees the cluster and may log in, but not change it", name, w.spec.Project))
			}
		}
		return nil
	}
	var problems []muster.Problem
	for i, name := range w.spec.Users {
		u, ok := people[name]
		if ok && !slices.Contains(u.Projects, w.spec.Project) {
			problems = append(problems, muster.Problem{Field: fmt.Sprintf("users[%d]", i),
				Reason: muster.ReasonNotAMember, Message: fmt.Sprintf("%s is not in project %s", name, w.spec.Project), Hint: "an administrator adds members with 'muster user add'"})
		}
	}
	return problems
}

// commonProject is one that all the users are in, or "default".
func commonProject(users []string, people map[string]muster.User) string {
	if len(users) == 0 {
		return "default"
	}
	for _, project := range people[users[0]].Projects {
		if !slices.ContainsFunc(users, func(u string) bool { return !slices.Contains(people[u].Projects, project) }) {
			return project
		}
	}
	return "default"
}

// machineName refuses the name of a machine: a console is opened by either.
func (s *Service) machineName(ctx context.Context, name string) []muster.Problem {
	if name == "" {
		return nil
	}
	err := s.Store.View(ctx, muster.System(), func(tx *store.Tx) error {
		_, err := tx.Machine(muster.MachineID(name))
		return err
	})
	if err != nil {
		return nil // there is none, or the request fails where it is recorded
	}
	return []muster.Problem{{Field: "name", Reason: muster.ReasonNameTaken, Message: name + " is a machine of this site", Hint: "choose another name, such as " + name + "-cluster"}}
}

// allowed reports what the site does not allow.
func (s *Service) allowed(sp muster.Spec) []muster.Problem {
	var problems []muster.Problem
	list := s.policy.Load().Egress
	if sp.Egress != "" && !slices.Contains(list, sp.Egress) {
		allowed := make([]string, len(list))
		for i, e := range list {
			allowed[i] = string(e)
		}
		problems = append(problems, muster.Problem{Field: "egress", Reason: muster.ReasonEgressRefused, Message: fmt.Sprintf("this site does not allow %q", sp.Egress),
			Hint: "allowed: " + strings.Join(allowed, ", ")})
	}
	for i, p := range sp.Packages {
		if wrong := image.CheckPackage(p); wrong != "" {
			problems = append(problems, muster.Problem{Field: fmt.Sprintf("packages[%d]", i), Reason: muster.ReasonBadName, Message: wrong, Hint: "write a Debian package name, such as libfftw3-dev"})
		}
	}
	return problems
}

// image finds the image that is asked for.
func (s *Service) image(w *parsedRequest) []muster.Problem {
	if w.spec.Image == "" {
		return nil
	}
	img, err := s.Config.Images.ResolveForUse(w.spec.Image)
	if err != nil {
		var e *muster.Error
		if !errors.As(err, &e) {
			s.Log.Error("reading image failed", "image", w.spec.Image, "error", err)
			return []muster.Problem{{Field: "image", Reason: muster.ReasonImageDamaged, Message: "cannot be read", Hint: "see the server's log"}}
		}
		return []muster.Problem{e.In("image")}
	}
	if !img.For(w.spec.Project) { // as if it were not there: it is another project's
		var e *muster.Error
		errors.As(noImage(w.spec.Image), &e)
		return []muster.Problem{e.In("image")}
	}
	w.image = img
	w.notices = append(w.notices, s.oldImage(img)...)
	var problems []muster.Problem
	w.spec, problems = spec.ForImage(w.spec, img)
	return problems
}

// imageNames refuses people whose names are taken in the image that they ask for.
func imageNames(w *parsedRequest) []muster.Problem {
	if w.image == nil {
		return nil
	}
	var problems []muster.Problem
	for i, name := range w.spec.Users {
		if e := w.image.CheckImageName(name); e != nil {
			problems = append(problems, e.In(fmt.Sprintf("users[%d]", i)))
		}
	}
	return problems
}

func names(users map[string]muster.User) []string {
	out := make([]string, 0, len(users))
	for name := range users {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
