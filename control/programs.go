package control

import (
	"context"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/program"
	"github.com/muster-hpc/muster/control/spec"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// AddProgram adds a program to a project of the caller.
func (s *Service) AddProgram(ctx context.Context, who muster.Actor, r wire.ProgramRequest) (wire.Program, error) {
	p := muster.Program{Name: r.Name, Project: r.Project, Owner: who.Name, Created: s.Clock.Now().UTC(), ProgramSpec: muster.ProgramSpec{
		Image: r.Image, Build: strings.TrimSpace(r.Build), Run: strings.TrimSpace(r.Run), Check: r.Check, Inputs: r.Inputs,
	}}
	problems := s.ownProject(ctx, who, &p.Project)
	if r.Metric != "" {
		m, e := program.ParseMetric(r.Metric, r.Better)
		if e != nil {
			problems = append(problems, e.In("metric"))
		}
		p.Metric = m
	} else if r.Better != "" {
		problems = append(problems, muster.Problem{Field: "better", Reason: muster.ReasonContradiction, Message: "there is no metric that could be better", Hint: "give --metric, or leave it out"})
	}
	problems = append(problems, program.Check(p)...)
	if r.Image != "" {
		if _, err := s.Config.Images.ResolveForUse(r.Image); err != nil && asError(err) != nil {
			problems = append(problems, asError(err).In("image"))
		}
	}
	err := s.Store.Update(ctx, who, func(tx *store.Tx) error {
		for _, name := range r.Inputs {
			if _, err := tx.FindVolume(name); err != nil {
				e := asError(err)
				if e == nil {
					return err
				}
				problems = append(problems, e.In("inputs"))
			}
		}
		if len(problems) > 0 {
			return muster.Errorf(muster.EInvalid, "the program has problems").Because(muster.ReasonHasProblems).Listing(spec.Distinct(problems))
		}
		if _, err := tx.Program(p.Project, p.Name); err == nil {
			return muster.Errorf(muster.EConflict, "project %s has a program %s already", p.Project, p.Name).Because(muster.ReasonNameTaken).
				WithHint("choose another name, or remove it first: muster program remove %s", p.Name)
		}
		return tx.PutProgram(p, "added by "+who.Name)
	})
	return programView(p), err
}

// ownProject settles the project of what somebody adds: the one that they name, or their only one.
func (s *Service) ownProject(ctx context.Context, who muster.Actor, project *string) []muster.Problem {
	switch {
	case *project != "" && who.In(*project):
		return s.checkNewProject(ctx, who, *project)
	case *project != "":
		return []muster.Problem{muster.Errorf(muster.EInvalid, "you have no project %q", *project).Because(muster.ReasonUnknownProject).WithHint("%s", didYouMean(*project, who.Projects)).In("project")}
	case len(who.Projects) == 1:
		*project = who.Projects[0]
	case who.Admin:
		*project = "default"
	default:
		return []muster.Problem{muster.Errorf(muster.EInvalid, "it is not clear which of your projects this is for").Because(muster.ReasonProjectUnclear).
			WithHint("name one of %s", strings.Join(who.Projects, ", ")).In("project")}
	}
	return nil
}

func programView(p muster.Program) wire.Program {
	out := wire.Program{Program: p}
	if !p.Builtin {
		out.Version = p.Version(nil)
	}
	return out
}

// Programs lists those that the caller can run: those that come with Muster first.
func (s *Service) Programs(ctx context.Context, who muster.Actor, page wire.Page) (wire.ProgramList, error) {
	out := wire.ProgramList{Programs: []wire.Program{}}
	err := s.Store.View(ctx, who, func(tx *store.Tx) error {
		list, err := tx.Programs()
		for _, p := range append(program.Builtins(), list...) {
			out.Programs = append(out.Programs, programView(p))
		}
		return err
	})
	key := func(p wire.Program) string { return p.Project + "/" + p.Name }
	slices.SortFunc(out.Programs, func(a, b wire.Program) int { return strings.Compare(key(a), key(b)) })
	out.Programs, out.More = wire.Cut(out.Programs, page, key)
	return out, err
}

// findProgram finds a program by its name, or PROJECT/NAME. near is the project that is meant
// where several have one of that name.
func findProgram(tx *store.Tx, ref, near string) (muster.Program, error) {
	if p, ok := program.Builtin(ref); ok {
		return p, nil
	}
	list, err := tx.Programs()
	if err != nil {
		return muster.Program{}, err
	}
	var found []muster.Program
	var names []string
	for _, p := range list {
		names = append(names, p.Name)
		switch {
		case p.Project+"/"+p.Name == ref, p.Name == ref && p.Project == near:
			return p, nil
		case p.Name == ref:
			found = append(found, p)
		}
	}
	switch len(found) {
	case 0:
		for _, p := range program.Builtins() {
			names = append(names, p.Name)
		}
		e := muster.Errorf(muster.ENotFound, "there is no program %.64q", ref).Because(muster.ReasonNoSuchObject)
		if hint := didYouMean(ref, names); hint != "" {
			return muster.Program{}, e.WithHint("%s", hint)
		}
		return muster.Program{}, e.WithHint("`muster program list` lists them")
	case 1:
		return found[0], nil
	}
	return muster.Program{}, muster.Errorf(muster.EConflict, "several projects have a program %.64q", ref).Because(muster.ReasonAmbiguous).
		WithHint("write PROJECT/NAME, such as %s/%s", found[0].Project, found[0].Name)
}

// RemoveProgram takes a program out of its project. Its runs stay on record.
func (s *Service) RemoveProgram(ctx context.Context, who muster.Actor, ref string) error {
	return s.Store.Update(ctx, who, func(tx *store.Tx) error {
		p, err := findProgram(tx, ref, "")
		if err != nil {
			return err
		}
		if p.Builtin {
			return muster.Errorf(muster.EConflict, "%s comes with Muster", p.Name).Because(muster.ReasonImmutable).WithHint("it stays; remove programs that were added")
		}
		return tx.DeleteProgram(p.Project, p.Name, "removed by "+who.Name)
	})
}
