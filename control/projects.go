package control

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/limit"
	"github.com/muster-hpc/muster/control/spec"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// Projects lists the projects that the actor may see, with what is in use.
func (s *Service) Projects(ctx context.Context, who muster.Actor, page wire.Page) (wire.ProjectList, error) {
	out := wire.ProjectList{Projects: []wire.ProjectUse{}}
	err := s.Store.View(ctx, who, func(tx *store.Tx) error {
		names := map[string]bool{}
		records, err := tx.Projects()
		if err != nil {
			return err
		}
		for _, p := range records {
			names[p.Name] = true
		}
		people, err := tx.AsSystem().Users()
		if err != nil {
			return err
		}
		for _, u := range people {
			for _, p := range u.Projects {
				if who.Admin || who.In(p) {
					names[p] = true
				}
			}
		}
		sorted := slices.Sorted(maps.Keys(names))
		sorted, out.More = wire.Cut(sorted, page, func(name string) string { return name })
		for _, name := range sorted {
			p, err := s.projectUse(tx, name, people)
			if err != nil {
				return err
			}
			out.Projects = append(out.Projects, p)
		}
		return nil
	})
	return out, err
}

// Project shows one project.
func (s *Service) Project(ctx context.Context, who muster.Actor, name string) (out wire.ProjectUse, err error) {
	err = s.Store.View(ctx, who, func(tx *store.Tx) error {
		if !who.Admin && !who.In(name) {
			return noProject(name)
		}
		people, err := tx.AsSystem().Users()
		if err != nil {
			return err
		}
		if out, err = s.projectUse(tx, name, people); err != nil {
			return err
		}
		if !out.Kept && len(out.Members) == 0 && name != "default" {
			return noProject(name)
		}
		return nil
	})
	return out, err
}

func noProject(name string) *muster.Error {
	return muster.Errorf(muster.ENotFound, "there is no project %.64q", name).Because(muster.ReasonUnknownProject).WithHint("`muster project list` lists those that you can see")
}

func (s *Service) projectUse(tx *store.Tx, name string, people []muster.User) (out wire.ProjectUse, err error) {
	sys, now := tx.AsSystem(), s.Clock.Now()
	p, _, err := rulesOf(sys, name)
	if err != nil {
		return out, err
	}
	out.Project, out.Members, out.Kept = p, []string{}, p.Name == name
	out.Name = name
	for _, u := range people {
		if slices.Contains(u.Projects, name) {
			out.Members = append(out.Members, u.Name)
		}
	}
	slices.Sort(out.Members)
	all, users, err := usages(sys, p, name, "", now)
	if err != nil {
		return out, err
	}
	living, err := sys.Clusters(store.ClusterFilter{Project: name, Living: true})
	if err != nil {
		return out, err
	}
	for _, c := range living {
		if c.Lifted != nil {
			out.Lifted = append(out.Lifted, wire.LiftedCluster{ID: c.ID, Name: c.Name, Lift: *c.Lifted})
		}
	}
	use := func(u limit.Usage) wire.LimitUse {
		return wire.LimitUse{Machines: u.Machines, Cores: u.Cores, Accelerators: u.Accelerators, Promises: u.Promises, MachineTime: muster.Duration(u.Booked)}
	}
	out.Use, out.Users = use(all), map[string]wire.LimitUse{}
	for name, u := range users {
		if !u.IsZero() {
			out.Users[name] = use(*u)
		}
	}
	return out, nil
}

// changeProject changes the record of a project, which is made where there is none.
func (s *Service) changeProject(ctx context.Context, who muster.Actor, name string, managers bool, change func(*store.Tx, *muster.Project) (string, error)) (wire.ProjectUse, error) {
	err := s.Store.Update(ctx, who, func(tx *store.Tx) error {
		sys := tx.AsSystem()
		p, kept, err := rulesOf(sys, name)
		if err != nil {
			return err
		}
		switch {
		case who.Admin:
		case !who.In(name):
			return noProject(name)
		case !managers || !kept || p.Name != name || !slices.Contains(p.Managers, who.Name):
			return muster.Errorf(muster.EForbidden, "you may see project %s, not change it", name).Because(muster.ReasonForbidden).WithHint("ask a manager of the project, or an administrator")
		}
		if name != everyProject {
			if _, p := spec.CheckProject(name); p != nil {
				return spec.Error([]muster.Problem{*p})
			}
		}
		p.Name = name
		text, err := change(tx, &p)
		if err != nil {
			return err
		}
		return sys.PutProject(p, text+", by "+who.Name)
	})
	if err != nil {
		return wire.ProjectUse{}, err
	}
	return s.Project(ctx, who, name)
}

