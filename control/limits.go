package control

import (
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/limit"
	"github.com/muster-hpc/muster/control/spec"
	"github.com/muster-hpc/muster/store"
)

// everyProject is the record whose limits hold for projects that have none of their own.
const everyProject = "*"

// defaultPeriod is in what time bookings count where nobody says.
const defaultPeriod = 30 * 24 * time.Hour

// rulesOf is the record of a project, or that for all projects. It returns false when there
// is neither: nothing is limited.
func rulesOf(sys *store.Tx, project string) (muster.Project, bool, error) {
	for _, name := range []string{project, everyProject} {
		p, err := sys.Project(name)
		if err == nil {
			return p, true, nil
		}
		if muster.CodeOf(err) != muster.ENotFound {
			return p, false, err
		}
	}
	return muster.Project{}, false, nil
}

// usages is what a project and each of its people hold, without one cluster.
func usages(sys *store.Tx, p muster.Project, project string, without muster.ClusterID, now time.Time) (all limit.Usage, users map[string]*limit.Usage, err error) {
	users = map[string]*limit.Usage{}
	list, err := sys.Clusters(store.ClusterFilter{Project: project, Living: true})
	if err != nil {
		return all, nil, err
	}
	period := max(time.Duration(p.Limits.Period), time.Duration(p.EachUser.Period), defaultPeriod)
	lately, err := sys.Clusters(store.ClusterFilter{Project: project, After: store.CreatedCursor(now.Add(-2 * period))})
	if err != nil {
		return all, nil, err
	}
	for _, c := range lately {
		if c.Phase == muster.ClusterDeleted {
			list = append(list, c)
		}
	}
	from := func(l muster.Limits) time.Time {
		if l.Period > 0 {
			return now.Add(-time.Duration(l.Period))
		}
		return now.Add(-defaultPeriod)
	}
	for i := range list {
		c := &list[i]
		if c.ID == without {
			continue
		}
		var held []limit.Hardware
		if c.Phase.HoldsMachines() {
			machines, err := sys.Machines(store.MachineFilter{Cluster: c.ID})
			if err != nil {
				return all, nil, err
			}
			for j := range machines {
				held = append(held, limit.Of(&machines[j]))
			}
		}
		var promised []limit.Hardware
		if ahead := c.PromiseAhead(); ahead != nil {
			if promised, err = hardware(sys, ahead.Plan); err != nil {
				return all, nil, err
			}
		}
		all.Add(c, held, promised, from(p.Limits), now)
		u := users[c.Owner]
		if u == nil {
			u = &limit.Usage{}
			users[c.Owner] = u
		}
		u.Add(c, held, promised, from(p.EachUser), now)
	}
	return all, users, nil
}

// withinLimits refuses what exceeds a limit of a cluster's project or of its owner, in the
// transaction that records it: two requests at once cannot pass together. c is the cluster as
// it will be; plan names the machines that it gets, nil: they are not chosen yet. more is
// what it asks for beside what it has, where it is in use already.
func (s *Service) withinLimits(tx *store.Tx, c muster.Cluster, plan *muster.Plan, more *limit.Ask) error {
	sys, now := tx.AsSystem(), s.Clock.Now()
	p, limited, err := rulesOf(sys, c.Project)
	if err != nil || !limited || c.Benchmark {
		return err
	}
	lift := c.Lifted
	if lift != nil && !lift.Until.IsZero() && !now.Before(lift.Until) {
		lift = nil
	}
	if lift != nil && !lift.UserOnly {
		return nil
	}
	without := c.ID
	ask := limit.AskOf(c.Spec, now).Promised(c.Promise)
	if more != nil {
		ask, without = *more, ""
	}
	if plan != nil {
		list, err := hardware(sys, *plan)
		if err != nil {
			return err
		}
		ask = ask.With(list)
	}
	all, users, err := usages(sys, p, c.Project, without, now)
	if err != nil {
		return err
	}
	own := limit.Usage{}
	if u := users[c.Owner]; u != nil {
		own = *u
	}
	whole := whole(c.Project)
	each := limit.Whose{Name: "each user of project " + c.Project, Lifter: "an administrator"}
	if len(p.Managers) > 0 {
		each.Lifter = "a manager of the project (" + strings.Join(p.Managers, ", ") + ") or an administrator"
	}
	var problems []muster.Problem
	if more == nil {
		problems = limit.CheckRights(whole, p.Rights, c.Spec)
	}
	free := c.Spec.Priority == muster.PriorityScavenger
	if !free { // what is ended when somebody needs it is bounded by nothing but its walltime
		problems = append(problems, limit.Check(whole, p.Limits, all, ask, now)...)
		if lift == nil {
			problems = append(problems, limit.Check(each, p.EachUser, own, ask, now)...)
		}
		problems = append(problems, limit.CheckHours(whole, p.Hours, all, ask)...)
	}
	return overLimits(c.Project, problems)
}