// LimitProject changes the limits, hours and rights of a project.
func (s *Service) LimitProject(ctx context.Context, who muster.Actor, name string, r wire.ProjectLimits) (wire.ProjectUse, error) {
	if err := administrator(who, "limit projects"); err != nil {
		return wire.ProjectUse{}, err
	}
	return s.changeProject(ctx, who, name, false, func(tx *store.Tx, p *muster.Project) (string, error) {
		var problems []muster.Problem
		if len(r.Set) == 0 {
			problems = append(problems, muster.Problem{Field: "set", Reason: muster.ReasonRequired, Message: "nothing is to be changed", Hint: "write machines=8, user.cores=64, walltime=7d"})
		}
		for _, text := range r.Set {
			if problem := setLimit(p, text); problem != nil {
				problems = append(problems, *problem)
			}
		}
		if e := spec.Error(problems); e != nil {
			return "", e
		}
		if !r.Force && name != everyProject {
			all, users, err := usages(tx.AsSystem(), *p, name, "", s.Clock.Now())
			if err != nil {
				return "", err
			}
			problems = below("", p.Limits, all)
			for user, u := range users {
				problems = append(problems, below("user."+user+".", p.EachUser, *u)...)
			}
			if len(problems) > 0 {
				slices.SortFunc(problems, func(a, b muster.Problem) int { return strings.Compare(a.Field, b.Field) })
				e := muster.Errorf(muster.EConflict, "project %s uses more than that already", name).Because(muster.ReasonOverLimit).
					WithHint("write more, or set it all the same with --force: nobody is ended, and new requests are refused")
				return "", e.Listing(problems)
			}
		}
		return "limits set: " + strings.Join(r.Set, " "), nil
	})
}

// below lists limits that are below what is in use.
func below(field string, l muster.Limits, u limit.Usage) (list []muster.Problem) {
	for _, x := range []struct {
		name        string
		limit, used int
	}{{"machines", l.Machines, u.Machines}, {"cores", l.Cores, u.Cores}, {"accelerators", l.Accelerators, u.Accelerators}, {"promises", l.Promises, u.Promises}} {
		if x.limit > 0 && x.used > x.limit {
			list = append(list, muster.Problem{Field: field + x.name, Reason: muster.ReasonOverLimit, Message: fmt.Sprintf("%d in use, %d would be allowed", x.used, x.limit), Hint: fmt.Sprintf("write %d or more", x.used)})
		}
	}
	return list
}

// setLimit reads one change such as machines=8 and makes it.
func setLimit(p *muster.Project, text string) *muster.Problem {
	name, value, ok := strings.Cut(text, "=")
	bad := func(hint string) *muster.Problem {
		return &muster.Problem{Field: name, Reason: muster.ReasonBadValue, Message: fmt.Sprintf("%.64q is not possible here", value), Hint: hint}
	}
	if !ok {
		return &muster.Problem{Field: text, Reason: muster.ReasonBadSyntax, Message: "there is no = in it", Hint: "write machines=8"}
	}
	l, what := &p.Limits, name
	if rest, is := strings.CutPrefix(name, "user."); is {
		l, what = &p.EachUser, rest
	}
	none := value == "none"
	number := func(to *int) *muster.Problem {
		n, err := strconv.Atoi(value)
		if none {
			n, err = 0, nil
		}
		if err != nil || n < 0 || n == 0 && !none || n > 1_000_000_000 {
			return bad("write a number of 1 or more, or none")
		}
		*to = n
		return nil
	}
	length := func(to *muster.Duration) *muster.Problem {
		d, err := spec.ParseDuration(value)
		if none {
			d, err = 0, nil
		}
		if err != nil || d < 0 || d == 0 && !none {
			return bad("write a time such as 8h or 30d, or none")
		}
		*to = muster.Duration(d)
		return nil
	}
	yes := func(to *bool) *muster.Problem { // the field forbids
		switch value {
		case "yes", "none":
			*to = false
		case "no":
			*to = true
		default:
			return bad("write yes or no")
		}
		return nil
	}
	list := func(to *[]string) *muster.Problem {
		*to = nil
		if !none && value != "all" {
			*to = strings.Split(value, ",")
		}
		return nil
	}
	switch what {
	case "machines":
		return number(&l.Machines)
	case "cores":
		return number(&l.Cores)
	case "accelerators":
		return number(&l.Accelerators)
	case "promises":
		return number(&l.Promises)
	case "ahead":
		return length(&l.Ahead)
	case "walltime":
		return length(&l.Walltime)
	case "machine-time":
		amount, period, ok := strings.Cut(value, "/")
		if none {
			l.MachineTime, l.Period = 0, 0
			return nil
		}
		hours, err := strconv.ParseFloat(strings.TrimSuffix(amount, "h"), 64)
		d, err2 := spec.ParseDuration(period)
		if !ok || err != nil || err2 != nil || hours <= 0 || hours > 1e6 || d <= 0 || !strings.HasSuffix(amount, "h") {
			return bad("write machine-hours and a period: 2000h/30d")
		}
		l.MachineTime, l.Period = muster.Duration(hours*float64(time.Hour)), muster.Duration(d)
		return nil
	}
	if what != name {
		return &muster.Problem{Field: name, Reason: muster.ReasonUnknownField, Message: "there is no such limit of each user", Hint: "limits are machines, cores, accelerators, promises, ahead, walltime, machine-time"}
	}
	switch what {
	case "may-reserve":
		return yes(&p.Rights.NoPromises)
	case "may-name-racks":
		return yes(&p.Rights.NoRacks)
	case "may-name-hardware":
		return yes(&p.Rights.NoHardware)
	case "classes":
		return list(&p.Rights.Classes)
	case "providers":
		return list(&p.Rights.Providers)
	case "doors":
		p.Rights.Doors = nil
		if value == "all" {
			return nil
		}
		doors, err := muster.ParseDoors(strings.Split(value, ","))
		if err != nil {
			return bad("write doors=jump, doors=jump,plain, none or all")
		}
		p.Rights.Doors = doors
		return nil
	case "hours":
		return setHours(p, value, none, bad)
	}
	return &muster.Problem{Field: name, Reason: muster.ReasonUnknownField, Message: "there is no such limit",
		Hint: "limits are machines, cores, accelerators, promises, ahead, walltime, machine-time (each with user. before it for every user), hours, classes, providers, may-reserve, may-name-racks, may-name-hardware, doors"}
}

// setHours reads "fri 18:00-mon 08:00 Europe/Berlin:2", several of them apart by semicolons.
func setHours(p *muster.Project, value string, none bool, bad func(string) *muster.Problem) *muster.Problem {
	const hint = "write fri 18:00-mon 08:00 Europe/Berlin:2 (machines), or none"
	var hours []muster.HourLimit
	for part := range strings.SplitSeq(value, ";") {
		if none {
			break
		}
		from, rest, ok := strings.Cut(strings.TrimSpace(part), "-")
		i := strings.LastIndex(rest, ":")
		words := strings.Fields(rest[:max(i, 0)])
		if !ok || len(words) != 3 {
			return bad(hint)
		}
		n, err := strconv.Atoi(rest[i+1:])
		h := muster.HourLimit{From: from, Until: words[0] + " " + words[1], Zone: words[2], Machines: n}
		_, err2 := limit.ParseHour(h.From)
		_, err3 := limit.ParseHour(h.Until)
		_, err4 := time.LoadLocation(h.Zone)
		if err != nil || n < 0 || err2 != nil || err3 != nil || err4 != nil || h.From == h.Until {
			return bad(hint)
		}
		hours = append(hours, h)
	}
	p.Hours = hours
	return nil
}