// hardware is what the machines of a plan are made of. One that is gone counts as a machine.
func hardware(sys *store.Tx, plan muster.Plan) ([]limit.Hardware, error) {
	list := make([]limit.Hardware, 0, len(plan.Assign))
	for _, a := range plan.Assign {
		m, err := sys.Machine(a.Machine)
		if err != nil && muster.CodeOf(err) != muster.ENotFound {
			return nil, err
		}
		list = append(list, limit.Of(&m))
	}
	return list, nil
}

// allowedTo is what a project may have; nil: everything.
func allowedTo(p muster.Project) *muster.Allowed {
	if len(p.Rights.Classes) == 0 && len(p.Rights.Providers) == 0 {
		return nil
	}
	return &muster.Allowed{Classes: slices.Clone(p.Rights.Classes), Providers: slices.Clone(p.Rights.Providers)}
}

func whole(project string) limit.Whose {
	return limit.Whose{Name: "project " + project, Lifter: "an administrator"}
}

// overLimits refuses what exceeds limits, or is no right of a project; nil: nothing does.
func overLimits(project string, problems []muster.Problem) error {
	if len(problems) == 0 {
		return nil
	}
	e := muster.Errorf(muster.EForbidden, "%s of project %s: %s", map[bool]string{true: "a right", false: "a limit"}[problems[0].Reason == muster.ReasonNoRight], project, problems[0].Message).
		Because(problems[0].Reason).WithHint("%s", problems[0].Hint)
	return e.Listing(spec.Distinct(problems))
}

// mayLift is the lifting of limits that somebody asks for: administrators lift all of them,
// managers of the project those of each user.
func mayLift(sys *store.Tx, who muster.Actor, project, why string, now time.Time) (*muster.Lift, error) {
	l := &muster.Lift{By: who.Name, At: now.UTC(), Why: why}
	if who.Admin {
		return l, nil
	}
	p, _, err := rulesOf(sys, project)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(p.Managers, who.Name) || p.Name != project {
		lifters := "an administrator"
		if p.Name == project && len(p.Managers) > 0 {
			lifters = strings.Join(p.Managers, ", ") + " or an administrator"
		}
		return nil, muster.Errorf(muster.EForbidden, "you may not lift limits of project %s", project).Because(muster.ReasonForbidden).WithHint("ask %s", lifters)
	}
	l.UserOnly = true
	return l, nil
}

// exception is what was allowed for the next cluster of a name; nil: nothing.
func exception(sys *store.Tx, project, name string, now time.Time) (*muster.Lift, error) {
	p, err := sys.Project(project)
	if muster.CodeOf(err) == muster.ENotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, e := range p.Exceptions {
		if e.Cluster == name && (e.Until.IsZero() || now.Before(e.Until)) {
			l := e.Lift
			return &l, nil
		}
	}
	return nil, nil
}

// useException takes what was allowed for the next cluster of a name off the project's
// record, and what is over.
func useException(sys *store.Tx, project, name string, now time.Time) error {
	p, err := sys.Project(project)
	if err != nil {
		return err
	}
	p.Exceptions = slices.DeleteFunc(slices.Clone(p.Exceptions), func(e muster.Exception) bool {
		return e.Cluster == name || !e.Until.IsZero() && !now.Before(e.Until)
	})
	return sys.PutProject(p, "the exception for cluster "+name+" is used")
}