// SetMember makes somebody a member or a manager of a project, or neither.
func (s *Service) SetMember(ctx context.Context, who muster.Actor, name string, r wire.ProjectMember) (wire.ProjectUse, error) {
	if r.Role != "member" && r.Role != "manager" && r.Role != "none" {
		return wire.ProjectUse{}, muster.Errorf(muster.EInvalid, "there is no role %.32q", r.Role).Because(muster.ReasonBadValue).WithHint("write member, manager or none")
	}
	return s.changeProject(ctx, who, name, true, func(tx *store.Tx, p *muster.Project) (string, error) {
		sys := tx.AsSystem()
		if r.Role == "manager" && !who.Admin {
			return "", muster.Errorf(muster.EForbidden, "only administrators make managers").Because(muster.ReasonAdminOnly).WithHint("ask one")
		}
		u, err := sys.User(r.User)
		if err != nil {
			return "", err
		}
		if !who.Admin && u.Name != who.Name && slices.Contains(p.Managers, u.Name) {
			return "", muster.Errorf(muster.EForbidden, "%s is a manager: only administrators change that", u.Name).Because(muster.ReasonAdminOnly).WithHint("ask one")
		}
		p.Managers = slices.DeleteFunc(slices.Clone(p.Managers), func(n string) bool { return n == u.Name })
		u.Projects = slices.DeleteFunc(slices.Clone(u.Projects), func(n string) bool { return n == name })
		text := u.Name + " is no member any more"
		if r.Role != "none" {
			u.Projects, text = append(u.Projects, name), u.Name+" is a "+r.Role
		}
		if r.Role == "manager" {
			p.Managers = append(p.Managers, u.Name)
		}
		return text, sys.PutUser(u, text+" of project "+name)
	})
}

// AllowProject lifts the limits of a project for one cluster, for everybody to see: for the
// living one of that name or ID, or else for the next one of that name. Administrators lift
// all limits, managers those of each user.
func (s *Service) AllowProject(ctx context.Context, who muster.Actor, name string, r wire.ProjectAllow) (wire.ProjectUse, error) {
	var until time.Time
	if r.Cluster == "" {
		return wire.ProjectUse{}, muster.Errorf(muster.EInvalid, "no cluster is named").Because(muster.ReasonRequired).WithHint("name the cluster that may exceed the limits")
	}
	if r.Until != "" {
		at, err := spec.ParseTime(r.Until, s.Clock.Now())
		if err != nil {
			return wire.ProjectUse{}, err
		}
		until = at.UTC()
	}
	return s.changeProject(ctx, who, name, true, func(tx *store.Tx, p *muster.Project) (string, error) {
		sys, now := tx.AsSystem(), s.Clock.Now()
		l, err := mayLift(sys, who, name, r.Why, now)
		if err != nil {
			return "", err
		}
		l.Until = until
		p.Exceptions = slices.DeleteFunc(slices.Clone(p.Exceptions), func(x muster.Exception) bool {
			return x.Cluster == r.Cluster || !x.Until.IsZero() && !now.Before(x.Until)
		})
		living, err := sys.Clusters(store.ClusterFilter{Project: name, Living: true})
		if err != nil {
			return "", err
		}
		text := "limits are lifted for cluster " + r.Cluster
		if r.Revoke {
			text, l = "limits hold for cluster "+r.Cluster+" again", nil
		}
		i := slices.IndexFunc(living, func(c muster.Cluster) bool { return c.Name == r.Cluster || string(c.ID) == r.Cluster })
		switch {
		case i >= 0:
			c := living[i]
			c.Lifted = l
			told := "the limits of its project hold for it again, by " + who.Name
			if l != nil {
				told = l.Text()
			}
			c.Notices = muster.AddNotice(c.Notices, now, muster.NoticeLifted, told)
			return text, sys.PutCluster(c, told)
		case l != nil:
			if strings.HasPrefix(r.Cluster, "c-") {
				return "", muster.Errorf(muster.ENotFound, "project %s has no living cluster %.64q", name, r.Cluster).Because(muster.ReasonNoSuchCluster).WithHint("name a cluster of the project, or what the next one will be called")
			}
			p.Exceptions = append(p.Exceptions, muster.Exception{Cluster: r.Cluster, Lift: *l})
		}
		return text, nil
	})
}
